// SPDX-License-Identifier: BSD-3-Clause
// Defines the functions of slimpi.h.
#include "call/communicator_attribute.h"
#include "call/control.h"
#include "call/saved_state.h"
#include "slimpi.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/described_tensor.h"
#include "call/runtime.h"
#include "intercept/names.h"
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
// Prints once why a function of slimpi.h refuses its arguments, and returns that function's result.
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

// Sets *product to the number of elements of a matrix, rows * columns. Returns whether this is not
// 0 and fits into 64 bits.
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
bool names_state(const void* comm, const char* name) {
  return comm != nullptr && name != nullptr && *name != '\0';
}
}  // namespace

SLIMPI_EXPORT int slimpi_get_state(const void* comm, const char* name, void* state,
                                   std::uint64_t* size) {
  bool got = false;
  (void)catch_all([&] {
    if (size == nullptr || !names_state(comm, name)) return;
    const auto bytes = call::save_state(mpi::read<mpi::Comm>(comm), name);
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
    if (!names_state(comm, name)) return;
    const auto handle = mpi::read<mpi::Comm>(comm);
    if (state != nullptr)
      set = call::restore_state(handle, name, {static_cast<const std::byte*>(state), size});
    else if (size == 0)
      set = call::drop_state(handle, name);
  });
  return set ? 0 : 1;
}

// Writes the report and the trace now. Called by programs that end without MPI_Finalize.
SLIMPI_EXPORT void slimpi_finish(void) {
  (void)catch_all([] {
    if (Runtime* const runtime = Runtime::get(); runtime != nullptr) runtime->finish();
  });
}

// The functions below are for bindings of other languages, such as the Python package. They call
// MPI without mpi.h, and so need its constants from slimpi.

namespace {

// Returns the value of an MPI constant as a word that can be passed to MPI's functions, or nothing
// if slimpi does not know the name. The values differ among MPIs, so the process's MPI must be
// known.
std::optional<mpi::Word> constant(std::string_view name) {
  using mpi::abi;
  using mpi::Word;
  mpi::find_abi();
  const struct {
    std::string_view name;
    Word value;
  } rows[] = {
      {"MPI_COMM_WORLD", Word(abi.comm_world)},
      {"MPI_FLOAT", Word(abi.type_float)},
      {"MPI_DOUBLE", Word(abi.type_double)},
      {"MPI_INT", Word(abi.type_int)},
      {"MPI_BYTE", Word(abi.type_byte)},
      {"MPI_SUM", Word(abi.op_sum)},
      {"MPI_MIN", Word(abi.op_min)},
      {"MPI_ANY_SOURCE", Word(abi.any_source)},
      {"MPI_IN_PLACE", abi.in_place.word},
      {"MPI_ERRORS_RETURN", Word(abi.errors_return)},
      {"MPI_THREAD_MULTIPLE", Word(abi.thread_multiple)},
  };
  for (const auto& row : rows)
    if (row.name == name) return row.value;
  return std::nullopt;
}

// Writes as much of the text as fits.
void write_text(const std::string& text, char* out, std::uint64_t size) {
  if (out == nullptr || size == 0) return;
  const std::size_t length = std::min<std::size_t>(text.size(), size - 1);
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
}

}  // namespace

SLIMPI_EXPORT int slimpi_get_mpi_constant(const char* name, std::uint64_t* value) {
  bool found = false;
  (void)catch_all([&] {
    if (name == nullptr || value == nullptr || !call::Runtime::finds_mpi()) return;
    const auto word = constant(name);
    found = word.has_value();
    if (found) *value = *word;
  });
  return found ? 0 : 1;
}

SLIMPI_EXPORT int slimpi_check_option(const char* name, const char* value, char* reason,
                                      std::uint64_t size) {
  std::string error = "no memory";
  (void)catch_all([&] {
    error =
        name == nullptr || value == nullptr ? "no option given" : call::check_option(name, value);
  });
  if (error.empty()) return 0;
  write_text(error, reason, size);
  return 1;
}

SLIMPI_EXPORT int slimpi_set_timeout(const void* comm, std::uint64_t seconds) {
  bool set = false;
  (void)catch_all([&] {
    if (comm != nullptr) set = call::set_timeout(mpi::read<mpi::Comm>(comm), seconds);
  });
  return set ? 0 : 1;
}

SLIMPI_EXPORT int slimpi_get_option(const char* name, char* value, std::uint64_t size) {
  std::optional<std::string> text;
  (void)catch_all([&] {
    if (name != nullptr) text = call::option_value(name);
  });
  if (!text) return 1;
  write_text(*text, value, size);
  return 0;
}

SLIMPI_EXPORT const char* slimpi_get_traits(const char* algorithm) {
#define SLIMPI_ALGORITHM(name, argument, functions, ...) \
  if (algorithm != nullptr && std::string_view(algorithm) == #name) return #__VA_ARGS__;
#include "options/algorithms.def"
  return "";
}

}  // namespace slimpi::intercept
