// SPDX-License-Identifier: BSD-3-Clause
// Makes a program of a kernel: assembler.cpp gives places to functions, names and numbers;
// encoder.cpp makes instructions of statements.
#pragma once
#include <string>
#include <vector>

#include "tests/ptx/program.h"

namespace slimpi::test::ptx {

class Assembler {
 public:
  Assembler(const Module& module, Program& program) : module_(module), program_(program) {}
  void run(const Function& entry);

 private:
  struct Placed {
    unsigned first_register, frame, first_instruction;
  };
  [[noreturn]] void fail(const std::string& text) const;

  // assembler.cpp
  void collect(const Function& function, std::vector<const Function*> callers);
  Slot number(std::uint64_t value);
  std::uint64_t address_of(const Variable& variable);
  unsigned frame_of(const Variable& variable) const;
  Slot slot_of(const Operand& operand);

  // encoder.cpp
  Instruction encode(const Statement& statement);
  void encode_branch(const Statement& statement, Instruction& i);
  void encode_call(const Statement& statement, Instruction& i);
  void encode_move(const Statement& statement, Instruction& i);
  bool encode_access(const Statement& statement, Instruction& i);
  void encode_atomic(const Statement& statement, Instruction& i);
  bool encode_barrier(const Statement& statement, Instruction& i);
  void encode_row(const Statement& statement, Instruction& i);
  void set_address(const Operand& operand, Instruction& i);
  void set_vector(const Operand& operand, Slot* slots, unsigned* count, unsigned* width);
  std::vector<Passed> passed(const Operand* given, const std::vector<const Variable*>& wanted,
                             bool back);
  void expect_operands(const Statement& statement, std::size_t count) const;
  const char* kept(const std::string& opcode) const;

  const Module& module_;
  Program& program_;
  std::vector<const Function*> order_;
  std::map<const Function*, Placed> placed_;
  std::map<std::uint64_t, Slot> numbers_;
  std::map<const Variable*, unsigned> shared_;
  const Function* function_ = nullptr;  // being encoded
  unsigned line_ = 0;
};

}  // namespace slimpi::test::ptx
