// SPDX-License-Identifier: BSD-3-Clause
// Code shared by the collectives that slimpi can take over (sums.cpp, gathers.cpp), in their
// blocking, nonblocking, persistent and large-count forms.
//
// Programs such as mpi4py call the large-count form of a function, such as MPI_Allreduce_c,
// whenever they find one. slimpi defines it, but the process's MPI may lack it (an MPI older than
// 4.0, or one other than MPICH). slimpi then calls the form with int counts.
#pragma once
#include <atomic>
#include <climits>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "device/device.h"
#include "intercept/names.h"

namespace slimpi::intercept {

enum class Form { usual, large, fortran };

// Runs a blocking call, or leaves it to MPI. Returns the code for the program.
[[gnu::always_inline]] inline int do_or_bypass(Request& request) {
  Outcome outcome;
  Status status = catch_all([&] { outcome = dispatch(request); });
  if (status != Status::ok) [[unlikely]]
    end_for(request.comm, status);
  if (outcome.done) return outcome.code;
  int code = 0;
  status = catch_all([&] { code = call_mpi(request, outcome.reason); });
  if (status != Status::ok) [[unlikely]]
    (void)catch_all([&] { code = fail_on(request.comm, status); });
  return code;
}

// Begins a nonblocking call or makes a persistent request, or leaves that to MPI.
template <typename ByMpi>
int begin_or_bypass(Request& request, Way way, void* handle, const ByMpi& by_mpi) {
  const bool persistent = way == Way::persistent;
  Outcome outcome;
  const Status status = catch_all([&] {
    outcome = persistent ? init_persistent(request, handle) : begin_nonblocking(request, handle);
  });
  if (status != Status::ok) [[unlikely]]
    end_for(request.comm, status);
  if (outcome.done) return outcome.code;
  int code = 0;
  if (device::some_need_copies()) [[unlikely]] {
    const Status staged =
        catch_all([&] { code = begin_staged(request, handle, persistent, by_mpi); });
    if (staged != Status::ok) end_for(request.comm, staged);
  } else {
    code = by_mpi(request);
  }
  if (!outcome.reason) return code;
  const BypassReason reason = *outcome.reason;
  if (reason == BypassReason::datatype && !persistent) count_other_bytes(request, code);
  if (code == 0) (void)catch_all([&] { estimate_nonblocking(request, reason); });
  return code;
}

// Returns the count of a call as an int, or nothing if it is too large. Called if the process's MPI
// lacks the large-count form.
inline std::optional<int> as_ints(const char* name, std::int64_t count) {
  if (count <= INT_MAX) return int(count);
  refuse_count(name, count);
  return std::nullopt;
}

// Returns an array of the counts as ints, or nothing if one is too large. The array is never freed,
// because MPI may read it until a request is complete, and this code does not learn when that is.
// If `of_remote`, an array of an intercommunicator has a count for each rank of the remote group.
inline std::optional<const int*> as_ints(const char* name, const std::int64_t* counts, Word comm,
                                         bool of_remote = false) {
  static std::mutex mutex;
  int ranks = 0, inter = 0;
  if (of_remote) SLIMPI_NEXT("PMPI_Comm_test_inter", int(Word, int*))(comm, &inter);
  if (inter != 0)
    SLIMPI_NEXT("PMPI_Comm_remote_size", int(Word, int*))(comm, &ranks);
  else
    SLIMPI_NEXT("PMPI_Comm_size", int(Word, int*))(comm, &ranks);
  for (int rank = 0; rank < ranks; ++rank)
    if (!as_ints(name, counts[rank])) return std::nullopt;
  std::optional<const int*> kept;
  const Status status = catch_all([&] {
    static auto* const known = new std::set<std::vector<int>>;
    const std::lock_guard lock(mutex);
    kept = known->emplace(counts, counts + ranks).first->data();
  });
  if (status != Status::ok) (void)catch_all([&] { fail_on(cut<Comm>(comm), status); });
  return kept;
}

// Calls the next definition of a function, in its form for int counts or for large counts, by the
// MPI_ name or, if the call came from Fortran, by the PMPI_ name. `more` has the arguments after
// the communicator. Counts knows how the function takes its counts, and provides
// - small() and large(), which return the counts of a call as these two forms take them,
// - ints(), which returns large counts as ints, or nothing if one is too large, and
// - call(), which calls the function `next` with the arguments of a request and these counts.
template <typename Counts>
struct Next {
  const char *name, *large;                               // both begin with PMPI_
  std::atomic<void*> known[2] = {}, known_large[2] = {};  // by MPI_, by PMPI_
  std::atomic<int> has_large = 0;

