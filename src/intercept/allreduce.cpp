// SPDX-License-Identifier: BSD-3-Clause
#include "intercept/sums.h"

namespace slimpi::intercept {

namespace {
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
  return do_or_bypass(make_call(in, out, count, datatype, op, comm));
}

SLIMPI_EXPORT int MPI_Allreduce_c(const void* in, void* out, std::int64_t count, Word datatype,
                                  Word op, Word comm) {
  return do_or_bypass(make_call(in, out, count, datatype, op, comm, true));
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
  return do_or_bypass(make_call(in, out, count, datatype, op, comm, false, true));
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
    return call.collective == Collective::allreduce ? allreduce_by_mpi(call)
                                                    : reduce_scatter_by_mpi(call);
  });
}

int allreduce_by_mpi(const Allreduce& call) {
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
}

}  // namespace slimpi::call
