// SPDX-License-Identifier: BSD-3-Clause
// The functions of slimpi.h.
#include "slimpi.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "base/described_tensor.h"
#include "call/entry.h"
#include "call/runtime.h"
#include "call/saved_state.h"
#include "intercept/catch_all.h"
#include "observe/log.h"

namespace slimpi::intercept {

SLIMPI_EXPORT const char* slimpi_version(void) {
  return SLIMPI_PACKAGE_VERSION;
}

SLIMPI_EXPORT int slimpi_get_statistics(slimpi_statistics_t* statistics) {
  if (statistics == nullptr || statistics->size < sizeof(std::uint64_t)) return 1;
  const Runtime* const runtime = Runtime::started();
  bool has_mpi = false;
  (void)catch_all([&] { has_mpi = Runtime::finds_mpi(); });
  if (!has_mpi) return 1;
  const Counts counts = runtime == nullptr ? Counts() : runtime->statistics.counts();
  slimpi_statistics_t filled{};
  filled.size = std::min<std::uint64_t>(statistics->size, sizeof filled);
#define SLIMPI_COUNTER(name, key, whose, api) SLIMPI_FILL_##api(name)
#define SLIMPI_FILL_field(name) filled.name = counts.name;
#define SLIMPI_FILL_none(name)
#include "observe/counters.def"
#undef SLIMPI_FILL_field
#undef SLIMPI_FILL_none
  std::memcpy(statistics, &filled, filled.size);
  return 0;
}

namespace {
// Says once what a function of the program's was given, and returns what the function does.
template <typename... Part>
int refuse(const char* function, const Part&... part) {
  (void)catch_all([&] {
    std::string text = std::string(function) + ": ";
    const auto add = [&](const auto& word) {
      if constexpr (std::is_integral_v<std::decay_t<decltype(word)>>)
        text += std::to_string(word);
      else
        text += word;
    };
    (add(part), ...);
    log_once(LogLevel::warn, text);
  });
  return 1;
}

// Whether the matrix has elements, and as many as an integer can hold.
bool has_size(std::uint64_t rows, std::uint64_t columns, std::uint64_t* product) {
  return !__builtin_mul_overflow(rows, columns, product) && *product != 0;
}
}  // namespace

SLIMPI_EXPORT int slimpi_describe_next(const slimpi_tensor_t* described) {
  if (described == nullptr) {
    if (DescribedTensor::has_next()) DescribedTensor::take_next();
    return 0;
  }
  constexpr const char* kName = "slimpi_describe_next";
  if (described->size < sizeof(std::uint64_t))
    return refuse(kName, "size is ", described->size, "; set it to sizeof(slimpi_tensor_t)");
  slimpi_tensor_t given{};
  std::memcpy(&given, described, std::min<std::uint64_t>(described->size, sizeof given));
  if (given.matrix_count != 0 && given.matrices == nullptr)
    return refuse(kName, "matrices is NULL where matrix_count is ", given.matrix_count,
                  "; pass the matrices, or 0 of them");
  for (std::uint64_t i = 0; i < given.matrix_count; ++i) {
    const auto& [rows, columns] = given.matrices[i];
    std::uint64_t product = 0;
    if (!has_size(rows, columns, &product))
      return refuse(kName, "matrix ", i, " is ", rows, " x ", columns,
                    "; rows and columns must be those of a part of the buffer");
  }
  const auto set = [&] {
    DescribedTensor tensor;
    if (given.name != nullptr) tensor.name = given.name;
    for (std::uint64_t i = 0; i < given.matrix_count; ++i)
      tensor.matrices.push_back({given.matrices[i].rows, given.matrices[i].columns});
    DescribedTensor::set_next(std::move(tensor));
  };
  return catch_all(set) == Status::ok ? 0 : 1;
}

namespace {
// slimpi's state of the program's communicator, on which no sum is in flight then; null where there
// is none.
comm::Communicator* find(const void* comm, const char* name) {
  if (comm == nullptr || name == nullptr || *name == '\0') return nullptr;
  const auto handle = mpi::read<mpi::Comm>(comm);
  Runtime* const runtime = Runtime::get(handle);
  if (runtime == nullptr || runtime->finished) return nullptr;
  call::wait_for_sums_on(handle);
  return call::find_state_owner(handle, name);
}
}  // namespace

SLIMPI_EXPORT int slimpi_get_state(const void* comm, const char* name, void* state,
                                   std::uint64_t* size) {
  bool got = false;
  (void)catch_all([&] {
    comm::Communicator* const communicator = size == nullptr ? nullptr : find(comm, name);
    if (communicator == nullptr) return;
    const auto bytes = call::save_state(*communicator, name);
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
    const bool drops = state == nullptr && size == 0;
    comm::Communicator* const communicator =
        state == nullptr && !drops ? nullptr : find(comm, name);
    set = communicator != nullptr &&
          (drops ? call::drop_state(*communicator, name)
                 : call::restore_state(*communicator, name,
                                       {static_cast<const std::byte*>(state), size}));
  });
  return set ? 0 : 1;
}

// For code that ends a process without MPI_Finalize: writes the report and the trace now.
SLIMPI_EXPORT void slimpi_finish(void) {
  (void)catch_all([] {
    if (Runtime* const runtime = Runtime::get(); runtime != nullptr) runtime->finish();
  });
}

}  // namespace slimpi::intercept
