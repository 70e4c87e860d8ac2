// SPDX-License-Identifier: BSD-3-Clause
// The functions of slimpi.h for bindings of other languages, such as the Python package: they call
// MPI without a compiler that has read mpi.h.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "call/entry.h"
#include "call/runtime.h"
#include "intercept/catch_all.h"
#include "mpi/abi.h"
#include "observe/log.h"
#include "slimpi.h"

namespace slimpi::intercept {

namespace {

// MPI_Finalize as the program would call it: a library that was preloaded before this one may take
// it, as that of slimpi-lab does.
void finalize() {
  using Function = int();
  const auto first = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, "MPI_Finalize"));
  (first != nullptr ? first : SLIMPI_NEXT("MPI_Finalize", Function))();
}

// In a child by fork it does nothing.
void end_mpi(int status, void* process) {
  using mpi::Comm;
  if (std::uintptr_t(getpid()) != reinterpret_cast<std::uintptr_t>(process)) return;
  int finalized = 1;
  SLIMPI_NEXT("MPI_Finalized", int(int*))(&finalized);
  if (finalized != 0) return;
  if (status == 0) {
    if (call::sums_in_flight()) (void)catch_all(call::wait_for_all_sums);
    const call::Finalizing finalizing;
    finalize();
    return;
  }
  usleep(kTimeToForward);
  SLIMPI_NEXT("MPI_Abort", int(Comm, int))(mpi::abi.comm_world, status);
  _exit(status);
}

// An MPI constant as a word that MPI's functions take as an argument: its value differs among MPIs.
// Empty where the name is none of those that slimpi knows. The process's MPI must be known.
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
      {"MPI_IN_PLACE", abi.in_place.word},
      {"MPI_ERRORS_RETURN", Word(abi.errors_return)},
      {"MPI_THREAD_MULTIPLE", Word(abi.thread_multiple)},
  };
  for (const auto& row : rows)
    if (row.name == name) return row.value;
  return std::nullopt;
}

// As much of the text as fits.
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

SLIMPI_EXPORT int slimpi_get_option(const char* name, char* value, std::uint64_t size) {
  std::optional<std::string> text;
  (void)catch_all([&] {
    if (name != nullptr) text = call::option_value(name);
  });
  if (!text) return 1;
  write_text(*text, value, size);
  return 0;
}

SLIMPI_EXPORT int slimpi_finalize_at_exit(void) {
  bool has_mpi = false;
  (void)catch_all([&] { has_mpi = call::Runtime::finds_mpi(); });
  auto* const process = reinterpret_cast<void*>(std::uintptr_t(getpid()));
  return has_mpi && on_exit(&end_mpi, process) == 0 ? 0 : 1;
}

}  // namespace slimpi::intercept
