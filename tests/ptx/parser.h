// SPDX-License-Identifier: BSD-3-Clause
// The parser's parts: parser.cpp reads a module and its declarations, body.cpp what a function
// does.
#pragma once
#include <string>
#include <vector>

#include "tests/ptx/module.h"
#include "tests/ptx/scope.h"
#include "tests/ptx/tokens.h"

namespace slimpi::test::ptx {

class Parser {
 public:
  Parser(Module& module, const std::string& source) : module_(module), tokens_(tokens_of(source)) {}
  void run();

 private:
  [[noreturn]] void fail(const std::string& text) const;
  std::string_view peek(std::size_t ahead = 0) const;
  std::string take();
  bool accept(std::string_view text);
  void expect(std::string_view text);
  std::uint64_t number();
  void skip_line();

  // parser.cpp
  void read_function(bool entry);
  std::vector<const Variable*> read_parameters(Function& function);
  Variable read_variable(Space space);
  void place(Function& function, Variable& variable);
  void read_limits(Function& function);

  // body.cpp
  void read_body(Function& function);
  void read_statement(Function& function);
  void read_declaration(Function& function);
  void read_registers(Function& function);
  void read_instruction(Function& function);
  Operand read_operand();
  Operand read_list(std::string_view end);
  Operand read_address();
  Operand read_name();

  Module& module_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Scopes scopes_;
  std::vector<unsigned> frame_marks_;  // the frame's length where each open brace is
  unsigned frame_ = 0;
};

}  // namespace slimpi::test::ptx
