// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/blas.h"

#include <sys/mman.h>

#include "base/log.h"
#include "base/plugin.h"

namespace slimpi::algorithm {

namespace {

constexpr const char* kPlugin = "slimpi-blas.so";

// Address space for OpenBLAS: its code, the buffer that it takes while it is loaded, and the stacks
// of its threads.
constexpr std::size_t kRoom = std::size_t(256) << 20;

struct Loaded {
  const slimpi_blas* blas = nullptr;
  std::string missing;
};

// Without its buffer OpenBLAS is never loaded: it asks again, for ever.
bool has_room() {
  void* const room =
      mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  munmap(room, kRoom);
  return true;
}

Loaded load() {
  if (!has_room())
    return {nullptr, "OpenBLAS needs " + std::to_string(kRoom >> 20) +
                         " MiB of address space; raise the limit (ulimit -v)"};
  Plugin plugin = Plugin::own(kPlugin);
  if (plugin.file().empty())
    return {nullptr, plugin.problem() +
                         "; slimpi builds it where configure finds OpenBLAS (Debian: "
                         "libopenblas-dev)"};
  if (!plugin.loaded())
    return {nullptr, std::string(kPlugin) + " needs OpenBLAS (Debian: libopenblas0, and " +
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

Status reserve_blas() {
  const slimpi_blas* blas = nullptr;
  SLIMPI_TRY(find_blas(&blas));
  if (blas->reserve() == 0) return Status::ok;
  return fail(Status::no_memory, "no address space for OpenBLAS; raise the limit (ulimit -v)");
}

std::string blas_missing() {
  return loaded().missing;
}

}  // namespace slimpi::algorithm
