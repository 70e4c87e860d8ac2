// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/disturbance.h"

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace fuzz {

namespace {

volatile sig_atomic_t g_signals;

void count_signal(int) {
  g_signals = g_signals + 1;
}

// The bytes of address space that this process uses.
long used_address_space() {
  long pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld", &pages) != 1) pages = 0;
  if (file != nullptr) std::fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

// Returns the highest file descriptor that is open, plus one.
long used_files() {
  long most = 2;
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 1024;
  while (const dirent* const entry = readdir(directory))
    if (const long number = std::atol(entry->d_name); number != dirfd(directory))
      most = std::max(most, number);
  closedir(directory);
  return most + 1;
}

void lower(int resource, long limit, rlimit* before) {
  getrlimit(__rlimit_resource(resource), before);
  rlimit lowered = *before;
  lowered.rlim_cur = std::min(lowered.rlim_cur, rlim_t(limit));
  setrlimit(__rlimit_resource(resource), &lowered);
}

void round_as(int rank) {
#ifdef __SSE__
  if (rank % 4 == 1) _mm_setcsr(_mm_getcsr() | 0x8040u);  // FTZ and DAZ
#endif
  if (rank % 4 == 2) std::fesetround(FE_UPWARD);
  if (rank % 4 == 3) std::fesetround(FE_TOWARDZERO);
}

// Makes a child process. It ends at once, or by its exit handlers, which include the library's.
void make_child(bool at_once) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (at_once) _exit(0);
    std::exit(0);
  }
  while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

long signals_seen() {
  return g_signals;
}

bool Disturbance::take(const std::string& word, int rank) {
  rank_ = rank;
  const auto number = [&](const char* name, long& field) {
    const std::string front = std::string(name) + ":";
    if (!word.starts_with(front)) return false;
    field = std::atol(word.c_str() + front.size());
    return true;
  };
  if (word == "fork") return fork_ = true;
  if (word == "float") return float_ = true;
  return number("stack", stack_) || number("signals", hertz_) || number("skew", skew_) ||
         number("files", files_) || number("memory", memory_);
}

void Disturbance::begin() {
  if (hertz_ <= 0) return;
  struct sigaction action {};
  action.sa_handler = count_signal;  // without SA_RESTART: system calls end with EINTR
  sigaction(SIGALRM, &action, nullptr);
  const suseconds_t period = suseconds_t(1'000'000 / hertz_);
  const itimerval timer{{0, period}, {0, period}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void Disturbance::end() {
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
}

void Disturbance::between_steps(Draws& draws) {
  const bool due = draws.one_in(8), at_once = draws.one_in(2);
  if (fork_ && due) make_child(at_once);
  if (skew_ > 0)
    usleep(
        useconds_t(Draws::of(draws.number(), std::uint64_t(rank_)) % std::uint64_t(1000 * skew_)));
}

int Disturbance::call(const std::function<int()>& sum) {
  if (stack_ == 0) return sum();
  static const std::function<int()>* called;
  static int code;
  static ucontext_t outside, fiber;
  static char* const memory = [this] {  // a page that faults below it
    const long page = sysconf(_SC_PAGESIZE);
    void* const all = mmap(nullptr, std::size_t(stack_ + page), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (all == MAP_FAILED || mprotect(all, std::size_t(page), PROT_NONE) != 0) std::abort();
    return static_cast<char*>(all) + page;
  }();
  called = &sum;
  getcontext(&fiber);
  fiber.uc_stack = {memory, 0, std::size_t(stack_)};
  fiber.uc_link = &outside;
  makecontext(
      &fiber, [] { code = (*called)(); }, 0);
  swapcontext(&outside, &fiber);
  return code;
}

void Disturbance::enter() {
  if (files_ >= 0) lower(RLIMIT_NOFILE, used_files() + files_, &before_);
  if (memory_ >= 0) lower(RLIMIT_AS, used_address_space() + memory_, &before_);
  if (!float_) return;
  std::fegetenv(&environment_);
  round_as(rank_);
}

void Disturbance::leave() {
  if (float_) std::fesetenv(&environment_);
  if (files_ >= 0) setrlimit(RLIMIT_NOFILE, &before_);
  if (memory_ >= 0) setrlimit(RLIMIT_AS, &before_);
}

}  // namespace fuzz
