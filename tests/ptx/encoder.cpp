// SPDX-License-Identifier: BSD-3-Clause
#include <set>

#include "tests/ptx/assembler.h"
#include "tests/ptx/table.h"
#include "tests/ptx/type.h"

namespace slimpi::test::ptx {

namespace {

std::vector<std::string> parts_of(const std::string& opcode) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end; (end = opcode.find('.', begin)) != opcode.npos; begin = end + 1)
    parts.push_back(opcode.substr(begin, end - begin));
  parts.push_back(opcode.substr(begin));
  return parts;
}

}  // namespace

// Opcodes outlive programs, for messages.
const char* Assembler::kept(const std::string& opcode) const {
  static std::set<std::string> all;
  return all.insert(opcode).first->c_str();
}

void Assembler::expect_operands(const Statement& statement, std::size_t count) const {
  if (statement.operands.size() != count)
    fail(statement.opcode + " has " + std::to_string(statement.operands.size()) +
         " operands where it takes " + std::to_string(count));
}

Instruction Assembler::encode(const Statement& statement) {
  Instruction i;
  i.line = statement.line;
  i.opcode = kept(statement.opcode);
  if (statement.predicate >= 0) {
    i.conditional = true;
    i.negated = statement.negated;
    i.predicate = placed_.at(function_).first_register + unsigned(statement.predicate);
  }
  const std::string& opcode = statement.opcode;
  if (opcode == "bra" || opcode == "bra.uni")
    encode_branch(statement, i);
  else if (opcode == "call" || opcode == "call.uni")
    encode_call(statement, i);
  else if (opcode == "ret" || opcode == "exit")
    i.flow = Flow::leave;
  else if (opcode.substr(0, 4) == "mov.")
    encode_move(statement, i);
  else if (opcode.substr(0, 5) == "atom.")
    encode_atomic(statement, i);
  else if (opcode.substr(0, 9) == "prefetch.")
    i.run = [](Warp&, const Instruction&, std::uint32_t) {};  // any address may be prefetched
  else if (!encode_access(statement, i) && !encode_barrier(statement, i))
    encode_row(statement, i);
  return i;
}

void Assembler::encode_branch(const Statement& statement, Instruction& i) {
  expect_operands(statement, 1);
  const auto found = function_->labels.find(statement.operands[0].name);
  if (found == function_->labels.end()) fail("no label " + statement.operands[0].name);
  i.flow = Flow::branch;
  i.jump = placed_.at(function_).first_instruction + found->second;
}

// The copies of arguments (or, back, of results) between the variables of a call and its
// function's.
std::vector<Passed> Assembler::passed(const Operand* given,
                                      const std::vector<const Variable*>& wanted, bool back) {
  const std::size_t count = given == nullptr ? 0 : given->elements.size();
  if (count != wanted.size()) fail("the call and the function have not as many arguments");
  std::vector<Passed> all;
  const Function* const caller = function_;
  for (std::size_t k = 0; k < count; ++k) {
    const Variable* const here = given->elements[k].variable;
    if (here == nullptr || here->bytes != wanted[k]->bytes)
      fail("argument " + std::to_string(k) + " of the call is not what the function takes");
    const unsigned own = placed_.at(caller).frame + here->offset;
    all.push_back(back ? Passed{wanted[k]->offset, own, here->bytes}
                       : Passed{own, wanted[k]->offset, here->bytes});
  }
  return all;
}

void Assembler::encode_call(const Statement& statement, Instruction& i) {
  const Operand *results = nullptr, *arguments = nullptr;
  const Function* callee = nullptr;
  for (const Operand& operand : statement.operands)
    if (operand.form == Operand::Form::name)
      callee = module_.functions.at(operand.name).get();
    else if (operand.form == Operand::Form::vector)
      (callee == nullptr ? results : arguments) = &operand;
  if (callee == nullptr) fail("a call of no function");
  const Placed& to = placed_.at(callee);
  Call call = {to.first_instruction, passed(arguments, callee->parameters, false),
               passed(results, callee->results, true), to.frame, callee->frame_bytes};
  for (Passed& one : call.arguments) one.to += to.frame;
  for (Passed& one : call.results) one.from += to.frame;
  i.flow = Flow::call;
  i.jump = unsigned(program_.calls.size());
  program_.calls.push_back(call);
}

// bar.sync, where all threads of the block meet; bar.warp.sync is a row of the table.
bool Assembler::encode_barrier(const Statement& statement, Instruction& i) {
  if (statement.opcode != "bar.sync" && statement.opcode != "barrier.sync.aligned") return false;
  expect_operands(statement, 1);
  if (statement.operands[0].form != Operand::Form::number) fail("a barrier without a number");
  i.flow = Flow::meet_block;
  i.barrier = unsigned(statement.operands[0].number);
  return true;
}

void Assembler::encode_row(const Statement& statement, Instruction& i) {
  const auto found = table().find(statement.opcode);
  if (found == table().end())
    fail("the interpreter does not know '" + statement.opcode +
         "'; add it to the instruction table (tests/ptx/table.h)");
  const Row& row = found->second;
  i.run = row.run;
  i.flow = row.flow;
  expect_operands(statement, row.from.size() + (row.to != 0 ? 1 : 0));
  const Operand* operand = statement.operands.data();
  const auto check = [&](const Operand& given, unsigned bits) {
    if (given.width == 0) return;
    if (row.exact_widths ? given.width != bits : given.width < bits)
      fail(statement.opcode + " takes registers of " + std::to_string(bits) + " bits; " +
           given.name + " has " + std::to_string(given.width));
  };
  if (row.to != 0) {
    if (operand->form != Operand::Form::reg) fail("the result of " + statement.opcode + " is lost");
    check(*operand, row.to);
    i.width = std::uint8_t(operand->width);
    i.to[i.targets++] = slot_of(*operand++);
  }
  for (const unsigned bits : row.from) {
    check(*operand, bits);
    i.from[i.sources++] = slot_of(*operand++);
  }
}

void Assembler::set_vector(const Operand& operand, Slot* slots, unsigned* count, unsigned* width) {
  std::vector<Operand> one = {operand};
  const bool many = operand.form == Operand::Form::vector;
  for (const Operand& element : many ? operand.elements : one) {
    if (*count == 4) fail("a vector of more than four elements");
    if (element.width != 0) *width = element.width;
    slots[(*count)++] = slot_of(element);
  }
}

// mov.b64 %rd, {%r1, %r2} and back, or a plain copy.
void Assembler::encode_move(const Statement& statement, Instruction& i) {
  expect_operands(statement, 2);
  const Operand &to = statement.operands[0], &from = statement.operands[1];
  const auto type = type_of(parts_of(statement.opcode).back());
  if (!type || parts_of(statement.opcode).size() != 2) return encode_row(statement, i);
  unsigned to_width = 0, from_width = 0;
  set_vector(to, i.to, &i.targets, &to_width);
  set_vector(from, i.from, &i.sources, &from_width);
  const bool special = from.form == Operand::Form::special;
  if (i.targets * to_width != type->bits ||
      (from_width != 0 && !special && i.sources * from_width != type->bits))
    fail(statement.opcode + " of registers of other widths");
  i.width = std::uint8_t(i.targets > 1 ? to_width : i.sources > 1 ? from_width : type->bits);
  i.run = table().at(i.targets > 1 ? "mov split" : i.sources > 1 ? "mov join" : "mov").run;
}

}  // namespace slimpi::test::ptx
