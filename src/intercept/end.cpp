// SPDX-License-Identifier: BSD-3-Clause
// Ends MPI in a program where slimpi has initialized it, through a binding such as the Python
// package. A program of this kind does not call MPI_Finalize, and may end while other ranks still
// work for hours.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/process_manager.h"
#include "call/communicator_attribute.h"
#include "call/hidden_functions.h"
#include "call/runtime.h"
#include "intercept/names.h"
#include "mpi/internal_comm.h"
#include "mpi/search.h"
#include "observe/activity.h"
#include "observe/log.h"
#include "options/config.h"
#include "slimpi.h"

namespace slimpi::intercept {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr unsigned kMeetMicroseconds = 1000, kFinalizeSeconds = 2;
constexpr seconds kLongestBarrier(1800);  // if SLIMPI_TIMEOUT is not set

// Makes the ranks wait for each other before MPI_Finalize. A rank gives up if no other rank has
// come for SLIMPI_TIMEOUT, or if a rank that has not come is lost.
class EndBarrier {
 public:
  EndBarrier() : exchange_(mpi::FirstExchange::make()) {
    const Config config = load_config(slimpi_environment()).config;
    if (config.timeout.value_or(0) != 0) longest_ = seconds(*config.timeout);
    std::string version;
    if (mpi::find(api_, version) != mpi::Found::yes ||
        exchange_->begin(api_, mpi::abi.comm_world, 0, mpi::Refusal::none) != Status::ok)
      ended_ = true;
  }

  // Returns whether all ranks have come. Sleeps between polls, which leaves the cores to ranks that
  // still work.
  bool wait() {
    for (;; usleep(kMeetMicroseconds))
      if (const auto all = poll()) return *all;
  }

  // Returns true once all ranks have come, false once this rank gives up waiting, and nothing
  // before that. Prints a line when the wait gets long, and one that says why the rank gives up.
  std::optional<bool> poll() {
    int done = 0;
    if (ended_ || gave_up_) return ended_;
    ended_ =
        api_.Test(&exchange_->request, &done, mpi::abi.status_ignore) != mpi::kSuccess || done != 0;
    if (ended_) return true;
    const std::vector<int> absent = this->absent();
    const auto now = Clock::now();
    if (absent.size() != missing_) came_ = now;
    missing_ = absent.size();
    const auto waited = std::chrono::floor<seconds>(now - came_);
    if (const auto lost = lost_rank(); lost && is_missing(absent, lost->rank)) {
      log_warn("the program has ended here, and " + lost->text + ", so this rank does too");
      gave_up_ = true;
    } else if (waited >= longest_) {
      log_warn("the program has ended here, and this rank has waited " + describe(waited, absent) +
               "; it ends without them, as SLIMPI_TIMEOUT says");
      gave_up_ = true;
    } else if (stall_limit().count() != 0 && waited >= stall_limit() && !said_) {
      said_ = true;
      if (is_first(absent))
        log_warn("the program has ended here, and this rank waits " + describe(waited, absent));
    }
    if (gave_up_) return false;
    return std::nullopt;
  }

 private:
  // Returns the ranks that have not come, or an empty list if that is unknown.
  std::vector<int> absent() const {
    std::vector<int> ranks;
    const auto words = exchange_->arrivals();
    for (std::size_t rank = 0; rank < words.size(); ++rank)
      if (words[rank] < 0) ranks.push_back(int(rank));
    return ranks;
  }

  // Returns whether this rank is the first of those that have come, and therefore prints for them.
  bool is_first(const std::vector<int>& absent) const {
    int rank = 0;
    api_.Comm_rank(mpi::abi.comm_world, &rank);
    int first = 0;
    for (const int missing : absent) first += missing == first;
    return rank == first;
  }

  // Returns whether this rank still waits for `rank`, which is lost. Returns false if `rank` had
  // come before it was lost.
  bool is_missing(const std::vector<int>& absent, int rank) const {
    return rank < 0 || exchange_->arrivals().empty() ||
           std::find(absent.begin(), absent.end(), rank) != absent.end();
  }

  static std::string describe(seconds waited, const std::vector<int>& absent) {
    return std::to_string(waited.count()) + " s for " +
           (absent.empty() ? "others" : describe_ranks(absent)) +
           ", whose program has not ended";
  }

  mpi::Api api_{};
  mpi::FirstExchange::Owner exchange_;
  seconds longest_ = kLongestBarrier;
  Clock::time_point came_ = Clock::now();  // when the last rank came
  std::size_t missing_ = 0;
  bool ended_ = false, gave_up_ = false, said_ = false;
};

// Calls the first definition of MPI_Finalize, as the program would. It may be in a library that was
// preloaded before slimpi, such as slimpi-lab's.
void finalize() {
  using Function = int();
  const auto first = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, "MPI_Finalize"));
  (first != nullptr ? first : SLIMPI_NEXT("MPI_Finalize", Function))();
}

