// SPDX-License-Identifier: BSD-3-Clause
// Defines functions that a build would take from a glibc newer than 2.28. The wheel is linked to an
// older glibc (build-wheel), and with these definitions it loads wherever PyTorch's wheels do. The
// static libstdc++ of g++ needs some of them, too. They are hidden, so that nothing else in the
// process is bound to them.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#ifdef __GLIBC__

// Defines the C symbol `name` by the function that this follows. glibc's header may have declared
// `name`.
#define SLIMPI_HIDDEN(name) asm(#name) __attribute__((visibility("hidden")))

extern "C" {

// glibc 2.36. For std::random_device, which slimpi does not use but the linker cannot leave out.
std::uint32_t own_arc4random() SLIMPI_HIDDEN(arc4random);
std::uint32_t own_arc4random() {
  std::uint32_t value = 0;
  if (getentropy(&value, sizeof value) != 0) std::abort();
  return value;
}

// glibc 2.32. Tells libstdc++ that other threads may run, so that it counts references atomically.
extern char own_single_threaded SLIMPI_HIDDEN(__libc_single_threaded);
char own_single_threaded = 0;

// glibc 2.30. If the process has glibc's function, calls that. Otherwise waits on the real-time
// clock for as long as `until` is away on `clock`, so the wait ends early or late if someone sets
// the time meanwhile. After an early end std::condition_variable looks at its own clock and waits
// again.
int own_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                  const timespec* until) SLIMPI_HIDDEN(pthread_cond_clockwait);
int own_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                  const timespec* until) {
  static const auto glibcs =
      reinterpret_cast<decltype(&own_clockwait)>(dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
  if (glibcs != nullptr) return glibcs(condition, mutex, clock, until);
  constexpr long kSecond = 1000000000;
  timespec now{}, date{};
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &date) != 0) return EINVAL;
  date.tv_sec += until->tv_sec - now.tv_sec;
  date.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (date.tv_nsec < 0) {
    date.tv_nsec += kSecond;
    --date.tv_sec;
  } else if (date.tv_nsec >= kSecond) {
    date.tv_nsec -= kSecond;
    ++date.tv_sec;
  }
  return pthread_cond_timedwait(condition, mutex, &date);
}

// glibc 2.29 gave these functions versions that compute the same and no longer call matherr().
#if defined __x86_64__
#define SLIMPI_FIRST_VERSION "GLIBC_2.2.5"
#elif defined __aarch64__
#define SLIMPI_FIRST_VERSION "GLIBC_2.17"
#endif
#ifdef SLIMPI_FIRST_VERSION
#define SLIMPI_FIRST(name)                                        \
  asm(".symver first_" #name "," #name "@" SLIMPI_FIRST_VERSION); \
  double first_##name(double x);                                  \
  double own_##name(double x) SLIMPI_HIDDEN(name);                \
  double own_##name(double x) {                                   \
    return first_##name(x);                                       \
  }
SLIMPI_FIRST(exp2)
SLIMPI_FIRST(log)
SLIMPI_FIRST(log2)
#endif

}  // extern "C"

#endif
