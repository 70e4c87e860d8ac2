// SPDX-License-Identifier: BSD-3-Clause
#include "tests/ptx/parser.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "tests/ptx/error.h"
#include "tests/ptx/type.h"

namespace slimpi::test::ptx {

void Parser::fail(const std::string& text) const {
  throw Error(at_line(module_.file, tokens_[at_].line) + text);
}

std::string_view Parser::peek(std::size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)].text;
}

std::string Parser::take() {
  if (peek().empty()) fail("the file ends inside of a statement");
  return std::string(tokens_[at_++].text);
}

bool Parser::accept(std::string_view text) {
  if (peek() != text) return false;
  ++at_;
  return true;
}

void Parser::expect(std::string_view text) {
  if (!accept(text))
    fail("'" + std::string(peek()) + "' where '" + std::string(text) + "' belongs");
}

// Integers, and floats as their bits: 0f3F800000, 0d3FF0000000000000.
std::uint64_t Parser::number() {
  std::string text = take();
  int base = 0;
  if (text.size() > 2 && (text[1] == 'f' || text[1] == 'd')) {
    text = text.substr(2);
    base = 16;
  }
  char* end = nullptr;
  errno = 0;
  const std::uint64_t value = std::strtoull(text.c_str(), &end, base);
  if (end == text.c_str() || (*end != 0 && std::string(end) != "U") || errno != 0) {
    --at_;
    fail("'" + text + "' is not a number");
  }
  return value;
}

void Parser::skip_line() {
  for (const unsigned line = tokens_[at_].line; !peek().empty() && tokens_[at_].line == line;)
    ++at_;
}

void Parser::run() {
  scopes_.open();
  while (!peek().empty()) {
    if (peek() == ".version" || peek() == ".target" || peek() == ".address_size") {
      skip_line();
    } else if (accept(".visible") || accept(".weak")) {
      continue;
    } else if (accept(".entry")) {
      read_function(true);
    } else if (accept(".func")) {
      read_function(false);
    } else if (accept(".shared")) {
      module_.variables.push_back(read_variable(Space::shared));
      scopes_.add(&module_.variables.back());
      expect(";");
    } else {
      fail("the interpreter does not know '" + std::string(peek()) +
           "'; add it to Parser::run in tests/ptx/parser.cpp");
    }
  }
}

// .align 8 .b8 name[64], or .b32 name
Variable Parser::read_variable(Space space) {
  Variable variable = {{}, space, 0, 0, 0};
  if (accept(".align")) variable.alignment = unsigned(number());
  const std::string word = take();
  const auto type = word[0] == '.' ? type_of(word.substr(1)) : std::nullopt;
  if (!type || type->bits < 8) fail("'" + word + "' is no type of a variable");
  variable.bytes = type->bits / 8;
  variable.alignment = std::max(variable.alignment, variable.bytes);
  variable.name = take();
  while (accept("[")) {
    variable.bytes *= unsigned(number());
    expect("]");
  }
  return variable;
}

// Gives a parameter, an argument or a local variable its place.
void Parser::place(Function& function, Variable& variable) {
  unsigned& end = variable.space == Space::kernel_param ? function.argument_bytes : frame_;
  variable.offset = (end + variable.alignment - 1) / variable.alignment * variable.alignment;
  end = variable.offset + variable.bytes;
  if (variable.space == Space::frame) function.frame_bytes = std::max(function.frame_bytes, frame_);
}

std::vector<const Variable*> Parser::read_parameters(Function& function) {
  std::vector<const Variable*> all;
  while (!accept(")")) {
    expect(".param");
    function.variables.push_back(
        read_variable(function.entry ? Space::kernel_param : Space::frame));
    place(function, function.variables.back());
    scopes_.add(&function.variables.back());
    all.push_back(&function.variables.back());
    accept(",");
  }
  return all;
}

void Parser::read_limits(Function& function) {
  while (peek() == ".maxntid" || peek() == ".minnctapersm") {
    const bool threads = take() == ".maxntid";
    std::uint64_t product = number();
    while (accept(",")) product *= number();
    if (threads) function.most_threads = unsigned(product);
  }
}

void Parser::read_function(bool entry) {
  auto function = std::make_unique<Function>();
  function->entry = entry;
  function->line = tokens_[at_].line;
  frame_ = 0;
  scopes_.open();
  if (accept("(")) function->results = read_parameters(*function);
  function->name = take();
  if (accept("(")) function->parameters = read_parameters(*function);
  read_limits(*function);
  if (!accept(";")) {
    read_body(*function);
    const std::string name = function->name;
    if (!module_.functions.emplace(name, std::move(function)).second)
      fail(name + " is there twice");
  }
  scopes_.close();
}

std::unique_ptr<Module> parse(const std::string& file, const std::string& source) {
  auto module = std::make_unique<Module>();
  module->file = file;
  Parser(*module, source).run();
  return module;
}

}  // namespace slimpi::test::ptx
