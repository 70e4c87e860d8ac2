// SPDX-License-Identifier: BSD-3-Clause
// The functions of slimpi.h.
#include "slimpi.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/described_tensor.h"
#include "base/shape_hints.h"
#include "call/entry.h"
#include "call/runtime.h"
#include "call/saved_state.h"
#include "intercept/catch_all.h"

using slimpi::call::Runtime;
using slimpi::intercept::catch_all;

SLIMPI_EXPORT const char* slimpi_version(void) {
  return SLIMPI_PACKAGE_VERSION;
}

SLIMPI_EXPORT int slimpi_get_statistics(slimpi_statistics_t* statistics) {
  if (statistics == nullptr || statistics->size < sizeof(std::uint64_t)) return 1;
  const Runtime* const runtime = Runtime::started();
  bool has_mpi = runtime != nullptr;
  if (!has_mpi) (void)catch_all([&] { has_mpi = Runtime::finds_mpi(); });
  if (!has_mpi) return 1;
  const slimpi::Counts counts =
      runtime == nullptr ? slimpi::Counts() : runtime->statistics.counts();
  slimpi_statistics_t filled{};
  filled.size = std::min<std::uint64_t>(statistics->size, sizeof filled);
  filled.calls = counts.calls;
  filled.compressed = counts.compressed;
  filled.bytes_in = counts.bytes_in;
  filled.bytes_sent = counts.bytes_sent;
  filled.bytes_plain = counts.bytes_plain;
  std::memcpy(statistics, &filled, filled.size);
  return 0;
}

SLIMPI_EXPORT int slimpi_set_shape(std::uint64_t count, std::uint64_t rows, std::uint64_t columns) {
  std::uint64_t product = 0;
  if (rows == 0 || __builtin_mul_overflow(rows, columns, &product) || product != count) return 1;
  const auto set = [&] { slimpi::ShapeHints::all().set({count, rows, columns}); };
  return catch_all(set) == slimpi::Status::ok ? 0 : 1;
}

SLIMPI_EXPORT int slimpi_describe_next(const slimpi_tensor_t* described) {
  if (described == nullptr) {
    if (slimpi::DescribedTensor::has_next()) slimpi::DescribedTensor::take_next();
    return 0;
  }
  if (described->size < sizeof(std::uint64_t)) return 1;
  slimpi_tensor_t given{};
  std::memcpy(&given, described, std::min<std::uint64_t>(described->size, sizeof given));
  if (given.matrix_count != 0 && given.matrices == nullptr) return 1;
  bool good = true;
  const auto set = [&] {
    slimpi::DescribedTensor tensor;
    if (given.name != nullptr) tensor.name = given.name;
    for (std::uint64_t i = 0; good && i < given.matrix_count; ++i) {
      const auto& [rows, columns] = given.matrices[i];
      std::uint64_t product = 0;
      good = !__builtin_mul_overflow(rows, columns, &product) && product != 0;
      tensor.matrices.push_back({rows, columns});
    }
    if (good) slimpi::DescribedTensor::set_next(std::move(tensor));
  };
  return catch_all(set) == slimpi::Status::ok && good ? 0 : 1;
}

namespace {
// slimpi's state of the program's communicator, on which no sum is in flight then; null where there
// is none.
slimpi::comm::Communicator* find(const void* comm, const char* name) {
  if (comm == nullptr || name == nullptr || *name == '\0') return nullptr;
  const auto handle = slimpi::mpi::read<slimpi::mpi::Comm>(comm);
  Runtime* const runtime = Runtime::get(handle);
  if (runtime == nullptr || runtime->finished) return nullptr;
  slimpi::call::wait_for_sums_on(handle);
  return runtime->find(handle);
}
}  // namespace

SLIMPI_EXPORT int slimpi_get_state(const void* comm, const char* name, void* state,
                                   std::uint64_t* size) {
  bool got = false;
  (void)catch_all([&] {
    slimpi::comm::Communicator* const communicator = size == nullptr ? nullptr : find(comm, name);
    if (communicator == nullptr) return;
    const auto bytes = slimpi::call::save_state(*communicator, name);
    if (!bytes) return;
    got = state == nullptr || *size >= bytes->size();
    if (got && state != nullptr) std::memcpy(state, bytes->data(), bytes->size());
    *size = bytes->size();
  });
  return got ? 0 : 1;
}

SLIMPI_EXPORT int slimpi_set_state(const void* comm, const char* name, const void* state,
                                   std::uint64_t size) {
  bool set = false;
  (void)catch_all([&] {
    slimpi::comm::Communicator* const communicator = state == nullptr ? nullptr : find(comm, name);
    set = communicator != nullptr &&
          slimpi::call::restore_state(*communicator, name,
                                      {static_cast<const std::byte*>(state), size});
  });
  return set ? 0 : 1;
}

// For code that ends a process without MPI_Finalize: writes the report and the trace now.
SLIMPI_EXPORT void slimpi_finish(void) {
  (void)catch_all([] {
    if (Runtime* const runtime = Runtime::get(); runtime != nullptr) runtime->finish();
  });
}
