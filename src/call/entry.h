// SPDX-License-Identifier: BSD-3-Clause
// What an intercepted function may use: "is it ours?" and "who is next?". It names no MPI type.
// Handles pass through as machine words, so that a process whose MPI has another ABI (handles that
// are pointers) gets every argument on untouched.
#pragma once
#include <atomic>
#include <cstdint>

#define SLIMPI_EXPORT extern "C" __attribute__((visibility("default")))

namespace slimpi::call {

using Word = std::uintptr_t;

struct Allreduce {
  const void* in;
  void* out;
  std::int64_t count;
  Word datatype, op, comm;
  bool large = false;  // came through MPI_Allreduce_c
};

// Answers the call and sets *code to what the program gets; false when MPI has to do it.
bool dispatch(const Allreduce& call, int* code);

// Gives the call to whoever is next: another tool, or MPI. Buffers that MPI cannot take are
// staged.
int call_mpi(const Allreduce& call);

// The same in the program's floating-point environment, from within slimpi's own.
int pass_to_mpi(const Allreduce& call);

// The same as call_mpi with the buffers as they are.
int call_mpi_unstaged(const Allreduce& call);

// Counts a nonblocking or persistent allreduce on `comm`, which MPI does.
void count_nonblocking(Word comm);

// MPI_Pcontrol: 0 off, 1 on, 2 writes the report.
void control(int level);

// Takes the slimpi_ keys of `info` as options of a communicator that was just made or changed.
// Returns the code that the program gets.
int take_info(Word comm, Word info);

// While this object lives, the thread frees `comm`: the program's delete callbacks run, and float
// sums that they make on it are left to MPI.
class Freeing {
 public:
  explicit Freeing(Word comm);
  ~Freeing();
  Freeing(const Freeing&) = delete;
  Freeing& operator=(const Freeing&) = delete;

  // Whether this thread is freeing `comm`.
  static bool is_freeing(Word comm);

 private:
  const Word comm_;
  const Freeing* const outer_;
};

// While this object lives, MPI_Finalize runs: delete callbacks of the program may sum on
// communicators that are about to go.
class Finalizing {
 public:
  Finalizing();
  ~Finalizing();
  Finalizing(const Finalizing&) = delete;
  Finalizing& operator=(const Finalizing&) = delete;

  // Whether the process is inside MPI_Finalize.
  static bool is_finalizing();
};

// A session was opened; one was closed.
void session_opened();
void session_closed();

// How many sessions were opened in this process so far.
int sessions_seen();

// The next definition of the function called `name` behind this library. It is kept in `known`. A
// program that calls it without an MPI that has it gets a function that reports an error, which is
// not kept: MPI may be loaded later.
void* next_definition(const char* name, std::atomic<void*>& known);

// Is there one? 1 or -1 is kept in `known` once the process has an MPI.
bool has_next(const char* name, std::atomic<int>& known);

// A count that only a missing function could take: says so, and is an MPI error.
int refuse_count(const char* name, std::int64_t count);

}  // namespace slimpi::call

// The next definition of the function called `name`, as a pointer to a function of the given type.
#define SLIMPI_NEXT(name, ...)                             \
  ([] {                                                    \
    using Function = __VA_ARGS__;                          \
    static std::atomic<void*> known{nullptr};              \
    void* next = known.load(std::memory_order_acquire);    \
    if (next == nullptr) [[unlikely]]                      \
      next = ::slimpi::call::next_definition(name, known); \
    return reinterpret_cast<Function*>(next);              \
  }())

#define SLIMPI_HAS_NEXT(name)                                          \
  ([] {                                                                \
    static std::atomic<int> known{0};                                  \
    const int has = known.load(std::memory_order_relaxed);             \
    return has != 0 ? has > 0 : ::slimpi::call::has_next(name, known); \
  }())
