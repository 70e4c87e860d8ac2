// SPDX-License-Identifier: BSD-3-Clause
#include <climits>

#include "call/entry.h"
#include "intercept/catch_all.h"
#include "intercept/fortran.h"

namespace slimpi::intercept {

// Programs such as mpi4py use a function for large counts where they find one. With an MPI older
// than 4.0, or other than MPICH, they may find only the one here. It then does what the function
// for small counts can do.
namespace {
bool fits(std::int64_t count) {
  return count <= INT_MAX;
}

Allreduce make_call(const void* in, void* out, std::int64_t count, Word datatype, Word op,
                    Word comm, bool large = false, bool fortran = false) {
  Allreduce call{in, out, count, Datatype(datatype), Op(op), Comm(comm), large, fortran};
  mpi::find_abi();
  call.datatype = cut_known<Datatype>(Word(call.datatype));
  call.op = cut_known<Op>(Word(call.op));
  call.comm = cut_known<Comm>(Word(call.comm));
  return call;
}

[[gnu::always_inline]] inline int allreduce(const Allreduce& call) {
  Outcome outcome;
  Status status = catch_all([&] { outcome = dispatch(call); });
  if (status != Status::ok) [[unlikely]]
    end_for(call.comm, status);
  if (outcome.done) return outcome.code;
  int code = 0;
  status = catch_all([&] { code = call_mpi(call, outcome.reason); });
  if (status != Status::ok) [[unlikely]]
    (void)catch_all([&] { code = fail_on(call.comm, status); });
  return code;
}

// Begins or makes the call by `ours`, or lets MPI do so.
template <typename ByMpi>
int begin_or_bypass(const Allreduce& call, Word request, Outcome (*ours)(const Allreduce&, void*),
                    const ByMpi& by_mpi) {
  Outcome outcome;
  const Status status = catch_all([&] { outcome = ours(call, reinterpret_cast<void*>(request)); });
  if (status != Status::ok) [[unlikely]]
    end_for(call.comm, status);
  if (outcome.done) return outcome.code;
  const int code = by_mpi();
  if (outcome.reason == BypassReason::datatype && ours == &begin) count_other_bytes(call, code);
  if (outcome.reason && code == 0) (void)catch_all([&] { estimate_nonblocking(call); });
  return code;
}

int nonblocking(const void* in, void* out, int count, Word datatype, Word op, Word comm,
                Word request) {
  return SLIMPI_NEXT("MPI_Iallreduce", int(const void*, void*, int, Word, Word, Word, Word))(
      in, out, count, datatype, op, comm, request);
}

int persistent(const void* in, void* out, int count, Word datatype, Word op, Word comm, Word info,
               Word request) {
  return SLIMPI_NEXT("MPI_Allreduce_init",
                     int(const void*, void*, int, Word, Word, Word, Word, Word))(
      in, out, count, datatype, op, comm, info, request);
}
}  // namespace

SLIMPI_EXPORT int MPI_Allreduce(const void* in, void* out, int count, Word datatype, Word op,
                                Word comm) {
  return allreduce(make_call(in, out, count, datatype, op, comm));
}

SLIMPI_EXPORT int MPI_Allreduce_c(const void* in, void* out, std::int64_t count, Word datatype,
                                  Word op, Word comm) {
  return allreduce(make_call(in, out, count, datatype, op, comm, true));
}

SLIMPI_EXPORT int MPI_Iallreduce(const void* in, void* out, int count, Word datatype, Word op,
                                 Word comm, Word request) {
  return begin_or_bypass(make_call(in, out, count, datatype, op, comm), request, begin,
                         [&] { return nonblocking(in, out, count, datatype, op, comm, request); });
}

SLIMPI_EXPORT int MPI_Iallreduce_c(const void* in, void* out, std::int64_t count, Word datatype,
                                   Word op, Word comm, Word request) {
  return begin_or_bypass(make_call(in, out, count, datatype, op, comm, true), request, begin, [&] {
    if (SLIMPI_HAS_NEXT("MPI_Iallreduce_c"))
      return SLIMPI_NEXT("MPI_Iallreduce_c",
                         int(const void*, void*, std::int64_t, Word, Word, Word, Word))(
          in, out, count, datatype, op, comm, request);
    if (!fits(count)) return refuse_count("MPI_Iallreduce_c", count);
    return nonblocking(in, out, int(count), datatype, op, comm, request);
  });
}

SLIMPI_EXPORT int MPI_Allreduce_init(const void* in, void* out, int count, Word datatype, Word op,
                                     Word comm, Word info, Word request) {
  const Allreduce call = make_call(in, out, count, datatype, op, comm);
  return begin_or_bypass(call, request, init_persistent, [&] {
    return persistent(in, out, count, datatype, op, comm, info, request);
  });
}

SLIMPI_EXPORT int MPI_Allreduce_init_c(const void* in, void* out, std::int64_t count, Word datatype,
                                       Word op, Word comm, Word info, Word request) {
  const Allreduce call = make_call(in, out, count, datatype, op, comm, true);
  const auto by_mpi = [&] {
    if (SLIMPI_HAS_NEXT("MPI_Allreduce_init_c"))
      return SLIMPI_NEXT("MPI_Allreduce_init_c",
                         int(const void*, void*, std::int64_t, Word, Word, Word, Word, Word))(
          in, out, count, datatype, op, comm, info, request);
    if (!fits(count)) return refuse_count("MPI_Allreduce_init_c", count);
    return persistent(in, out, int(count), datatype, op, comm, info, request);
  };
  return begin_or_bypass(call, request, init_persistent, by_mpi);
}

SLIMPI_EXPORT int PMPI_Allreduce(const void* in, void* out, int count, Word datatype, Word op,
                                 Word comm) {
  if (!SLIMPI_FROM_FORTRAN)
    return SLIMPI_NEXT("PMPI_Allreduce", int(const void*, void*, int, Word, Word, Word))(
        in, out, count, datatype, op, comm);
  return allreduce(make_call(in, out, count, datatype, op, comm, false, true));
}

SLIMPI_EXPORT int PMPI_Iallreduce(const void* in, void* out, int count, Word datatype, Word op,
                                  Word comm, Word request) {
  const auto by_mpi = [&] {
    return SLIMPI_NEXT("PMPI_Iallreduce", int(const void*, void*, int, Word, Word, Word, Word))(
        in, out, count, datatype, op, comm, request);
  };
  if (!SLIMPI_FROM_FORTRAN) return by_mpi();
  return begin_or_bypass(make_call(in, out, count, datatype, op, comm, false, true), request, begin,
                         by_mpi);
}

SLIMPI_EXPORT int PMPI_Allreduce_init(const void* in, void* out, int count, Word datatype, Word op,
                                      Word comm, Word info, Word request) {
  const auto by_mpi = [&] {
    return SLIMPI_NEXT("PMPI_Allreduce_init",
                       int(const void*, void*, int, Word, Word, Word, Word, Word))(
        in, out, count, datatype, op, comm, info, request);
  };
  if (!SLIMPI_FROM_FORTRAN) return by_mpi();
  return begin_or_bypass(make_call(in, out, count, datatype, op, comm, false, true), request,
                         init_persistent, by_mpi);
}

}  // namespace slimpi::intercept

namespace slimpi::call {

// Called inside the catch-all: what MPI's error handlers throw is the program's.
int call_mpi_unstaged(const Allreduce& call) {
  // g_fibers counts the sums in flight; without one no thread is in a fiber.
  if (g_fibers.load(std::memory_order_relaxed) != 0 && Fiber::inside()) return sum_by_mpi(call);
  return programs_code([&] {
    if (call.large) {
      if (SLIMPI_HAS_NEXT("MPI_Allreduce_c"))
        return SLIMPI_NEXT("MPI_Allreduce_c",
                           int(const void*, void*, std::int64_t, Word, Word, Word))(
            call.in, call.out, call.count, Word(call.datatype), Word(call.op), Word(call.comm));
      if (call.count > INT_MAX) return refuse_count("MPI_Allreduce_c", call.count);
    }
    auto* const next =
        call.fortran ? SLIMPI_NEXT("PMPI_Allreduce", int(const void*, void*, int, Word, Word, Word))
                     : SLIMPI_NEXT("MPI_Allreduce", int(const void*, void*, int, Word, Word, Word));
    return next(call.in, call.out, int(call.count), Word(call.datatype), Word(call.op),
                Word(call.comm));
  });
}

}  // namespace slimpi::call
