// SPDX-License-Identifier: BSD-3-Clause
// The functions that complete requests. While nonblocking sums are in flight, they let them make
// progress: MPI cannot. A wait for one or for all requests polls them without completing them, and
// then calls the next definition, which returns at once. A wait for some of them polls with the
// next MPI_Testany or MPI_Testsome, because which requests are active cannot be asked. Without sums
// in flight each function is a load and a branch before the next definition.
#include "call/entry.h"
#include "intercept/catch_all.h"

using slimpi::call::are_complete;
using slimpi::call::Completing;
using slimpi::call::PersistentEnd;
using slimpi::call::progress;
using slimpi::call::sums_in_flight;
using slimpi::call::Word;
using slimpi::intercept::catch_all;

namespace {

// What an error handler of the program throws passes; see catch_all.h.
int raise(Completing& completing, int code) {
  (void)catch_all([&] { code = completing.raise(code); });
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

// `finish` calls the next definition.
template <typename Finish>
int wait_all(int count, const void* requests, const Finish& finish) {
  if (!sums_in_flight()) [[likely]]
    return finish();
  Completing completing;
  wait_for_all(count, requests);
  return raise(completing, finish());
}

// `test` calls the next definition of the function that does not wait. *ready: it found something.
template <typename Test>
int wait_some(const Test& test) {
  Completing completing;
  int code = 0;
  wait_until([&] {
    bool ready = false;
    code = test(&ready);
    return ready || code != 0;
  });
  return raise(completing, code);
}

template <typename Finish>
int test(const Finish& finish) {
  if (!sums_in_flight()) [[likely]]
    return finish();
  Completing completing;
  (void)catch_all(progress);
  return raise(completing, finish());
}

}  // namespace

SLIMPI_EXPORT int MPI_Wait(void* request, void* status) {
  return wait_all(1, request,
                  [&] { return SLIMPI_NEXT("MPI_Wait", int(void*, void*))(request, status); });
}

SLIMPI_EXPORT int MPI_Waitall(int count, void* requests, void* statuses) {
  return wait_all(count, requests, [&] {
    return SLIMPI_NEXT("MPI_Waitall", int(int, void*, void*))(count, requests, statuses);
  });
}

SLIMPI_EXPORT int MPI_Waitany(int count, void* requests, int* index, void* status) {
  if (!sums_in_flight()) [[likely]]
    return SLIMPI_NEXT("MPI_Waitany", int(int, void*, int*, void*))(count, requests, index, status);
  return wait_some([&](bool* ready) {
    int flag = 0;
    const int code = SLIMPI_NEXT("MPI_Testany", int(int, void*, int*, int*, void*))(
        count, requests, index, &flag, status);
    *ready = flag != 0;
    return code;
  });
}

SLIMPI_EXPORT int MPI_Waitsome(int count, void* requests, int* found, int* indices,
                               void* statuses) {
  if (!sums_in_flight()) [[likely]]
    return SLIMPI_NEXT("MPI_Waitsome", int(int, void*, int*, int*, void*))(count, requests, found,
                                                                           indices, statuses);
  return wait_some([&](bool* ready) {
    const int code = SLIMPI_NEXT("MPI_Testsome", int(int, void*, int*, int*, void*))(
        count, requests, found, indices, statuses);
    *ready = *found != 0;
    return code;
  });
}

SLIMPI_EXPORT int MPI_Test(void* request, int* flag, void* status) {
  return test(
      [&] { return SLIMPI_NEXT("MPI_Test", int(void*, int*, void*))(request, flag, status); });
}

SLIMPI_EXPORT int MPI_Testall(int count, void* requests, int* flag, void* statuses) {
  return test([&] {
    return SLIMPI_NEXT("MPI_Testall", int(int, void*, int*, void*))(count, requests, flag,
                                                                    statuses);
  });
}

SLIMPI_EXPORT int MPI_Testany(int count, void* requests, int* index, int* flag, void* status) {
  return test([&] {
    return SLIMPI_NEXT("MPI_Testany", int(int, void*, int*, int*, void*))(count, requests, index,
                                                                          flag, status);
  });
}

SLIMPI_EXPORT int MPI_Testsome(int count, void* requests, int* found, int* indices,
                               void* statuses) {
  return test([&] {
    return SLIMPI_NEXT("MPI_Testsome", int(int, void*, int*, int*, void*))(count, requests, found,
                                                                           indices, statuses);
  });
}

SLIMPI_EXPORT int MPI_Request_get_status(Word request, int* flag, void* status) {
  return test([&] {
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
  const PersistentEnd end(request);
  return SLIMPI_NEXT("MPI_Request_free", int(void*))(request);
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
  const PersistentEnd end(request);
  SLIMPI_NEXT("mpi_request_free_f08_", void(void*, int*))(request, error);
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
  code.raised(wait_all(*count, requests, [&] {
    SLIMPI_NEXT("mpi_waitall_f08_", void(const int*, void*, void*, int*))
    (count, requests, statuses, code.at);
    return *code.at;
  }));
}

SLIMPI_EXPORT void mpi_waitany_f08_(const int* count, void* requests, int* index, void* status,
                                    int* error) {
  Error code(error);
  if (!sums_in_flight()) [[likely]]
    return SLIMPI_NEXT("mpi_waitany_f08_", void(const int*, void*, int*, void*, int*))(
        count, requests, index, status, code.at);
  code.raised(wait_some([&](bool* ready) {
    int flag = 0;
    SLIMPI_NEXT("mpi_testany_f08_", void(const int*, void*, int*, int*, void*, int*))
    (count, requests, index, &flag, status, code.at);
    *ready = flag != 0;
    return *code.at;
  }));
}

SLIMPI_EXPORT void mpi_waitsome_f08_(const int* count, void* requests, int* found, int* indices,
                                     void* statuses, int* error) {
  Error code(error);
  if (!sums_in_flight()) [[likely]]
    return SLIMPI_NEXT("mpi_waitsome_f08_", void(const int*, void*, int*, int*, void*, int*))(
        count, requests, found, indices, statuses, code.at);
  code.raised(wait_some([&](bool* ready) {
    SLIMPI_NEXT("mpi_testsome_f08_", void(const int*, void*, int*, int*, void*, int*))
    (count, requests, found, indices, statuses, code.at);
    *ready = *found != 0;
    return *code.at;
  }));
}

SLIMPI_EXPORT void mpi_test_f08_(void* request, int* flag, void* status, int* error) {
  Error code(error);
  code.raised(test([&] {
    SLIMPI_NEXT("mpi_test_f08_", void(void*, int*, void*, int*))(request, flag, status, code.at);
    return *code.at;
  }));
}

SLIMPI_EXPORT void mpi_testall_f08_(const int* count, void* requests, int* flag, void* statuses,
                                    int* error) {
  Error code(error);
  code.raised(test([&] {
    SLIMPI_NEXT("mpi_testall_f08_", void(const int*, void*, int*, void*, int*))
    (count, requests, flag, statuses, code.at);
    return *code.at;
  }));
}

SLIMPI_EXPORT void mpi_testany_f08_(const int* count, void* requests, int* index, int* flag,
                                    void* status, int* error) {
  Error code(error);
  code.raised(test([&] {
    SLIMPI_NEXT("mpi_testany_f08_", void(const int*, void*, int*, int*, void*, int*))
    (count, requests, index, flag, status, code.at);
    return *code.at;
  }));
}

SLIMPI_EXPORT void mpi_testsome_f08_(const int* count, void* requests, int* found, int* indices,
                                     void* statuses, int* error) {
  Error code(error);
  code.raised(test([&] {
    SLIMPI_NEXT("mpi_testsome_f08_", void(const int*, void*, int*, int*, void*, int*))
    (count, requests, found, indices, statuses, code.at);
    return *code.at;
  }));
}

SLIMPI_EXPORT void mpi_request_get_status_f08_(const void* request, int* flag, void* status,
                                               int* error) {
  Error code(error);
  code.raised(test([&] {
    SLIMPI_NEXT("mpi_request_get_status_f08_", void(const void*, int*, void*, int*))
    (request, flag, status, code.at);
    return *code.at;
  }));
}
