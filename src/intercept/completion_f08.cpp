// SPDX-License-Identifier: BSD-3-Clause
// The functions of MPICH's mpi_f08 module that complete requests.
#include <dlfcn.h>

#include "intercept/completion.h"

using slimpi::call::Completing;
using slimpi::call::drop_request;
using slimpi::call::PersistentEnd;
using slimpi::call::sums_in_flight;
using slimpi::intercept::refuse_to_cancel;
using slimpi::intercept::start;
using slimpi::intercept::test;
using slimpi::intercept::wait_all;
using slimpi::intercept::wait_some;

// Open MPI's module has functions of these names, too. What they call comes to the PMPI_ names.
#define SLIMPI_UNLESS_MPICH(name, parameters, ...) \
  slimpi::mpi::find_abi();                         \
  if (slimpi::mpi::abi.fortran_calls_pmpi) return SLIMPI_NEXT(name, void parameters)(__VA_ARGS__)

// MPICH's mpi_f08 module calls PMPI_ names directly. Its handles are MPICH's integers, a LOGICAL is
// an integer that is not 0, and `error` may be absent.
namespace {
struct Error {
  explicit Error(int* program) : at(program != nullptr ? program : &own) {}
  void raised(int code) { *at = code; }
  int own = 0;
  int* at;
};

// Of what mpi_f08 tells of an array: that of MPICH 4.0 counts from 0, as no Fortran does.
int first_index() {
  static const int first = [] {
    int requests[2], index = 2, flag = 0, error = 0;
    slimpi::mpi::MessageStatus status;
    if (!slimpi::call::make_complete_request(requests)) return 1;
    const int count = 2;
    SLIMPI_NEXT("mpi_testany_f08_", void(const int*, void*, int*, int*, void*, int*))
    (&count, requests, &index, &flag, &status, &error);
    return index - 1;
  }();
  return first;
}

// Null for MPI_STATUSES_IGNORE of the module.
void* statuses_of(void* statuses) {
  static void* const ignored = dlsym(RTLD_DEFAULT, "MPIR_F08_MPI_STATUSES_IGNORE_OBJ");
  return statuses == ignored ? nullptr : statuses;
}
}  // namespace

SLIMPI_EXPORT void mpi_start_f08_(void* request, int* error) {
  SLIMPI_UNLESS_MPICH("mpi_start_f08_", (void*, int*), request, error);
  Error code(error);
  code.raised(start(1, request));
  if (*code.at == 0) SLIMPI_NEXT("mpi_start_f08_", void(void*, int*))(request, code.at);
}

SLIMPI_EXPORT void mpi_startall_f08_(const int* count, void* requests, int* error) {
  SLIMPI_UNLESS_MPICH("mpi_startall_f08_", (const int*, void*, int*), count, requests, error);
  Error code(error);
  code.raised(start(*count, requests));
  if (*code.at == 0)
    SLIMPI_NEXT("mpi_startall_f08_", void(const int*, void*, int*))(count, requests, code.at);
}

SLIMPI_EXPORT void mpi_request_free_f08_(void* request, int* error) {
  SLIMPI_UNLESS_MPICH("mpi_request_free_f08_", (void*, int*), request, error);
  drop_request(request);
  const PersistentEnd end(request);
  SLIMPI_NEXT("mpi_request_free_f08_", void(void*, int*))(request, error);
}

SLIMPI_EXPORT void mpi_cancel_f08_(void* request, int* error) {
  SLIMPI_UNLESS_MPICH("mpi_cancel_f08_", (void*, int*), request, error);
  Error code(error);
  const int refused = refuse_to_cancel(request);
  code.raised(refused);
  if (refused == 0) SLIMPI_NEXT("mpi_cancel_f08_", void(void*, int*))(request, code.at);
}

SLIMPI_EXPORT void mpi_wait_f08_(void* request, void* status, int* error) {
  SLIMPI_UNLESS_MPICH("mpi_wait_f08_", (void*, void*, int*), request, status, error);
  Error code(error);
  code.raised(wait_all(1, request, [&] {
    SLIMPI_NEXT("mpi_wait_f08_", void(void*, void*, int*))(request, status, code.at);
    return *code.at;
  }));
}

SLIMPI_EXPORT void mpi_waitall_f08_(const int* count, void* requests, void* statuses, int* error) {
  SLIMPI_UNLESS_MPICH("mpi_waitall_f08_", (const int*, void*, void*, int*), count, requests,
                      statuses, error);
  Error code(error);
  code.raised(wait_all(
      *count, requests,
      [&] {
        SLIMPI_NEXT("mpi_waitall_f08_", void(const int*, void*, void*, int*))
        (count, requests, statuses, code.at);
        return *code.at;
      },
      statuses_of(statuses), true));
}

