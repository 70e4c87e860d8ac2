// SPDX-License-Identifier: BSD-3-Clause
// The names that are visible in a function: registers and variables, by braces.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tests/ptx/module.h"

namespace slimpi::test::ptx {

struct Register {
  unsigned number, width;
};

// %r<9> declares %r0 to %r8.
struct RegisterRange {
  unsigned first, count, width;
};

class Scopes {
 public:
  void open() { scopes_.emplace_back(); }
  void close() { scopes_.pop_back(); }
  std::size_t depth() const { return scopes_.size(); }

  void add(const std::string& name, Register reg) { scopes_.back().registers[name] = reg; }
  void add(const std::string& prefix, RegisterRange range) {
    scopes_.back().ranges[prefix] = range;
  }
  void add(const Variable* variable) { scopes_.back().variables[variable->name] = variable; }

  const Variable* variable(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->variables.find(name); found != scope->variables.end())
        return found->second;
    return nullptr;
  }

  bool find(const std::string& name, Register* reg) const {
    const std::size_t digits = name.find_last_not_of("0123456789") + 1;
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto one = scope->registers.find(name); one != scope->registers.end()) {
        *reg = one->second;
        return true;
      }
      const auto range = scope->ranges.find(name.substr(0, digits));
      if (digits == name.size() || range == scope->ranges.end()) continue;
      const unsigned number = unsigned(std::stoul(name.substr(digits)));
      if (number >= range->second.count) return false;
      *reg = {range->second.first + number, range->second.width};
      return true;
    }
    return false;
  }

 private:
  struct Scope {
    std::map<std::string, Register> registers;
    std::map<std::string, RegisterRange> ranges;
    std::map<std::string, const Variable*> variables;
  };
  std::vector<Scope> scopes_;
};

}  // namespace slimpi::test::ptx
