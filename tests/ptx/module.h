// SPDX-License-Identifier: BSD-3-Clause
// A file of PTX, parsed: its functions as lists of statements, with names resolved.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace slimpi::test::ptx {

// Where a variable lies. A thread's `frame` has what it passes to functions, and local memory.
enum class Space : std::uint8_t { generic, global, shared, kernel_param, frame };

struct Variable {
  std::string name;
  Space space;
  unsigned bytes, alignment;
  unsigned offset = 0;  // in the kernel's arguments or in the function's part of the frame
};

struct Operand {
  enum class Form { reg, special, number, variable, vector, name, sink };
  Form form = Form::sink;
  unsigned reg = 0;          // the number in the function
  unsigned width = 0;        // bits; 1 for a predicate, 0 for a number
  std::uint64_t number = 0;  // an immediate value
  const Variable* variable = nullptr;
  std::string name;     // of a label, a function or a special register
  bool memory = false;  // in brackets: the address base + offset
  std::int64_t offset = 0;
  std::vector<Operand> elements;  // of a vector, or of a list of arguments
};

struct Statement {
  unsigned line = 0;
  std::string opcode;
  int predicate = -1;  // the register that it depends on
  bool negated = false;
  std::vector<Operand> operands;
};

struct Function {
  std::string name;
  bool entry = false;
  unsigned line = 0;
  unsigned most_threads = 0;       // of a block, from .maxntid; 0: not said
  std::deque<Variable> variables;  // addresses of elements stay valid
  std::vector<const Variable*> parameters, results;
  unsigned registers = 0;
  unsigned frame_bytes = 0;     // of parameters, results, arguments of calls, local memory
  unsigned argument_bytes = 0;  // of an entry
  std::vector<Statement> statements;
  std::map<std::string, unsigned> labels;  // the number of the statement behind each
};

struct Module {
  std::string file;                // as in messages
  std::deque<Variable> variables;  // shared memory of all functions
  std::map<std::string, std::unique_ptr<Function>> functions;
};

// Throws Error with file and line for what it does not know.
std::unique_ptr<Module> parse(const std::string& file, const std::string& source);

}  // namespace slimpi::test::ptx
