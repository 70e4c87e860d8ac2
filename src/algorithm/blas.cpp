// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/blas.h"

#include <dlfcn.h>

#include "base/log.h"
#include "base/place.h"

namespace slimpi::algorithm {

namespace {

constexpr const char* kPart = "slimpi-blas.so";

struct Loaded {
  const slimpi_blas* blas = nullptr;
  std::string missing;
};

// The plugin stays loaded: OpenBLAS does not unload cleanly after it has started threads.
Loaded load() {
  const std::string part = find_plugin(kPart);
  if (part.empty())
    return {nullptr, std::string(kPart) +
                         " is not installed; slimpi builds it where configure finds OpenBLAS "
                         "(Debian: libopenblas-dev)"};
  void* const handle = dlopen(part.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return {nullptr, std::string(kPart) + " needs OpenBLAS (Debian: libopenblas0, and " +
                         "libopenblas-dev to build slimpi): " + dlerror()};
  const auto load_part =
      reinterpret_cast<slimpi_blas_load_function*>(dlsym(handle, "slimpi_blas_load"));
  Loaded loaded;
  char error[256] = "it is something else";
  if (load_part == nullptr ||
      load_part(SLIMPI_BLAS_VERSION, &loaded.blas, error, sizeof error) != 0)
    return {nullptr, part + " cannot be used: " + error};
  log_debug(part + ": " + loaded.blas->description);
  return loaded;
}

const Loaded& loaded() {
  static const Loaded once = load();
  return once;
}

}  // namespace

Status find_blas(const slimpi_blas** blas) {
  *blas = loaded().blas;
  return *blas != nullptr ? Status::ok : fail(Status::unsupported, loaded().missing);
}

std::string blas_missing() {
  return loaded().missing;
}

}  // namespace slimpi::algorithm
