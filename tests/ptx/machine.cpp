// SPDX-License-Identifier: BSD-3-Clause
#include "tests/ptx/machine.h"

#include <cfenv>
#include <fstream>
#include <sstream>

#include "tests/ptx/warp.h"

namespace slimpi::test::ptx {

namespace {

// The interpreter's own arithmetic rounds to nearest, whatever the program does.
class DefaultEnvironment {
 public:
  DefaultEnvironment() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultEnvironment() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
};

}  // namespace

// A program, and a block that its launches use one after the other.
struct Kernel {
  std::unique_ptr<Program> program;
  Launch launch = {};
  std::unique_ptr<Block> block;
};

Machine::Machine() = default;
Machine::~Machine() = default;

void Machine::load(const std::string& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) throw Error(file + ": it cannot be read");
  load(file.substr(file.rfind('/') + 1), text.str());
}

void Machine::load(const std::string& file, const std::string& source) {
  modules_.push_back(parse(file, source));
}

Kernel& Machine::kernel(const std::string& name) {
  std::unique_ptr<Kernel>& kernel = kernels_[name];
  if (kernel != nullptr) return *kernel;
  for (const auto& module : modules_) {
    const auto found = module->functions.find(name);
    if (found == module->functions.end() || !found->second->entry) continue;
    kernel = std::make_unique<Kernel>();
    kernel->program = assemble(*module, *found->second);
    return *kernel;
  }
  throw Error("no file of PTX has a kernel " + name);
}

void Machine::run(const std::string& name, unsigned blocks, unsigned threads, const void* arguments,
                  std::size_t bytes, Allocations& memory) {
  Kernel& kernel = this->kernel(name);
  Program& program = *kernel.program;
  const std::string where = program.file + ": " + name + ": ";
  if (bytes != program.argument_bytes)
    throw Error(where + "started with " + std::to_string(bytes) + " bytes of arguments; it takes " +
                std::to_string(program.argument_bytes));
  if (threads == 0 || threads % kLanes != 0 ||
      (program.most_threads != 0 && threads > program.most_threads))
    throw Error(where + "started with blocks of " + std::to_string(threads) + " threads");
  constexpr unsigned kMostShared = 48 << 10;  // without asking the driver for more
  unsigned shared = 0;
  for (const auto& [first, end] : program.shared) shared += end - first;
  if (shared > kMostShared) throw Error(where + "too much shared memory");
  const DefaultEnvironment environment;
  if (kernel.block != nullptr && kernel.launch.threads != threads) kernel.block = nullptr;
  kernel.launch = {&program, blocks, threads, static_cast<const unsigned char*>(arguments),
                   &memory};
  if (kernel.block == nullptr) kernel.block = std::make_unique<Block>(kernel.launch);
  for (unsigned number = 0; number < blocks; ++number) kernel.block->run(number);
}

std::vector<std::string> Machine::idle() const {
  std::vector<std::string> names;
  for (const auto& module : modules_)
    for (const auto& [name, function] : module->functions)
      if (function->entry && kernels_.count(name) == 0) names.push_back(module->file + ": " + name);
  return names;
}

// A function that several kernels call is counted once.
Machine::Coverage Machine::coverage() const {
  std::map<std::pair<std::string, unsigned>, bool> lines;
  for (const auto& [name, kernel] : kernels_) {
    const auto& program = kernel->program;
    for (std::size_t i = 0; i < program->code.size(); ++i)
      if (program->code[i].opcode[0] != '}') {
        bool& executed = lines[{program->file, program->code[i].line}];
        executed = executed || program->executed[i] != 0;
      }
  }
  Coverage all;
  for (const auto& [line, executed] : lines) {
    ++all.instructions;
    all.executed += executed ? 1 : 0;
    if (!executed) all.missing.push_back(line.first + ":" + std::to_string(line.second));
  }
  return all;
}

}  // namespace slimpi::test::ptx

slimpi::test::ptx::Machine* slimpi_ptx_machine() {
  return new slimpi::test::ptx::Machine;
}
