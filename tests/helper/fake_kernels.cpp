// SPDX-License-Identifier: BSD-3-Clause
#include "tests/helper/fake_kernels.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <string>

#include "tests/helper/emulated_cuda.h"
#include "tests/helper/fake_driver.h"
#include "tests/helper/fake_state.h"
#include "tests/helper/protected_memory.h"
#include "tests/ptx/machine.h"

#undef threadIdx
#undef blockIdx
#undef __shared__

namespace slimpi::test {

namespace {

// Null without FAKE_PTX. Under protected_mutex().
ptx::Machine* machine() {
  static ptx::Machine* const made = []() -> ptx::Machine* {
    const char* const given = std::getenv("FAKE_PTX");
    if (given == nullptr || *given == 0) return nullptr;
    void* const library = dlopen("libslimpi_ptx.so", RTLD_NOW);
    if (library == nullptr) die(dlerror());
    ptx::Machine* const loaded =
        decltype(&slimpi_ptx_machine)(dlsym(library, "slimpi_ptx_machine"))();
    const std::string files = given;
    for (std::size_t begin = 0, end = 0; end != files.npos; begin = end + 1) {
      end = files.find(':', begin);
      loaded->load(files.substr(begin, end - begin));
    }
    return loaded;
  }();
  return made;
}

// What `use` gives for the machine; the interpreter's errors end the program.
template <typename Use>
auto with_machine(const Use& use) {
  const std::lock_guard lock(protected_mutex());
  try {
    return use(machine());
  } catch (const ptx::Error& error) {
    die(error.what());
  }
}

}  // namespace

void run_kernel(const EmulatedKernel& kernel, unsigned blocks, unsigned threads,
                const void* arguments, int device) {
  with_machine([&](ptx::Machine* machine) {
    if (machine == nullptr) return run_emulated(kernel, blocks, threads, arguments);
    ptx::Allocations memory;
    for (const auto& [begin, allocation] : fake_driver().memory)
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      if (const auto* const given = reinterpret_cast<const void*>(begin);
          allocation.device == device && is_for_kernels(given, true))
        memory.add(reach(given), allocation.bytes);
    machine->run(kernel.name, blocks, threads, arguments, kernel.bytes, memory);
  });
}

}  // namespace slimpi::test

using namespace slimpi::test;

extern "C" {

const char* slimpi_fake_idle_kernels(void) {
  static std::string text;
  return with_machine([](ptx::Machine* machine) -> const char* {
    if (machine == nullptr) return nullptr;
    text.clear();
    for (const std::string& name : machine->idle()) text += name + "\n";
    return text.c_str();
  });
}

size_t slimpi_fake_instructions(int executed) {
  return with_machine([&](ptx::Machine* machine) -> size_t {
    if (machine == nullptr) return 0;
    const ptx::Machine::Coverage coverage = machine->coverage();
    return executed != 0 ? coverage.executed : coverage.instructions;
  });
}

const char* slimpi_fake_missing_lines(void) {
  static std::string text;
  return with_machine([](ptx::Machine* machine) -> const char* {
    if (machine == nullptr) return nullptr;
    text.clear();
    for (const std::string& line : machine->coverage().missing) text += line + "\n";
    return text.c_str();
  });
}

}  // extern "C"

extern "C" {

// All are there from the start.
CUresult cuFuncLoad(CUfunction) {
  FAKE_ENTER(cuFuncLoad);
  return CUDA_SUCCESS;
}

// By which kernels would be started.
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  FAKE_ENTER(cuCtxGetStreamPriorityRange);
  *least = 0, *greatest = -5;
  return CUDA_SUCCESS;
}

}  // extern "C"
