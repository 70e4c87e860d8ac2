// SPDX-License-Identifier: BSD-3-Clause
// The functions of C that complete requests.
#include "intercept/completion.h"

#include "intercept/fortran.h"

using slimpi::call::Completing;
using slimpi::call::drop_request;
using slimpi::call::PersistentEnd;
using slimpi::call::sums_in_flight;
using slimpi::call::Word;
using slimpi::intercept::refuse_to_cancel;
using slimpi::intercept::start;
using slimpi::intercept::test;
using slimpi::intercept::wait_all;
using slimpi::intercept::wait_some;

// What the functions of C do. next: the next definition of the function; test: of that which does
// not wait.
namespace {

using Wait = int(void* request, void* status);
using Waitall = int(int count, void* requests, void* statuses);
using Waitany = int(int count, void* requests, int* index, void* status);
using Some = int(int count, void* requests, int* found, int* indices, void* statuses);
using Test = int(void* request, int* flag, void* status);
using Testall = int(int count, void* requests, int* flag, void* statuses);
using Testany = int(int count, void* requests, int* index, int* flag, void* status);
using GetStatus = int(Word request, int* flag, void* status);
using Change = int(void* request);

int wait_one(Wait* next, void* request, void* status) {
  return wait_all(1, request, [&] { return next(request, status); });
}

int wait_all_of(Waitall* next, int count, void* requests, void* statuses) {
  return wait_all(
      count, requests, [&] { return next(count, requests, statuses); }, statuses, true);
}

int wait_any(Waitany* next, Testany* test, int count, void* requests, int* index, void* status) {
  if (!sums_in_flight()) [[likely]]
    return next(count, requests, index, status);
  return wait_some(count, requests, [&](int* code, Completing::Completed* completed) {
    int flag = 0;
    *code = test(count, requests, index, &flag, status);
    *completed = {.count = flag != 0 ? 1 : 0, .indices = index};
    return flag != 0;
  });
}

int wait_some_of(Some* next, Some* test, int count, void* requests, int* found, int* indices,
                 void* statuses) {
  if (!sums_in_flight()) [[likely]]
    return next(count, requests, found, indices, statuses);
  return wait_some(count, requests, [&](int* code, Completing::Completed* completed) {
    *code = test(count, requests, found, indices, statuses);
    *completed = {.count = *found, .indices = indices, .statuses = statuses, .several = true};
    return *found != 0;
  });
}

int test_one(Test* next, void* request, int* flag, void* status) {
  return test(1, request, [&](Completing::Completed* completed) {
    const int code = next(request, flag, status);
    completed->count = *flag != 0 ? 1 : 0;
    return code;
  });
}

int test_all(Testall* next, int count, void* requests, int* flag, void* statuses) {
  return test(count, requests, [&](Completing::Completed* completed) {
    const int code = next(count, requests, flag, statuses);
    *completed = {.count = *flag != 0 ? count : 0, .statuses = statuses, .several = true};
    return code;
  });
}

int test_any(Testany* next, int count, void* requests, int* index, int* flag, void* status) {
  return test(count, requests, [&](Completing::Completed* completed) {
    const int code = next(count, requests, index, flag, status);
    *completed = {.count = *flag != 0 ? 1 : 0, .indices = index};
    return code;
  });
}

int test_some(Some* next, int count, void* requests, int* found, int* indices, void* statuses) {
  return test(count, requests, [&](Completing::Completed* completed) {
    const int code = next(count, requests, found, indices, statuses);
    *completed = {.count = *found, .indices = indices, .statuses = statuses, .several = true};
    return code;
  });
}

int get_status(GetStatus* next, Word request, int* flag, void* status) {
  return test(0, nullptr, [&](Completing::Completed*) { return next(request, flag, status); });
}

int free_request(Change* next, void* request) {
  drop_request(request);
  const PersistentEnd end(request);
  return next(request);
}

int cancel(Change* next, void* request) {
  const int code = refuse_to_cancel(request);
  return code != 0 ? code : next(request);
}

}  // namespace

SLIMPI_BOTH(Wait, wait_one, (void* request, void* status), request, status)
SLIMPI_BOTH(Waitall, wait_all_of, (int count, void* requests, void* statuses), count, requests,
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
SLIMPI_BOTH(Request_free, free_request, (void* request), request)
SLIMPI_BOTH(Cancel, cancel, (void* request), request)

SLIMPI_EXPORT int MPI_Waitany(int count, void* requests, int* index, void* status) {
  return wait_any(SLIMPI_NEXT("MPI_Waitany", Waitany), SLIMPI_NEXT("MPI_Testany", Testany), count,
                  requests, index, status);
}

SLIMPI_EXPORT int PMPI_Waitany(int count, void* requests, int* index, void* status) {
  auto* const next = SLIMPI_NEXT("PMPI_Waitany", Waitany);
  if (!SLIMPI_FROM_FORTRAN) return next(count, requests, index, status);
  return wait_any(next, SLIMPI_NEXT("PMPI_Testany", Testany), count, requests, index, status);
}

SLIMPI_EXPORT int MPI_Waitsome(int count, void* requests, int* found, int* indices,
                               void* statuses) {
  return wait_some_of(SLIMPI_NEXT("MPI_Waitsome", Some), SLIMPI_NEXT("MPI_Testsome", Some), count,
                      requests, found, indices, statuses);
}

SLIMPI_EXPORT int PMPI_Waitsome(int count, void* requests, int* found, int* indices,
                                void* statuses) {
  auto* const next = SLIMPI_NEXT("PMPI_Waitsome", Some);
  if (!SLIMPI_FROM_FORTRAN) return next(count, requests, found, indices, statuses);
  return wait_some_of(next, SLIMPI_NEXT("PMPI_Testsome", Some), count, requests, found, indices,
                      statuses);
}

SLIMPI_EXPORT int MPI_Start(void* request) {
  const int code = start(1, request);
  return code != 0 ? code : SLIMPI_NEXT("MPI_Start", int(void*))(request);
}

SLIMPI_EXPORT int MPI_Startall(int count, void* requests) {
  const int code = start(count, requests);
  return code != 0 ? code : SLIMPI_NEXT("MPI_Startall", int(int, void*))(count, requests);
}