  // The branch predictor learns the test for the rare large form, so the usual form pays nothing
  // for it.
  template <typename... More>
  int operator()(const Request& request, More... more) {
    if (request.large) [[unlikely]]
      return call_large(request, more...);
    return call_next(name, known, request, Counts::small(request), more...);
  }

  template <typename... More>
  [[gnu::noinline]] int call_large(const Request& request, More... more) {
    const int has = has_large.load(std::memory_order_relaxed);
    if (has != 0 ? has > 0 : has_next(large + 1, has_large))
      return call_next(large, known_large, request, Counts::large(request), more...);
    const auto ints = Counts::ints(large + 1, request);
    return ints ? call_next(name, known, request, *ints, more...) : mpi::kErrCount;
  }

  template <typename Count, typename... More>
  static int call_next(const char* name, std::atomic<void*> (&known)[2], const Request& request,
                       Count counts, More... more) {
    void* next = known[request.fortran].load(std::memory_order_acquire);
    if (next == nullptr) [[unlikely]]
      next = next_definition(request.fortran ? name : name + 1, known[request.fortran]);
    return Counts::call(next, request, counts, more...);
  }
};

// The first part of every exported function: returns its arguments as a request, without the
// counts and the operation.
[[gnu::always_inline]] inline Request request_of(Form form, const void* in, void* out, Word type,
                                                 Word comm) {
  mpi::find_abi();
  // Member by member, because GCC would clear the whole of a braced list by "rep stos", which costs
  // 4 ns in every call of the program.
  Request request;
  request.in = in;
  request.out = out;
  request.count = 0;
  request.datatype = cut_known<Datatype>(type);
  request.op = {};
  request.comm = cut_known<Comm>(comm);
  request.large = form == Form::large;
  request.fortran = form == Form::fortran;
  return request;
}

// The last part of every exported function: runs the call or leaves it to MPI. A call of a PMPI_
// name goes to MPI unchanged, unless it comes from MPI's Fortran bindings. Must be inline, because
// it looks at the caller of the exported function. `more` ends with the address of the program's
// MPI request, if there is one.
template <Way way, typename Counts, typename... More>
[[gnu::always_inline]] inline int take(Next<Counts>& next, Form form, Request& request,
                                       More... more) {
  const auto by_mpi = [&](const Request& one) { return next(one, more...); };
  if (form == Form::fortran && !SLIMPI_FROM_FORTRAN) return by_mpi(request);
  if constexpr (way == Way::blocking) {
    return do_or_bypass(request);
  } else {
    const Word last[] = {more...};
    return begin_or_bypass(request, way, reinterpret_cast<void*>(last[sizeof...(more) - 1]),
                           by_mpi);
  }
}

// Let MPI run an all-gather, or begin one and write its request to `handle`.
int gather_by_mpi(const Request& request);
int begin_gather_by_mpi(const Request& request, Word handle);

}  // namespace slimpi::intercept

// Defines the exported functions of a collective, blocking, nonblocking and persistent, each with
// usual and with large counts and for Fortran, and next_NAME for each. `define` is a macro that
// defines one of them as `symbol`, with counts of type Count. `more` has the parameters after the
// communicator, and `names` their names.
#define SLIMPI_COLLECTIVE(define, Counts, name, begin)                      \
  SLIMPI_FORMS(define, Counts, name, blocking, (), ())                      \
  SLIMPI_FORMS(define, Counts, begin, nonblocking, (Word handle), (handle)) \
  SLIMPI_FORMS(define, Counts, name##_init, persistent, (Word info, Word handle), (info, handle))
#define SLIMPI_FORMS(define, Counts, name, way, more, names)                    \
  static constinit Next<Counts> next_##name{"PMPI_" #name, "PMPI_" #name "_c"}; \
  define(MPI_##name, name, usual, way, int, more, names)                        \
      define(MPI_##name##_c, name, large, way, std::int64_t, more, names)       \
          define(PMPI_##name, name, fortran, way, int, more, names)
#define SLIMPI_MORE(...) __VA_OPT__(, ) __VA_ARGS__
