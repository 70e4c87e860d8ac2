// SPDX-License-Identifier: BSD-3-Clause
// Encodes and executes loads, stores and atomics.
#include <algorithm>
#include <cstring>

#include "tests/ptx/assembler.h"
#include "tests/ptx/lanes.h"
#include "tests/ptx/type.h"

namespace slimpi::test::ptx {

namespace {

// What says only how caches are used; and .volatile, as all accesses here are.
bool is_advice(const std::string& part) {
  for (const char* known : {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "weak", "volatile"})
    if (part == known) return true;
  return part.substr(0, 4) == "L1::" || part.substr(0, 4) == "L2::";
}

bool read_space(const std::string& part, Space* space) {
  if (part == "global")
    *space = Space::global;
  else if (part == "shared")
    *space = Space::shared;
  else if (part == "param" || part == "local")
    *space = Space::frame;
  else
    return false;
  return true;
}

std::uint64_t extended(std::uint64_t value, const Instruction& i) {
  const unsigned bits = 8 * i.bytes;
  if (!i.is_signed || bits == 64 || (value >> (bits - 1) & 1) == 0) return value;
  value |= ~std::uint64_t(0) << bits;
  return i.width == 64 ? value : value & ((std::uint64_t(1) << i.width) - 1);
}

}  // namespace

void Assembler::set_address(const Operand& operand, Instruction& i) {
  if (!operand.memory) fail("an address is in brackets");
  i.offset = operand.offset;
  i.from[0] = slot_of(operand);
  i.sources = 1;
  if (operand.form == Operand::Form::reg && operand.width < 64 && i.space != Space::shared)
    fail("an address in a register of " + std::to_string(operand.width) + " bits");
}

// ld or st, space, advice, .v2 or .v4, type.
bool Assembler::encode_access(const Statement& statement, Instruction& i) {
  const std::string& opcode = statement.opcode;
  if (opcode.substr(0, 3) != "ld." && opcode.substr(0, 3) != "st.") return false;
  const bool loads = opcode[0] == 'l';
  std::size_t begin = 3, elements = 1;
  std::string part;
  for (; begin < opcode.size(); begin += part.size() + 1) {
    part = opcode.substr(begin, opcode.find('.', begin) - begin);
    if (read_space(part, &i.space) || is_advice(part)) continue;
    if (part == "v2" || part == "v4")
      elements = std::size_t(part[1] - '0');
    else if (!type_of(part) || begin + part.size() != opcode.size())
      fail("the interpreter does not know '" + opcode + "'; add '." + part +
           "' to Assembler::encode_access in tests/ptx/accesses.cpp");
  }
  const auto type = type_of(part);
  expect_operands(statement, 2);
  unsigned width = 0, count = 0;
  Slot slots[4] = {};
  set_vector(statement.operands[loads ? 0 : 1], slots, &count, &width);
  if (!type || count != elements || (width != 0 && width < type->bits))
    fail(opcode + " of registers of other widths");
  set_address(statement.operands[loads ? 1 : 0], i);
  std::copy(slots, slots + count, i.to);  // of a store: what it stores
  i.targets = count;
  i.bytes = std::uint8_t(type->bits / 8);
  i.width = std::uint8_t(width);
  i.is_signed = type->kind == 's';
  i.run = loads ? load : store;
  return true;
}

// atom.space.operation.type result, [address], value
void Assembler::encode_atomic(const Statement& statement, Instruction& i) {
  const std::size_t dot = statement.opcode.find('.', 5);
  const std::string space = statement.opcode.substr(5, dot - 5);
  i.run = dot == std::string::npos ? nullptr : atomic_of(statement.opcode.substr(dot + 1));
  if (!read_space(space, &i.space) || i.space == Space::frame || i.run == nullptr)
    fail("the interpreter does not know '" + statement.opcode +
         "'; add it to atomic_of in tests/ptx/atomics.cpp");
  expect_operands(statement, 3);
  i.to[i.targets++] = slot_of(statement.operands[0]);
  set_address(statement.operands[1], i);
  i.from[i.sources++] = slot_of(statement.operands[2]);
  i.bytes = std::uint8_t(type_of(statement.opcode.substr(statement.opcode.size() - 3))->bits / 8);
}

void load(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  warp.need(i, i.from[0], lanes, "an address");
  const std::uint64_t* const addresses = warp.values(i.from[0]);
  std::uint64_t* to[4] = {};
  std::uint32_t unknown[4] = {};
  for (unsigned k = 0; k < i.targets; ++k) to[k] = warp.values(i.to[k]);
  for_lanes(lanes, [&](unsigned lane) {
    const std::uint64_t address = addresses[lane] + std::uint64_t(i.offset);
    const Warp::Place place = warp.place(i, lane, address, i.bytes * i.targets, false);
    if (place.global) warp.touch(i, lane, address, i.bytes * i.targets, Access::read);
    for (unsigned k = 0; k < i.targets; ++k) {
      std::uint64_t value = 0;
      std::memcpy(&value, place.data + k * i.bytes, i.bytes);
      to[k][lane] = extended(value, i);
      if (place.known != nullptr && std::memchr(place.known + k * i.bytes, 0, i.bytes) != nullptr)
        unknown[k] |= 1u << lane;
    }
  });
  for (unsigned k = 0; k < i.targets; ++k) warp.set_known(i.to[k], lanes, ~unknown[k]);
}

void store(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  warp.need(i, i.from[0], lanes, "an address");
  const std::uint64_t* const addresses = warp.values(i.from[0]);
  for_lanes(lanes, [&](unsigned lane) {
    const std::uint64_t address = addresses[lane] + std::uint64_t(i.offset);
    const Warp::Place place = warp.place(i, lane, address, i.bytes * i.targets, true);
    for (unsigned k = 0; k < i.targets; ++k) {
      const std::uint64_t value = warp.values(i.to[k])[lane];
      const bool known = (warp.known(i.to[k]) >> lane & 1) != 0;
      if (!known && place.known == nullptr)
        warp.fail(i, lane, "it stores a value that was never written");
      // Blocks may write one value to one place; which of them is the last does not matter.
      if (place.global && std::memcmp(place.data + k * i.bytes, &value, i.bytes) != 0)
        warp.touch(i, lane, address + k * i.bytes, i.bytes, Access::write);
      std::memcpy(place.data + k * i.bytes, &value, i.bytes);
      if (place.known != nullptr) std::memset(place.known + k * i.bytes, known ? 1 : 0, i.bytes);
    }
  });
}

}  // namespace slimpi::test::ptx
