// SPDX-License-Identifier: BSD-3-Clause
// The functions that complete requests. While nonblocking sums are in flight, they let them make
// progress: MPI cannot. A wait for one or for all requests polls them without completing them, and
// then calls the next definition, which returns at once. A wait for some of them polls with the
// next MPI_Testany or MPI_Testsome, because which requests are active cannot be asked. Without sums
// in flight each function is a load and a branch before the next definition.
#include <dlfcn.h>

#include "call/entry.h"
#include "intercept/catch_all.h"

using slimpi::call::are_complete;
using slimpi::call::Completing;
using slimpi::call::drop_request;
using slimpi::call::PersistentEnd;
using slimpi::call::progress;
using slimpi::call::sums_in_flight;
using slimpi::call::Word;
using slimpi::intercept::catch_all;

namespace {

// What an error handler of the program throws passes; see catch_all.h.
int raise(Completing& completing, int code, const Completing::Completed& completed) {
  (void)catch_all([&] { code = completing.raise(code, completed); });
  return code;
}

template <typename Poll>
void wait_until(Poll poll) {
  (void)catch_all([&] {
    slimpi::call::wait_until([](void* one) { return (*static_cast<Poll*>(one))(); }, &poll);
  });
}

void wait_for_all(int count, const void* requests) {
  int complete = 0;
  wait_until([&] { return are_complete(count, requests, &complete); });
}

// `finish` calls the next definition. statuses: of MPI_Waitall.
template <typename Finish>
int wait_all(int count, const void* requests, const Finish& finish, void* statuses = nullptr,
             bool several = false) {
  if (!sums_in_flight()) [[likely]]
    return finish();
  Completing completing(count, requests);
  wait_for_all(count, requests);
  return raise(completing, finish(), {.count = count, .statuses = statuses, .several = several});
}

// `test` calls the next definition of the function that does not wait. It says what it has
// completed in *completed, and whether it found something.
template <typename Test>
int wait_some(int count, const void* requests, const Test& test) {
  Completing completing(count, requests);
  Completing::Completed completed;
  int code = 0;
  wait_until([&] { return test(&code, &completed) || code != 0; });
  return raise(completing, code, completed);
}

// `finish` calls the next definition and says what it has completed.
template <typename Finish>
int test(int count, const void* requests, const Finish& finish) {
  Completing::Completed completed;
  if (!sums_in_flight()) [[likely]]
    return finish(&completed);
  Completing completing(count, requests);
  (void)catch_all(progress);
  const int code = finish(&completed);
  return raise(completing, code, completed);
}

}  // namespace

SLIMPI_EXPORT int MPI_Wait(void* request, void* status) {
  return wait_all(1, request,
                  [&] { return SLIMPI_NEXT("MPI_Wait", int(void*, void*))(request, status); });
}

SLIMPI_EXPORT int MPI_Waitall(int count, void* requests, void* statuses) {
  return wait_all(
      count, requests,
      [&] { return SLIMPI_NEXT("MPI_Waitall", int(int, void*, void*))(count, requests, statuses); },
      statuses, true);
}

SLIMPI_EXPORT int MPI_Waitany(int count, void* requests, int* index, void* status) {
  if (!sums_in_flight()) [[likely]]
    return SLIMPI_NEXT("MPI_Waitany", int(int, void*, int*, void*))(count, requests, index, status);
  return wait_some(count, requests, [&](int* code, Completing::Completed* completed) {
    int flag = 0;
    *code = SLIMPI_NEXT("MPI_Testany", int(int, void*, int*, int*, void*))(count, requests, index,
                                                                           &flag, status);
    *completed = {.count = flag != 0 ? 1 : 0, .indices = index};
    return flag != 0;
  });
}

SLIMPI_EXPORT int MPI_Waitsome(int count, void* requests, int* found, int* indices,
                               void* statuses) {
  if (!sums_in_flight()) [[likely]]
    return SLIMPI_NEXT("MPI_Waitsome", int(int, void*, int*, int*, void*))(count, requests, found,
                                                                           indices, statuses);
  return wait_some(count, requests, [&](int* code, Completing::Completed* completed) {
    *code = SLIMPI_NEXT("MPI_Testsome", int(int, void*, int*, int*, void*))(count, requests, found,
                                                                            indices, statuses);
    *completed = {.count = *found, .indices = indices, .statuses = statuses, .several = true};
    return *found != 0;
  });
}

SLIMPI_EXPORT int MPI_Test(void* request, int* flag, void* status) {
  return test(1, request, [&](Completing::Completed* completed) {
    const int code = SLIMPI_NEXT("MPI_Test", int(void*, int*, void*))(request, flag, status);
    completed->count = *flag != 0 ? 1 : 0;
    return code;
  });
}

