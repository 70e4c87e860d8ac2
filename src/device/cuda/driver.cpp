// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/driver.h"

#include <dlfcn.h>

#include "base/plugin.h"

namespace slimpi::device::cuda {

namespace {

const Library* g_library = nullptr;
Driver g_driver;

template <typename Function>
bool find(void* handle, const char* name, Function*& function) {
  if (find_function(handle, name, function)) return true;
  log_message(
      LogLevel::warn,
      std::string("GPU memory is left to MPI: the CUDA driver is too old, it has no ") + name);
  return false;
}

}  // namespace

bool open_driver(const Library& library) {
  g_library = &library;
  void* const handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
#define SLIMPI_CUDA_FIND(name) \
  if (!find(handle, #name, g_driver.name)) return false;
  SLIMPI_CUDA_FUNCTIONS(SLIMPI_CUDA_FIND)
#undef SLIMPI_CUDA_FIND
#define SLIMPI_CUDA_FIND(name) \
  g_driver.name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name));
  SLIMPI_CUDA_LATER_FUNCTIONS(SLIMPI_CUDA_FIND)
#undef SLIMPI_CUDA_FIND
  g_driver.cuFuncLoad =
      reinterpret_cast<decltype(g_driver.cuFuncLoad)>(dlsym(handle, "cuFuncLoad"));
  return true;
}

const Driver& driver() {
  return g_driver;
}

Status failed(Status status, const std::string& text) {
  return g_library->fail(status, text.c_str());
}

void log_message(LogLevel level, const std::string& text) {
  g_library->log(level, text.c_str());
}

Status check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return Status::ok;
  const char *name = nullptr, *text = nullptr;
  if (g_driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
    name = "CUDA error";
  if (g_driver.cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) text = "unknown";
  const bool memory = result == CUDA_ERROR_OUT_OF_MEMORY;
  return failed(
      memory ? Status::no_memory : Status::device,
      std::string(what) + ": " + name + " (" + std::to_string(int(result)) + "): " + text);
}

}  // namespace slimpi::device::cuda
