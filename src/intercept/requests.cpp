// SPDX-License-Identifier: BSD-3-Clause
// The functions that complete, start, cancel or free requests. MPI cannot drive slimpi's
// nonblocking sums, so these functions drive them as long as some are in flight: MPI_Wait and
// MPI_Waitall wait for the sums among the requests before they call the next definition, while
// MPI_Waitany and MPI_Waitsome poll with the next MPI_Testany or MPI_Testsome. Without sums in
// flight, slimpi adds only one test.
#include <dlfcn.h>

#include <optional>

#include "call/held.h"
#include "call/hidden_functions.h"
#include "comm/waiter.h"
#include "intercept/names.h"

namespace slimpi::intercept {

using Completed = Completing::Completed;

namespace {

// How arrays are passed in C, where indices begin at 0. F08 has the same functions for Fortran.
struct C {
  static int first_index() { return 0; }
  static void* statuses(void* array) { return array; }
};

// The arrays of MPICH's mpi_f08.
struct F08 {
  // Returns the first index, which is 1, but 0 with MPICH 4.0. To find out, this tests two
  // requests, which needs the runtime. While no sums are in flight there may be no runtime, and the
  // result does not matter.
  static int first_index() {
    if (!sums_in_flight()) return 1;
    static const int first = [] {
      int requests[2], index = 2, flag = 0, error = 0;
      mpi::MessageStatus status;
      if (!call::make_complete_request(requests)) return 1;
      const int count = 2;
      SLIMPI_NEXT("mpi_testany_f08_", void(const int*, void*, int*, int*, void*, int*))
      (&count, requests, &index, &flag, &status, &error);
      return index - 1;
    }();
    return first;
  }
  // Returns the array, or null for the module's MPI_STATUSES_IGNORE.
  static void* statuses(void* array) {
    static void* const ignored = dlsym(RTLD_DEFAULT, "MPIR_F08_MPI_STATUSES_IGNORE_OBJ");
    return array == ignored ? nullptr : array;
  }
};

// Returns whether slimpi takes part in the call: whether sums are in flight, there are requests,
// and the call is not a probe (call/hidden_functions.h). Wrong arguments are left to MPI to report.
bool takes_part(int count, const void* requests) {
  return sums_in_flight() && !is_probe() && count > 0 && requests != nullptr;
}

// Notes the requests before MPI changes them. If there is no memory for that, no request is
// completed, and the program gets the error code that this returns.
int remember(std::optional<Completing>& completing, int count, const void* requests) {
  const Status status = catch_all([&] { completing.emplace(count, requests); });
  if (status == Status::ok) return mpi::kSuccess;
  int code = mpi::abi.err_other;
  (void)catch_all([&] { code = fail_on(mpi::abi.comm_world, status); });
  return code;
}

// Calls Completing::raise(). Exceptions of the program's error handler pass through; see names.h.
int raise(Completing& completing, int code, const Completed& completed, bool ends = true) {
  (void)catch_all([&] { code = completing.raise(code, completed, ends); });
  return code;
}

// Sets the result of a test to 0, because MPI may leave it unset in an error. `result` may be null.
void clear(int* result) {
  if (result != nullptr) *result = 0;
}
bool is_set(const int* flag) {
  return flag != nullptr && *flag != 0;
}

// Waits until poll() is true, while the nonblocking sums make progress.
void wait_until(const auto& poll) {
  (void)catch_all([&] {
    comm::Waiter waiter(comm::Waiter::Poll::mpi);
    while (!poll()) waiter.rest();
  });
}

// Waits for all requests. `finish` calls the next definition. `statuses` are those of MPI_Waitall.
int wait_for_all(int count, const void* requests, const auto& finish, void* statuses,
                 bool several) {
  if (!takes_part(count, requests)) [[likely]]
    return finish();
  std::optional<Completing> completing;
  if (const int code = remember(completing, count, requests); code != 0) return code;
  wait_until([&] { return !completing->has_sums(); });
  return raise(*completing, finish(), {.count = count, .statuses = statuses, .several = several});
}

// Waits for some of the requests by polling. `test` calls the next definition of the testing form,
// and says which requests it has completed.
int wait_for_some(int count, const void* requests, const auto& test) {
  std::optional<Completing> completing;
  Completed completed;
  int code = remember(completing, count, requests);
  if (code != 0) return code;
  wait_until([&] {
    code = test(&completed);
    return completed.count != 0 || code != 0;
  });
  return raise(*completing, code, completed);
}

// Runs an MPI function that tests requests. `finish` calls its next definition, MPI's or another
// tool's, and says which requests it has completed. `ends` is false for MPI_Request_get_status and
// its forms _all, _any and _some, which do not free completed requests.
int test(int count, const void* requests, const auto& finish, bool ends = true) {
  Completed completed;
  if (!takes_part(count, requests)) [[likely]]
    return finish(&completed);
  std::optional<Completing> completing;
  if (const int code = remember(completing, count, requests); code != 0) return code;
  (void)catch_all(let_fibers_run);
  const int code = finish(&completed);
  return raise(*completing, code, completed, ends);
}

// Each of these does the work of one intercepted function, with the arguments of C. `next` calls
// the next definition of the function itself, and `test` that of its testing form, MPI_Testany or
// MPI_Testsome.

int wait_one(const auto& next, void* request, void* status) {
  return wait_for_all(
      1, request, [&] { return next(request, status); }, nullptr, false);
}

template <typename Language = C>
int wait_all(const auto& next, int count, void* requests, void* statuses) {
  return wait_for_all(
      count, requests, [&] { return next(count, requests, statuses); },
      Language::statuses(statuses), true);
}

template <bool ends = true>
int test_one(const auto& next, void* request, int* flag, void* status) {
  const auto finish = [&](Completed* completed) {
    clear(flag);
    const int code = next(request, flag, status);
    completed->count = is_set(flag) ? 1 : 0;
    return code;
  };
  return test(1, request, finish, ends);
}

template <typename Language = C, bool ends = true>
int test_all(const auto& next, int count, void* requests, int* flag, void* statuses) {
  const auto finish = [&](Completed* completed) {
    clear(flag);
    const int code = next(count, requests, flag, statuses);
    // MPICH 5 may leave the flag 0 when a request fails, and free those that are complete.
    const bool some = is_set(flag) || (ends && code != mpi::kSuccess);
    *completed = {some ? count : 0, nullptr, 0, Language::statuses(statuses), true};
    return code;
  };
  return test(count, requests, finish, ends);
}

template <typename Language>
int found_any(const auto& next, int count, void* requests, int* index, int* flag, void* status,
              Completed* completed) {
  clear(flag);
  const int code = next(count, requests, index, flag, status);
  *completed = {.count = is_set(flag) && index != nullptr ? 1 : 0,
                .indices = index,
                .base = Language::first_index()};
  return code;
}

template <typename Language = C, bool ends = true>
int test_any(const auto& next, int count, void* requests, int* index, int* flag, void* status) {
  const auto finish = [&](Completed* completed) {
    return found_any<Language>(next, count, requests, index, flag, status, completed);
  };
  return test(count, requests, finish, ends);
}

template <typename Language = C>
int wait_any(const auto& next, const auto& test, int count, void* requests, int* index,
             void* status) {
  if (!takes_part(count, requests)) [[likely]]
    return next(count, requests, index, status);
  return wait_for_some(count, requests, [&](Completed* completed) {
    int flag = 0;
    return found_any<Language>(test, count, requests, index, &flag, status, completed);
  });
}

template <typename Language>
int found_some(const auto& next, int count, void* requests, int* found, int* indices,
               void* statuses, Completed* completed) {
  clear(found);
  const int code = next(count, requests, found, indices, statuses);
  *completed = {found == nullptr || indices == nullptr ? 0 : *found, indices,
                Language::first_index(), Language::statuses(statuses), true};
  return code;
}

template <typename Language = C, bool ends = true>
int test_some(const auto& next, int count, void* requests, int* found, int* indices,
              void* statuses) {
  const auto finish = [&](Completed* completed) {
    return found_some<Language>(next, count, requests, found, indices, statuses, completed);
  };
  return test(count, requests, finish, ends);
}

template <typename Language = C>
int wait_some(const auto& next, const auto& test, int count, void* requests, int* found,
              int* indices, void* statuses) {
  if (!takes_part(count, requests)) [[likely]]
    return next(count, requests, found, indices, statuses);
  return wait_for_some(count, requests, [&](Completed* completed) {
    return found_some<Language>(test, count, requests, found, indices, statuses, completed);
  });
}

int get_status(const auto& next, Word request, int* flag, void* status) {
  const auto by_value = [&](auto...) { return next(request, flag, status); };
  return test_one<false>(by_value, &request, flag, status);
}

int free_one(const auto& next, void* request) {
  return request == nullptr ? next(request) : call::free_request(request, next);
}

// Refuses to cancel a sum by returning the code of an error. Forwards the call for other requests.
int cancel(const auto& next, void* request) {
  int code = 0;
  (void)catch_all([&] { code = call::refuse_to_cancel(request); });
  return code != 0 ? code : next(request);
}

// Starts persistent requests. `next` calls the next definition for some of them.
int start(int count, void* requests, const auto& next) {
  int code = 0;
  if (sums_in_flight() && is_probe()) return mpi::kSuccess;
  if (requests == nullptr) return next(count, requests);
  const Status status = catch_all([&] { code = call::start_requests(count, requests, next); });
  if (status != Status::ok) end_for(mpi::abi.comm_world, status);
  return code;
}

int start_one(const auto& next, void* request) {
  return start(1, request, [&](int, void* one) { return next(one); });
}

int start_all(const auto& next, int count, void* requests) {
  return start(count, requests, next);
}

}  // namespace

SLIMPI_BOTH(Wait, wait_one, (void* request, void* status), request, status)
SLIMPI_BOTH(Waitall, wait_all, (int count, void* requests, void* statuses), count, requests,
            statuses)
SLIMPI_BOTH(Test, test_one, (void* request, int* flag, void* status), request, flag, status)
SLIMPI_BOTH(Testall, test_all, (int count, void* requests, int* flag, void* statuses), count,
            requests, flag, statuses)
SLIMPI_BOTH(Testany, test_any, (int count, void* requests, int* index, int* flag, void* status),
            count, requests, index, flag, status)
SLIMPI_BOTH(Testsome, test_some,
            (int count, void* requests, int* found, int* indices, void* statuses), count, requests,
            found, indices, statuses)
SLIMPI_BOTH(Request_get_status, get_status, (Word request, int* flag, void* status), request, flag,
            status)
SLIMPI_BOTH(Request_get_status_all, (test_all<C, false>),
            (int count, void* requests, int* flag, void* statuses), count, requests, flag, statuses)
SLIMPI_BOTH(Request_get_status_any, (test_any<C, false>),
            (int count, void* requests, int* index, int* flag, void* status), count, requests,
            index, flag, status)
SLIMPI_BOTH(Request_get_status_some, (test_some<C, false>),
            (int count, void* requests, int* found, int* indices, void* statuses), count, requests,
            found, indices, statuses)
SLIMPI_BOTH(Request_free, free_one, (void* request), request)
SLIMPI_BOTH(Cancel, cancel, (void* request), request)
SLIMPI_BOTH(Start, start_one, (void* request), request)
SLIMPI_BOTH(Startall, start_all, (int count, void* requests), count, requests)

using Testany = int(int count, void* requests, int* index, int* flag, void* status);
using Testsome = int(int count, void* requests, int* found, int* indices, void* statuses);

SLIMPI_EXPORT int MPI_Waitany(int count, void* requests, int* index, void* status) {
  return wait_any(SLIMPI_NEXT("MPI_Waitany", int(int, void*, int*, void*)),
                  SLIMPI_NEXT("MPI_Testany", Testany), count, requests, index, status);
}

SLIMPI_EXPORT int PMPI_Waitany(int count, void* requests, int* index, void* status) {
  auto* const next = SLIMPI_NEXT("PMPI_Waitany", int(int, void*, int*, void*));
  if (!SLIMPI_FROM_FORTRAN) return next(count, requests, index, status);
  return wait_any(next, SLIMPI_NEXT("PMPI_Testany", Testany), count, requests, index, status);
}

SLIMPI_EXPORT int MPI_Waitsome(int count, void* requests, int* found, int* indices,
                               void* statuses) {
  return wait_some(SLIMPI_NEXT("MPI_Waitsome", Testsome), SLIMPI_NEXT("MPI_Testsome", Testsome),
                   count, requests, found, indices, statuses);
}

SLIMPI_EXPORT int PMPI_Waitsome(int count, void* requests, int* found, int* indices,
                                void* statuses) {
  auto* const next = SLIMPI_NEXT("PMPI_Waitsome", Testsome);
  if (!SLIMPI_FROM_FORTRAN) return next(count, requests, found, indices, statuses);
  return wait_some(next, SLIMPI_NEXT("PMPI_Testsome", Testsome), count, requests, found, indices,
                   statuses);
}

SLIMPI_F08(start, (void* request, int* error), start_one(next, request), request)
SLIMPI_F08(startall, (const int* count, void* requests, int* error),
           start_all(
               [&](int some, void* of_them) {
                 definition(&some, of_them, code);
                 return *code;
               },
               *count, requests),
           count, requests)
SLIMPI_F08(request_free, (void* request, int* error), free_one(next, request), request)
SLIMPI_F08(cancel, (void* request, int* error), cancel(next, request), request)
SLIMPI_F08(wait, (void* request, void* status, int* error), wait_one(next, request, status),
           request, status)
SLIMPI_F08(waitall, (const int* count, void* requests, void* statuses, int* error),
           wait_all<F08>(next, *count, requests, statuses), count, requests, statuses)
SLIMPI_F08(test, (void* request, int* flag, void* status, int* error),
           test_one(next, request, flag, status), request, flag, status)
SLIMPI_F08(testall, (const int* count, void* requests, int* flag, void* statuses, int* error),
           test_all<F08>(next, *count, requests, flag, statuses), count, requests, flag, statuses)
SLIMPI_F08(testany,
           (const int* count, void* requests, int* index, int* flag, void* status, int* error),
           test_any<F08>(next, *count, requests, index, flag, status), count, requests, index, flag,
           status)
SLIMPI_F08(testsome,
           (const int* count, void* requests, int* found, int* indices, void* statuses, int* error),
           test_some<F08>(next, *count, requests, found, indices, statuses), count, requests, found,
           indices, statuses)
SLIMPI_F08(request_get_status, (void* request, int* flag, void* status, int* error),
           test_one<false>(next, request, flag, status), request, flag, status)

namespace {

// Call the next MPI_Testany and MPI_Testsome of mpi_f08, with the arguments of C.
int test_any_f08(int count, void* requests, int* index, int* flag, void* status) {
  int code = 0;
  SLIMPI_NEXT("mpi_testany_f08_", void(const int*, void*, int*, int*, void*, int*))
  (&count, requests, index, flag, status, &code);
  return code;
}

int test_some_f08(int count, void* requests, int* found, int* indices, void* statuses) {
  int code = 0;
  SLIMPI_NEXT("mpi_testsome_f08_", void(const int*, void*, int*, int*, void*, int*))
  (&count, requests, found, indices, statuses, &code);
  return code;
}

}  // namespace

SLIMPI_F08(waitany, (const int* count, void* requests, int* index, void* status, int* error),
           wait_any<F08>(next, test_any_f08, *count, requests, index, status), count, requests,
           index, status)
SLIMPI_F08(waitsome,
           (const int* count, void* requests, int* found, int* indices, void* statuses, int* error),
           wait_some<F08>(next, test_some_f08, *count, requests, found, indices, statuses), count,
           requests, found, indices, statuses)

}  // namespace slimpi::intercept
