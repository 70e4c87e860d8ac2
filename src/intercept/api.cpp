// SPDX-License-Identifier: BSD-3-Clause
// The functions of slimpi.h.
#include "call/communicator_attribute.h"
#include "call/control.h"
#include "call/saved_state.h"
#include "slimpi.h"

#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/described_tensor.h"
#include "base/process.h"
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

// Sets *product to the number of elements of a matrix, rows * columns. Returns whether this number
// is not 0 and fits into 64 bits.
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

// Writes the report and the trace now. For programs that end without MPI_Finalize.
SLIMPI_EXPORT void slimpi_finish(void) {
  (void)catch_all([] {
    if (Runtime* const runtime = Runtime::get(); runtime != nullptr) runtime->finish();
  });
}

// The functions for bindings of other languages, such as the Python package, which call MPI without
// a compiler that has read mpi.h.

namespace {

constexpr unsigned kMeetMicroseconds = 1000, kFinalizeSeconds = 2;
constexpr int kAnswerMilliseconds = 1000;

// Calls the first definition of MPI_Finalize, as the program would. This definition may be in a
// library that was preloaded before slimpi, such as slimpi-lab's.
void finalize() {
  using Function = int();
  const auto first = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, "MPI_Finalize"));
  (first != nullptr ? first : SLIMPI_NEXT("MPI_Finalize", Function))();
}

// Waits until all ranks have called this function. Sleeps between polls, so the cores are free for
// ranks that still work.
void meet_all_ranks() {
  mpi::Request request = mpi::abi.request_null;
  SLIMPI_NEXT("MPI_Ibarrier", int(mpi::Comm, mpi::Request*))(mpi::abi.comm_world, &request);
  const auto test = SLIMPI_NEXT("MPI_Test", int(mpi::Request*, int*, mpi::MessageStatus*));
  for (int done = 0; done == 0;) {
    if (test(&request, &done, mpi::abi.status_ignore) != 0) return;
    if (done == 0) usleep(kMeetMicroseconds);
  }
}

int process_manager = -1;  // connects a rank to Hydra, MPICH's launcher, if Hydra started it

// Ends the process, as a handler of SIGALRM. Tells Hydra first; otherwise Hydra would think that
// the process had failed.
void leave(int) {
  constexpr char words[] = "cmd=finalize\n";
  char answer[64];
  pollfd wait{process_manager, POLLIN, 0};
  if (::write(process_manager, words, sizeof words - 1) > 0 &&
      poll(&wait, 1, kAnswerMilliseconds) > 0)
    (void)!::read(process_manager, answer, sizeof answer);
  _exit(0);
}

// Limits the time of MPI_Finalize, which takes milliseconds once all ranks have met. MPICH 4.0 over
// UCX and TCP may wait in it for ever, on two or more hosts. Under Open MPI this function does
// nothing: MPI_Finalize lacks this fault there, and a process must not end without calling it.
void limit_finalize() {
  if (std::string_view(mpi::abi.name) == "Open MPI" ||
      !environment_variable("OMPI_COMM_WORLD_RANK").empty())
    return;
  if (const std::string descriptor = environment_variable("PMI_FD"); !descriptor.empty())
    process_manager = std::atoi(descriptor.c_str());
  std::fflush(nullptr);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  (void)std::signal(SIGALRM, &leave);
  (void)pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr);
  alarm(kFinalizeSeconds);
}

// Ends MPI when the process exits. Does nothing in a child made by fork().
void end_mpi(int status, void* process) {
  using mpi::Comm;
  if (std::uintptr_t(getpid()) != reinterpret_cast<std::uintptr_t>(process)) return;
  int finalized = 1;
  SLIMPI_NEXT("MPI_Finalized", int(int*))(&finalized);
  if (finalized != 0) return;
  if (status == 0) {
    if (call::sums_in_flight()) (void)catch_all(call::wait_for_all_sums);
    slimpi_finish();
    meet_all_ranks();
    limit_finalize();
    const call::Finalizing finalizing;
    finalize();
    alarm(0);
    return;
  }
  usleep(kTimeToForward);
  SLIMPI_NEXT("MPI_Abort", int(Comm, int))(mpi::abi.comm_world, status);
  _exit(status);
}

// Returns an MPI constant as a word that MPI's functions take as an argument; its value differs
// among MPIs. Empty if slimpi does not know the name. The process's MPI must be known.
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
