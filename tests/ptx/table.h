// SPDX-License-Identifier: BSD-3-Clause
// The instruction table: a row for each opcode that computes registers from registers. Loads,
// stores, atomics, branches and calls have operands of other forms; assembler.cpp knows them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tests/ptx/program.h"

namespace slimpi::test::ptx {

struct Row {
  Handler run;
  unsigned to;                 // bits of the result
  std::vector<unsigned> from;  // bits of each source
  Flow flow = Flow::next;
  bool exact_widths = true;  // registers are no wider than that
};

using Table = std::map<std::string, Row>;

const Table& table();

// The parts of the table, by file.
void add_integer_rows(Table& table);
void add_bit_rows(Table& table);
void add_real_rows(Table& table);
void add_compare_rows(Table& table);
void add_convert_rows(Table& table);
void add_warp_rows(Table& table);

// Of loads, stores and atomics.
void load(Warp& warp, const Instruction& instruction, std::uint32_t lanes);
void store(Warp& warp, const Instruction& instruction, std::uint32_t lanes);
// The handler of atom.<operation>.<type>; null if there is none.
Handler atomic_of(const std::string& operation_and_type);

}  // namespace slimpi::test::ptx
