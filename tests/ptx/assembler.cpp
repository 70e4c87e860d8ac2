// SPDX-License-Identifier: BSD-3-Clause
#include "tests/ptx/assembler.h"

#include <algorithm>

#include "tests/ptx/error.h"
#include "tests/ptx/memory.h"

namespace slimpi::test::ptx {

void Assembler::fail(const std::string& text) const {
  throw Error(at_line(module_.file, line_) + text);
}

// Places the function, and first those that it calls.
void Assembler::collect(const Function& function, std::vector<const Function*> callers) {
  if (std::find(callers.begin(), callers.end(), &function) != callers.end())
    fail(function.name + " calls itself, which the interpreter does not know");
  if (placed_.count(&function) != 0) return;
  callers.push_back(&function);
  for (const Statement& statement : function.statements) {
    if (statement.opcode.substr(0, 4) != "call") continue;
    line_ = statement.line;
    for (const Operand& operand : statement.operands)
      if (operand.form == Operand::Form::name) {
        const auto found = module_.functions.find(operand.name);
        if (found == module_.functions.end()) fail(operand.name + " has no body");
        collect(*found->second, callers);
      }
  }
  order_.push_back(&function);
  unsigned instructions = 0;
  for (const Function* before : order_)
    if (before != &function) instructions += unsigned(before->statements.size()) + 1;
  placed_[&function] = {program_.registers, program_.frame_bytes, instructions};
  program_.registers += function.registers;
  program_.frame_bytes += (function.frame_bytes + 15) / 16 * 16;
}

void Assembler::run(const Function& entry) {
  program_.name = entry.name;
  program_.file = module_.file;
  program_.argument_bytes = entry.argument_bytes;
  program_.most_threads = entry.most_threads;
  program_.shared_end = kFirstShared;
  collect(entry, {});
  for (const Function* function : order_) {
    function_ = function;
    for (const Statement& statement : function->statements) {
      line_ = statement.line;
      program_.code.push_back(encode(statement));
    }
    Instruction end;  // a function may end without ret
    end.flow = Flow::leave;
    end.line = line_;
    end.opcode = "}";
    program_.code.push_back(end);
  }
  program_.first = placed_.at(&entry).first_instruction;
  program_.slots = program_.registers + unsigned(program_.numbers.size());
  program_.executed.resize(program_.code.size());
}

Slot Assembler::number(std::uint64_t value) {
  const auto [found, added] =
      numbers_.emplace(value, program_.registers + Slot(program_.numbers.size()));
  if (added) program_.numbers.push_back(value);
  return found->second;
}

unsigned Assembler::frame_of(const Variable& variable) const {
  return placed_.at(function_).frame + variable.offset;
}

std::uint64_t Assembler::address_of(const Variable& variable) {
  if (variable.space == Space::kernel_param) return kParamWindow + variable.offset;
  if (variable.space == Space::frame) return kFrameWindow + frame_of(variable);
  // Shared variables are some bytes apart, so that an access behind one is found.
  constexpr unsigned kGap = 64;
  const auto [found, added] = shared_.emplace(&variable, 0);
  if (added) {
    const unsigned alignment = std::max(variable.alignment, 16u);
    found->second = (program_.shared_end + alignment - 1) / alignment * alignment;
    program_.shared[found->second] = found->second + variable.bytes;
    program_.shared_end = found->second + variable.bytes + kGap;
  }
  return found->second;
}

Slot Assembler::slot_of(const Operand& operand) {
  switch (operand.form) {
    case Operand::Form::reg:
      return placed_.at(function_).first_register + operand.reg;
    case Operand::Form::number:
      return number(operand.number);
    case Operand::Form::variable:
      return number(address_of(*operand.variable));
    case Operand::Form::special: {
      const auto found = program_.special.find(operand.name);
      if (found != program_.special.end()) return found->second;
      // A number of its own, which each warp sets.
      program_.numbers.push_back(0);
      return program_.special[operand.name] =
                 program_.registers + Slot(program_.numbers.size()) - 1;
    }
    default:
      fail("an operand of this form does not belong here");
  }
}

std::unique_ptr<Program> assemble(const Module& module, const Function& entry) {
  auto program = std::make_unique<Program>();
  Assembler(module, *program).run(entry);
  return program;
}

}  // namespace slimpi::test::ptx