// Returns whether a call of MPI_Finalize reaches another tool's MPI_Finalize, which may take long,
// for example to write a profile.
bool tool_finalizes() {
  const std::string_view next =
      mpi::image_of(reinterpret_cast<void*>(SLIMPI_NEXT("MPI_Finalize", int()))).name;
  return has_tool_in_front("MPI_Finalize") || !next.starts_with("libmpi");
}

// Returns how many bytes this process has written according to /proc, or 0 if that is unknown. Safe
// in a signal handler.
unsigned long written() {
  char text[256];
  const int file = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? 0 : ::read(file, text, sizeof text);
  if (file >= 0) close(file);
  constexpr std::string_view kKey = "wchar: ";
  const std::string_view lines(text, length > 0 ? std::size_t(length) : 0);
  const std::size_t at = lines.find(kKey);
  unsigned long bytes = 0;
  for (std::size_t i = at + kKey.size();
       at != lines.npos && i < lines.size() && lines[i] >= '0' && lines[i] <= '9'; ++i)
    bytes = 10 * bytes + (unsigned long)(lines[i] - '0');
  return bytes;
}

volatile unsigned long g_written = 0;

// Handles SIGALRM: ends the process, unless it has written something since the last alarm.
void leave(int) {
  if (const unsigned long now = written(); now != g_written) {
    g_written = now;
    alarm(kFinalizeSeconds);
    return;
  }
  leave_process_manager();
  _exit(0);
}

// Limits the time of MPI_Finalize. Once all ranks have met, MPI_Finalize takes milliseconds, but
// MPICH 4.0 over UCX and TCP may hang there if it runs on two or more hosts. Does nothing under
// Open MPI, whose MPI_Finalize does not hang, but kills the job if a process ends without calling
// it.
void limit_finalize() {
  if (std::string_view(mpi::abi.name) == "Open MPI" ||
      !environment_variable("OMPI_COMM_WORLD_RANK").empty() || tool_finalizes())
    return;
  std::fflush(nullptr);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  (void)std::signal(SIGALRM, &leave);
  (void)pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr);
  g_written = written();
  alarm(kFinalizeSeconds);
}

// Returns whether to end MPI: whether MPI is in use, and this is not a child made by fork().
bool ends_mpi(const void* process) {
  if (std::uintptr_t(getpid()) != reinterpret_cast<std::uintptr_t>(process)) return false;
  int finalized = 1;
  SLIMPI_NEXT("MPI_Finalized", int(int*))(&finalized);
  return finalized == 0;
}

[[noreturn]] void abort_job(int status) {
  usleep(kTimeToForward);
  SLIMPI_NEXT("MPI_Abort", int(mpi::Comm, int))(mpi::abi.comm_world, status);
  _exit(status);
}

// Aborts the job when the process exits. An exit status of 0 becomes 1.
void abort_mpi(int status, void* process) {
  if (ends_mpi(process)) abort_job(status == 0 ? 1 : status);
}

// Ends MPI when the process exits.
void end_mpi(int status, void* process) {
  if (!ends_mpi(process)) return;
  if (status == 0) {
    if (call::sums_in_flight()) (void)catch_all(call::wait_for_all_sums);
    bool met = true;
    (void)catch_all([&] {
      EndBarrier barrier;
      if (Runtime* const runtime = Runtime::get(); runtime != nullptr)
        runtime->finish(true, [&] { return barrier.poll(); });
      met = barrier.wait();
    });
    if (!met) return leave_process_manager();
    limit_finalize();
    const call::Finalizing finalizing;
    finalize();
    alarm(0);
    return;
  }
  abort_job(status);
}

void* this_process() {
  return reinterpret_cast<void*>(std::uintptr_t(getpid()));
}

bool has_mpi() {
  bool has = false;
  (void)catch_all([&] { has = call::Runtime::finds_mpi(); });
  return has;
}

}  // namespace

SLIMPI_EXPORT int slimpi_finalize_at_exit(void) {
  return has_mpi() && on_exit(&end_mpi, this_process()) == 0 ? 0 : 1;
}

SLIMPI_EXPORT int slimpi_abort_at_exit(void) {
  return has_mpi() && on_exit(&abort_mpi, this_process()) == 0 ? 0 : 1;
}

SLIMPI_EXPORT void slimpi_finalize_now(void) {
  if (has_mpi()) end_mpi(0, this_process());
}

}  // namespace slimpi::intercept