SLIMPI_EXPORT int MPI_Testall(int count, void* requests, int* flag, void* statuses) {
  return test(count, requests, [&](Completing::Completed* completed) {
    const int code =
        SLIMPI_NEXT("MPI_Testall", int(int, void*, int*, void*))(count, requests, flag, statuses);
    *completed = {.count = *flag != 0 ? count : 0, .statuses = statuses, .several = true};
    return code;
  });
}

SLIMPI_EXPORT int MPI_Testany(int count, void* requests, int* index, int* flag, void* status) {
  return test(count, requests, [&](Completing::Completed* completed) {
    const int code = SLIMPI_NEXT("MPI_Testany", int(int, void*, int*, int*, void*))(
        count, requests, index, flag, status);
    *completed = {.count = *flag != 0 ? 1 : 0, .indices = index};
    return code;
  });
}

SLIMPI_EXPORT int MPI_Testsome(int count, void* requests, int* found, int* indices,
                               void* statuses) {
  return test(count, requests, [&](Completing::Completed* completed) {
    const int code = SLIMPI_NEXT("MPI_Testsome", int(int, void*, int*, int*, void*))(
        count, requests, found, indices, statuses);
    *completed = {.count = *found, .indices = indices, .statuses = statuses, .several = true};
    return code;
  });
}

SLIMPI_EXPORT int MPI_Request_get_status(Word request, int* flag, void* status) {
  return test(0, nullptr, [&](Completing::Completed*) {
    return SLIMPI_NEXT("MPI_Request_get_status", int(Word, int*, void*))(request, flag, status);
  });
}

namespace {

int start(int count, const void* requests) {
  int code = 0;
  const slimpi::Status status =
      catch_all([&] { code = slimpi::call::start_persistent(count, requests); });
  return status == slimpi::Status::ok ? code : slimpi::mpi::abi.err_other;
}

}  // namespace

SLIMPI_EXPORT int MPI_Start(void* request) {
  const int code = start(1, request);
  return code != 0 ? code : SLIMPI_NEXT("MPI_Start", int(void*))(request);
}

SLIMPI_EXPORT int MPI_Startall(int count, void* requests) {
  const int code = start(count, requests);
  return code != 0 ? code : SLIMPI_NEXT("MPI_Startall", int(int, void*))(count, requests);
}

SLIMPI_EXPORT int MPI_Request_free(void* request) {
  drop_request(request);
  const PersistentEnd end(request);
  return SLIMPI_NEXT("MPI_Request_free", int(void*))(request);
}

SLIMPI_EXPORT int MPI_Cancel(void* request) {
  int code = 0;
  (void)catch_all([&] { code = slimpi::call::refuse_to_cancel(request); });
  return code != 0 ? code : SLIMPI_NEXT("MPI_Cancel", int(void*))(request);
}

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
  Error code(error);
  code.raised(start(1, request));
  if (*code.at == 0) SLIMPI_NEXT("mpi_start_f08_", void(void*, int*))(request, code.at);
}

SLIMPI_EXPORT void mpi_startall_f08_(const int* count, void* requests, int* error) {
  Error code(error);
  code.raised(start(*count, requests));
  if (*code.at == 0)
    SLIMPI_NEXT("mpi_startall_f08_", void(const int*, void*, int*))(count, requests, code.at);
}

SLIMPI_EXPORT void mpi_request_free_f08_(void* request, int* error) {
  drop_request(request);
  const PersistentEnd end(request);
  SLIMPI_NEXT("mpi_request_free_f08_", void(void*, int*))(request, error);
}

SLIMPI_EXPORT void mpi_cancel_f08_(void* request, int* error) {
  Error code(error);
  int refused = 0;
  (void)catch_all([&] { refused = slimpi::call::refuse_to_cancel(request); });
  code.raised(refused);
  if (refused == 0) SLIMPI_NEXT("mpi_cancel_f08_", void(void*, int*))(request, code.at);
}

SLIMPI_EXPORT void mpi_wait_f08_(void* request, void* status, int* error) {
  Error code(error);
  code.raised(wait_all(1, request, [&] {
    SLIMPI_NEXT("mpi_wait_f08_", void(void*, void*, int*))(request, status, code.at);
    return *code.at;
  }));
}

SLIMPI_EXPORT void mpi_waitall_f08_(const int* count, void* requests, void* statuses, int* error) {
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
  Error code(error);
  code.raised(test(1, request, [&](Completing::Completed* completed) {
    SLIMPI_NEXT("mpi_test_f08_", void(void*, int*, void*, int*))(request, flag, status, code.at);
    completed->count = *flag != 0 ? 1 : 0;
    return *code.at;
  }));
}

SLIMPI_EXPORT void mpi_testall_f08_(const int* count, void* requests, int* flag, void* statuses,
                                    int* error) {
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
  Error code(error);
  code.raised(test(0, nullptr, [&](Completing::Completed*) {
    SLIMPI_NEXT("mpi_request_get_status_f08_", void(const void*, int*, void*, int*))
    (request, flag, status, code.at);
    return *code.at;
  }));
}
