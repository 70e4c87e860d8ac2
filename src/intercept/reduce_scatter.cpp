// SPDX-License-Identifier: BSD-3-Clause
// MPI_Reduce_scatter_block and MPI_Reduce_scatter, with their nonblocking, persistent and
// large-count forms. Their arguments differ in the counts only: one, or an array of the ranks'.
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "intercept/sums.h"

namespace slimpi::intercept {

namespace {

// The counts of both functions, by the type of the count argument.
BlockCounts counts_of(int count) {
  return {count};
}
BlockCounts counts_of(std::int64_t count) {
  return {count};
}
BlockCounts counts_of(const int* counts) {
  return {0, counts};
}
BlockCounts counts_of(const std::int64_t* counts) {
  return {0, counts, true};
}

template <typename Counts>
Allreduce make_scatter(const void* in, void* out, Counts counts, Word datatype, Word op, Word comm,
                       bool large = false, bool fortran = false) {
  Allreduce call = make_call(in, out, 0, datatype, op, comm, large, fortran);
  call.collective = Collective::reduce_scatter;
  call.blocks = counts_of(counts);
  return call;
}

// measure(), with what end_for() needs. An outcome: the call has ended.
std::optional<Outcome> measured(Allreduce& call) {
  std::optional<Outcome> outcome;
  const Status status = catch_all([&] { outcome = measure(call); });
  if (status != Status::ok) [[unlikely]]
    end_for(call.comm, status);
  return outcome;
}

// Outcomes of measure() that leave the call to MPI are counted.
int scatter(Allreduce call) {
  if (const std::optional<Outcome> outcome = measured(call)) {
    if (outcome->done) return outcome->code;
    int code = 0;
    const Status status = catch_all([&] { code = call_mpi(call, outcome->reason); });
    if (status != Status::ok) [[unlikely]]
      (void)catch_all([&] { code = fail_on(call.comm, status); });
    return code;
  }
  return do_or_bypass(call);
}

template <typename ByMpi>
int scatter_later(Allreduce call, Word request, Outcome (*ours)(const Allreduce&, void*),
                  const ByMpi& by_mpi) {
  if (const std::optional<Outcome> outcome = measured(call))
    return outcome->done ? outcome->code : by_mpi();
  return begin_or_bypass(call, request, ours, by_mpi);
}

// For an MPI without the function for large counts: the counts as ints. Empty where one is larger.
std::optional<int> as_ints(const char* name, std::int64_t count, Word) {
  if (fits(count)) return int(count);
  refuse_count(name, count);
  return std::nullopt;
}

// Each array is kept for good: MPI may read it until a request is complete, which nobody tells
// here.
std::optional<const int*> as_ints(const char* name, const std::int64_t* counts, Word comm) {
  static std::mutex mutex;
  static auto* const known = new std::set<std::vector<int>>;
  std::vector<int> copy;
  int ranks = 0;
  SLIMPI_NEXT("MPI_Comm_size", int(Word, int*))(comm, &ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::optional<int> count = as_ints(name, counts[rank], comm);
    if (!count) return std::nullopt;
    copy.push_back(*count);
  }
  const std::lock_guard lock(mutex);
  return known->insert(std::move(copy)).first->data();
}

}  // namespace

// Defines MPI_Reduce_scatter##suffix and its other forms. `Count` and `Large` are the types of the
// argument for the counts.
#define SLIMPI_SCATTER(suffix, Count, Large)                                                       \
  namespace {                                                                                      \
  int start##suffix(const void* in, void* out, Count counts, Word datatype, Word op, Word comm,    \
                    Word request) {                                                                \
    return SLIMPI_NEXT("MPI_Ireduce_scatter" #suffix,                                              \
                       int(const void*, void*, Count, Word, Word, Word, Word))(                    \
        in, out, counts, datatype, op, comm, request);                                             \
  }                                                                                                \
  int prepare##suffix(const void* in, void* out, Count counts, Word datatype, Word op, Word comm,  \
                      Word info, Word request) {                                                   \
    return SLIMPI_NEXT("MPI_Reduce_scatter" #suffix "_init",                                       \
                       int(const void*, void*, Count, Word, Word, Word, Word, Word))(              \
        in, out, counts, datatype, op, comm, info, request);                                       \
  }                                                                                                \
  int pass_on##suffix(const Allreduce& call, Count counts) {                                       \
    using Function = int(const void*, void*, Count, Word, Word, Word);                             \
    auto* const next = call.fortran ? SLIMPI_NEXT("PMPI_Reduce_scatter" #suffix, Function)         \
                                    : SLIMPI_NEXT("MPI_Reduce_scatter" #suffix, Function);         \
    return next(call.in, call.out, counts, Word(call.datatype), Word(call.op), Word(call.comm));   \
  }                                                                                                \
  int pass_on##suffix(const Allreduce& call, Large counts) {                                       \
    constexpr const char* kName = "MPI_Reduce_scatter" #suffix "_c";                               \
    if (SLIMPI_HAS_NEXT("MPI_Reduce_scatter" #suffix "_c"))                                        \
      return SLIMPI_NEXT("MPI_Reduce_scatter" #suffix "_c",                                        \
                         int(const void*, void*, Large, Word, Word, Word))(                        \
          call.in, call.out, counts, Word(call.datatype), Word(call.op), Word(call.comm));         \
    const auto ints = as_ints(kName, counts, Word(call.comm));                                     \
    return ints ? pass_on##suffix(call, *ints) : mpi::kErrCount;                                   \
  }                                                                                                \
  }                                                                                                \
  SLIMPI_EXPORT int MPI_Reduce_scatter##suffix(const void* in, void* out, Count counts,            \
                                               Word datatype, Word op, Word comm) {                \
    return scatter(make_scatter(in, out, counts, datatype, op, comm));                             \
  }                                                                                                \
  SLIMPI_EXPORT int MPI_Reduce_scatter##suffix##_c(const void* in, void* out, Large counts,        \
                                                   Word datatype, Word op, Word comm) {            \
    return scatter(make_scatter(in, out, counts, datatype, op, comm, true));                       \
  }                                                                                                \
  SLIMPI_EXPORT int MPI_Ireduce_scatter##suffix(const void* in, void* out, Count counts,           \
                                                Word datatype, Word op, Word comm, Word request) { \
    return scatter_later(make_scatter(in, out, counts, datatype, op, comm), request, begin, [&] {  \
      return start##suffix(in, out, counts, datatype, op, comm, request);                          \
    });                                                                                            \
  }                                                                                                \
  SLIMPI_EXPORT int MPI_Ireduce_scatter##suffix##_c(                                               \
      const void* in, void* out, Large counts, Word datatype, Word op, Word comm, Word request) {  \
    const auto by_mpi = [&] {                                                                      \
      if (SLIMPI_HAS_NEXT("MPI_Ireduce_scatter" #suffix "_c"))                                     \
        return SLIMPI_NEXT("MPI_Ireduce_scatter" #suffix "_c",                                     \
                           int(const void*, void*, Large, Word, Word, Word, Word))(                \
            in, out, counts, datatype, op, comm, request);                                         \
      const auto ints = as_ints("MPI_Ireduce_scatter" #suffix "_c", counts, comm);                 \
      return ints ? start##suffix(in, out, *ints, datatype, op, comm, request) : mpi::kErrCount;   \
    };                                                                                             \
    return scatter_later(make_scatter(in, out, counts, datatype, op, comm, true), request, begin,  \
                         by_mpi);                                                                  \
  }                                                                                                \
  SLIMPI_EXPORT int MPI_Reduce_scatter##suffix##_init(const void* in, void* out, Count counts,     \
                                                      Word datatype, Word op, Word comm,           \
                                                      Word info, Word request) {                   \
    const auto by_mpi = [&] {                                                                      \
      return prepare##suffix(in, out, counts, datatype, op, comm, info, request);                  \
    };                                                                                             \
    return scatter_later(make_scatter(in, out, counts, datatype, op, comm), request,               \
                         init_persistent, by_mpi);                                                 \
  }                                                                                                \
  SLIMPI_EXPORT int MPI_Reduce_scatter##suffix##_init_c(const void* in, void* out, Large counts,   \
                                                        Word datatype, Word op, Word comm,         \
                                                        Word info, Word request) {                 \
    const auto by_mpi = [&] {                                                                      \
      if (SLIMPI_HAS_NEXT("MPI_Reduce_scatter" #suffix "_init_c"))                                 \
        return SLIMPI_NEXT("MPI_Reduce_scatter" #suffix "_init_c",                                 \
                           int(const void*, void*, Large, Word, Word, Word, Word, Word))(          \
            in, out, counts, datatype, op, comm, info, request);                                   \
      const auto ints = as_ints("MPI_Reduce_scatter" #suffix "_init_c", counts, comm);             \
      return ints ? prepare##suffix(in, out, *ints, datatype, op, comm, info, request)             \
                  : mpi::kErrCount;                                                                \
    };                                                                                             \
    return scatter_later(make_scatter(in, out, counts, datatype, op, comm, true), request,         \
                         init_persistent, by_mpi);                                                 \
  }                                                                                                \
  SLIMPI_EXPORT int PMPI_Reduce_scatter##suffix(const void* in, void* out, Count counts,           \
                                                Word datatype, Word op, Word comm) {               \
    if (!SLIMPI_FROM_FORTRAN)                                                                      \
      return SLIMPI_NEXT("PMPI_Reduce_scatter" #suffix,                                            \
                         int(const void*, void*, Count, Word, Word, Word))(in, out, counts,        \
                                                                           datatype, op, comm);    \
    return scatter(make_scatter(in, out, counts, datatype, op, comm, false, true));                \
  }                                                                                                \
  SLIMPI_EXPORT int PMPI_Ireduce_scatter##suffix(                                                  \
      const void* in, void* out, Count counts, Word datatype, Word op, Word comm, Word request) {  \
    const auto by_mpi = [&] {                                                                      \
      return SLIMPI_NEXT("PMPI_Ireduce_scatter" #suffix,                                           \
                         int(const void*, void*, Count, Word, Word, Word, Word))(                  \
          in, out, counts, datatype, op, comm, request);                                           \
    };                                                                                             \
    if (!SLIMPI_FROM_FORTRAN) return by_mpi();                                                     \
    return scatter_later(make_scatter(in, out, counts, datatype, op, comm, false, true), request,  \
                         begin, by_mpi);                                                           \
  }                                                                                                \
  SLIMPI_EXPORT int PMPI_Reduce_scatter##suffix##_init(const void* in, void* out, Count counts,    \
                                                       Word datatype, Word op, Word comm,          \
                                                       Word info, Word request) {                  \
    const auto by_mpi = [&] {                                                                      \
      return SLIMPI_NEXT("PMPI_Reduce_scatter" #suffix "_init",                                    \
                         int(const void*, void*, Count, Word, Word, Word, Word, Word))(            \
          in, out, counts, datatype, op, comm, info, request);                                     \
    };                                                                                             \
    if (!SLIMPI_FROM_FORTRAN) return by_mpi();                                                     \
    return scatter_later(make_scatter(in, out, counts, datatype, op, comm, false, true), request,  \
                         init_persistent, by_mpi);                                                 \
  }

SLIMPI_SCATTER(_block, int, std::int64_t)
SLIMPI_SCATTER(, const int*, const std::int64_t*)

#undef SLIMPI_SCATTER

}  // namespace slimpi::intercept

namespace slimpi::call {

int reduce_scatter_by_mpi(const Allreduce& call) {
  using namespace intercept;
  const BlockCounts& blocks = call.blocks;
  if (blocks.array == nullptr)
    return call.large ? pass_on_block(call, blocks.each) : pass_on_block(call, int(blocks.each));
  return call.large ? pass_on(call, static_cast<const std::int64_t*>(blocks.array))
                    : pass_on(call, static_cast<const int*>(blocks.array));
}

}  // namespace slimpi::call
