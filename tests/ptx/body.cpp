// SPDX-License-Identifier: BSD-3-Clause
#include <cctype>

#include "tests/ptx/parser.h"
#include "tests/ptx/type.h"

namespace slimpi::test::ptx {

namespace {

bool is_number(std::string_view word) {
  return !word.empty() && ((word[0] >= '0' && word[0] <= '9') || word[0] == '-');
}

}  // namespace

void Parser::read_body(Function& function) {
  expect("{");
  const std::size_t outside = scopes_.depth();
  scopes_.open();
  frame_marks_.push_back(frame_);
  while (scopes_.depth() > outside) read_statement(function);
}

void Parser::read_statement(Function& function) {
  if (peek().empty()) take();
  if (accept("{")) {
    scopes_.open();
    frame_marks_.push_back(frame_);
  } else if (accept("}")) {
    scopes_.close();
    frame_ = frame_marks_.back();
    frame_marks_.pop_back();
  } else if (peek(1) == ":") {
    function.labels[take()] = unsigned(function.statements.size());
    expect(":");
  } else if (peek()[0] == '.') {
    read_declaration(function);
  } else {
    read_instruction(function);
  }
}

void Parser::read_declaration(Function& function) {
  const std::string word = take();
  if (word == ".reg") return read_registers(function);
  if (word == ".pragma") {  // advice for ptxas
    take();
  } else if (word == ".shared" || word == ".param" || word == ".local") {
    function.variables.push_back(read_variable(word == ".shared" ? Space::shared : Space::frame));
    if (word != ".shared") place(function, function.variables.back());
    scopes_.add(&function.variables.back());
  } else {
    --at_;
    fail("the interpreter does not know '" + word +
         "'; add it to Parser::read_declaration in tests/ptx/body.cpp");
  }
  expect(";");
}

// .reg .b32 %r<9>; or .reg .u64 %tmp;
void Parser::read_registers(Function& function) {
  const std::string word = take();
  const auto type = type_of(std::string_view(word).substr(1));
  if (!type) fail("'" + word + "' is no type of a register");
  do {
    const std::string name = take();
    unsigned count = 1;
    if (accept("<")) {
      count = unsigned(number());
      expect(">");
      scopes_.add(name, RegisterRange{function.registers, count, type->bits});
    } else {
      scopes_.add(name, Register{function.registers, type->bits});
    }
    function.registers += count;
  } while (accept(","));
  expect(";");
}

void Parser::read_instruction(Function& function) {
  Statement statement;
  if (accept("@")) {
    statement.negated = accept("!");
    const Operand predicate = read_name();
    if (predicate.form != Operand::Form::reg || predicate.width != 1) fail("no predicate after @");
    statement.predicate = int(predicate.reg);
  }
  statement.line = tokens_[at_].line;
  statement.opcode = take();
  while (!accept(";")) {
    statement.operands.push_back(read_operand());
    // A second result, of shfl: as if nothing had written it.
    if (accept("|")) read_operand();
    if (peek() != ";") expect(",");
  }
  function.statements.push_back(std::move(statement));
}

Operand Parser::read_operand() {
  if (accept("{")) return read_list("}");
  if (accept("(")) return read_list(")");
  if (accept("[")) return read_address();
  if (accept("_")) return {};
  if (!is_number(peek())) return read_name();
  Operand operand;
  operand.form = Operand::Form::number;
  operand.number = number();
  return operand;
}

Operand Parser::read_list(std::string_view end) {
  Operand operand;
  operand.form = Operand::Form::vector;
  while (!accept(end)) {
    operand.elements.push_back(read_operand());
    if (peek() != end) expect(",");
  }
  return operand;
}

Operand Parser::read_address() {
  Operand operand = read_operand();
  operand.memory = true;
  if (accept("+")) operand.offset = std::int64_t(number());
  expect("]");
  return operand;
}

Operand Parser::read_name() {
  Operand operand;
  Register reg;
  operand.name = take();
  if (scopes_.find(operand.name, &reg)) {
    operand.form = Operand::Form::reg;
    operand.reg = reg.number;
    operand.width = reg.width;
  } else if ((operand.variable = scopes_.variable(operand.name)) != nullptr) {
    operand.form = Operand::Form::variable;
  } else if (operand.name[0] == '%') {
    operand.form = Operand::Form::special;
    operand.width = 32;
  } else if (operand.name[0] == '_' || operand.name[0] == '$' ||
             std::isalpha((unsigned char)operand.name[0]) != 0) {
    operand.form = Operand::Form::name;
  } else {
    --at_;
    fail("'" + operand.name + "' is no operand");
  }
  return operand;
}

}  // namespace slimpi::test::ptx
