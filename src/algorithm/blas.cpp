// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/blas.h"

#include "base/log.h"
#include "base/plugin.h"

namespace slimpi::algorithm {

namespace {

constexpr const char* kPart = "slimpi-blas.so";

struct Loaded {
  const slimpi_blas* blas = nullptr;
  std::string missing;
};

Loaded load() {
  Plugin plugin = Plugin::own(kPart);
  if (plugin.file().empty())
    return {nullptr, plugin.problem() +
                         "; slimpi builds it where configure finds OpenBLAS (Debian: "
                         "libopenblas-dev)"};
  if (!plugin.loaded())
    return {nullptr, std::string(kPart) + " needs OpenBLAS (Debian: libopenblas0, and " +
                         "libopenblas-dev to build slimpi): " + plugin.problem()};
  const auto* const blas = plugin.table<slimpi_blas>("slimpi_blas_load", SLIMPI_BLAS_VERSION);
  if (blas == nullptr) return {nullptr, plugin.problem()};
  log_debug(plugin.file() + ": " + blas->description);
  return {blas, ""};
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