SLIMPI_EXPORT void mpi_waitany_f08_(const int* count, void* requests, int* index, void* status,
                                    int* error) {
  SLIMPI_UNLESS_MPICH("mpi_waitany_f08_", (const int*, void*, int*, void*, int*), count, requests,
                      index, status, error);
  Error code(error);
  if (!sums_in_flight()) [[likely]]
    return SLIMPI_NEXT("mpi_waitany_f08_", void(const int*, void*, int*, void*, int*))(
        count, requests, index, status, code.at);
  code.raised(wait_some(*count, requests, [&](int* raised, Completing::Completed* completed) {
    int flag = 0;
    SLIMPI_NEXT("mpi_testany_f08_", void(const int*, void*, int*, int*, void*, int*))
    (count, requests, index, &flag, status, raised);
    *completed = {.count = flag != 0 ? 1 : 0, .indices = index, .base = first_index()};
    return flag != 0;
  }));
}

SLIMPI_EXPORT void mpi_waitsome_f08_(const int* count, void* requests, int* found, int* indices,
                                     void* statuses, int* error) {
  SLIMPI_UNLESS_MPICH("mpi_waitsome_f08_", (const int*, void*, int*, int*, void*, int*), count,
                      requests, found, indices, statuses, error);
  Error code(error);
  if (!sums_in_flight()) [[likely]]
    return SLIMPI_NEXT("mpi_waitsome_f08_", void(const int*, void*, int*, int*, void*, int*))(
        count, requests, found, indices, statuses, code.at);
  code.raised(wait_some(*count, requests, [&](int* raised, Completing::Completed* completed) {
    SLIMPI_NEXT("mpi_testsome_f08_", void(const int*, void*, int*, int*, void*, int*))
    (count, requests, found, indices, statuses, raised);
    *completed = {*found, indices, first_index(), statuses_of(statuses), true};
    return *found != 0;
  }));
}

SLIMPI_EXPORT void mpi_test_f08_(void* request, int* flag, void* status, int* error) {
  SLIMPI_UNLESS_MPICH("mpi_test_f08_", (void*, int*, void*, int*), request, flag, status, error);
  Error code(error);
  code.raised(test(1, request, [&](Completing::Completed* completed) {
    SLIMPI_NEXT("mpi_test_f08_", void(void*, int*, void*, int*))(request, flag, status, code.at);
    completed->count = *flag != 0 ? 1 : 0;
    return *code.at;
  }));
}

SLIMPI_EXPORT void mpi_testall_f08_(const int* count, void* requests, int* flag, void* statuses,
                                    int* error) {
  SLIMPI_UNLESS_MPICH("mpi_testall_f08_", (const int*, void*, int*, void*, int*), count, requests,
                      flag, statuses, error);
  Error code(error);
  code.raised(test(*count, requests, [&](Completing::Completed* completed) {
    SLIMPI_NEXT("mpi_testall_f08_", void(const int*, void*, int*, void*, int*))
    (count, requests, flag, statuses, code.at);
    *completed = {*flag != 0 ? *count : 0, nullptr, 0, statuses_of(statuses), true};
    return *code.at;
  }));
}

SLIMPI_EXPORT void mpi_testany_f08_(const int* count, void* requests, int* index, int* flag,
                                    void* status, int* error) {
  SLIMPI_UNLESS_MPICH("mpi_testany_f08_", (const int*, void*, int*, int*, void*, int*), count,
                      requests, index, flag, status, error);
  Error code(error);
  code.raised(test(*count, requests, [&](Completing::Completed* completed) {
    SLIMPI_NEXT("mpi_testany_f08_", void(const int*, void*, int*, int*, void*, int*))
    (count, requests, index, flag, status, code.at);
    *completed = {.count = *flag != 0 ? 1 : 0, .indices = index, .base = first_index()};
    return *code.at;
  }));
}

SLIMPI_EXPORT void mpi_testsome_f08_(const int* count, void* requests, int* found, int* indices,
                                     void* statuses, int* error) {
  SLIMPI_UNLESS_MPICH("mpi_testsome_f08_", (const int*, void*, int*, int*, void*, int*), count,
                      requests, found, indices, statuses, error);
  Error code(error);
  code.raised(test(*count, requests, [&](Completing::Completed* completed) {
    SLIMPI_NEXT("mpi_testsome_f08_", void(const int*, void*, int*, int*, void*, int*))
    (count, requests, found, indices, statuses, code.at);
    *completed = {*found, indices, first_index(), statuses_of(statuses), true};
    return *code.at;
  }));
}

SLIMPI_EXPORT void mpi_request_get_status_f08_(const void* request, int* flag, void* status,
                                               int* error) {
  SLIMPI_UNLESS_MPICH("mpi_request_get_status_f08_", (const void*, int*, void*, int*), request,
                      flag, status, error);
  Error code(error);
  code.raised(test(0, nullptr, [&](Completing::Completed*) {
    SLIMPI_NEXT("mpi_request_get_status_f08_", void(const void*, int*, void*, int*))
    (request, flag, status, code.at);
    return *code.at;
  }));
}
