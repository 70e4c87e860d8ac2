// SPDX-License-Identifier: BSD-3-Clause
// What the intercepted functions of all collectives that sum have in common.
//
// Programs such as mpi4py use a function for large counts where they find one. With an MPI older
// than 4.0, or other than MPICH, they may find only the one here. It then does what the function
// for small counts can do.
#pragma once
#include <climits>
#include <cstdint>

#include "call/entry.h"
#include "intercept/catch_all.h"
#include "intercept/fortran.h"

namespace slimpi::intercept {

inline bool fits(std::int64_t count) {
  return count <= INT_MAX;
}

[[gnu::always_inline]] inline Allreduce make_call(const void* in, void* out, std::int64_t count,
                                                  Word datatype, Word op, Word comm,
                                                  bool large = false, bool fortran = false) {
  Allreduce call{in, out, count, Datatype(datatype), Op(op), Comm(comm), large, fortran};
  mpi::find_abi();
  call.datatype = cut_known<Datatype>(Word(call.datatype));
  call.op = cut_known<Op>(Word(call.op));
  call.comm = cut_known<Comm>(Word(call.comm));
  return call;
}

// Does the call, or lets MPI do it.
[[gnu::always_inline]] inline int do_or_bypass(const Allreduce& call) {
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

}  // namespace slimpi::intercept
