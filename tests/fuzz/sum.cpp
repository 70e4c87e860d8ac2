// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/sum.h"

#include <utility>

#include "tests/fuzz/answer.h"
#include "tests/helper/mpi/collectives.h"
#include "tests/helper/base/program.h"
#include "tests/mpi/values/numbers.h"

namespace fuzz {

namespace {

// Draws a size: at an edge of the parts into which the library cuts a buffer, or any size.
std::size_t draw_count(Draws& draws, const Communicator& on) {
  const std::size_t ranks = std::size_t(std::max(on.size, 1));
  const std::size_t bucket = on.options.bucket == 0 ? 64 : on.options.bucket;
  const std::size_t kind = draws.below(8), off = draws.below(3), times = 1 + draws.below(8);
  const std::size_t small = draws.among({0, 1, 2, 3, 63, 64, 65});
  const std::size_t short_one = draws.below(3'000), usual = draws.below(40'000),
                    any = draws.below(draws.one_in(4) ? kMostElements : 80'000);
  const auto near = [&](std::size_t edge) {
    return std::min(edge + off, kMostElements) - std::min<std::size_t>(1, edge + off);
  };
  switch (kind) {
    case 0:
      return small;
    case 1:
      return near(ranks * (times - 1));
    case 2:
      return near(on.options.min_size / sizeof(float));
    case 3:
      return near(bucket * times);
    case 4:  // segments between nodes are cut at 16 KiB of payload
      return near((16 << 10) * 8 / on.options.bits * times / 2);
    case 5:
      return short_one;
    case 6:
      return any;
    default:
      return usual;
  }
}

// Whether the bytes of a sum, and who answered it, are equal on all ranks of the communicator.
struct Compared {
  bool bytes, answered;
};

Compared compare(MPI_Comm comm, std::uint64_t hash, bool taken) {
  std::uint64_t words[] = {hash, ~hash, taken ? 1u : 0u, taken ? 0u : 1u};
  PMPI_Allreduce(MPI_IN_PLACE, words, 4, MPI_UINT64_T, MPI_MAX, comm);
  return {words[0] == ~words[1], words[2] + words[3] == 1};
}

// The drawn buffers of a call.
struct Buffers {
  Place in, out;
  bool in_place = false, read_only = false;

  explicit Buffers(Draws& draws, int rank) {
    const std::uint64_t number = draws.number();
    // The places are mostly the same on all ranks, because slots of state go by address.
    const std::uint64_t own = draws.one_in(4) ? Draws::of(number, std::uint64_t(rank)) : number;
    in_place = number % 3 == 0;
    read_only = number % 5 == 0;
    in = {own % 2 == 0, own / 2 % 4};
    out = {own / 8 % 2 == 0, own / 16 % 4};
  }
};

// Places an input and an output of so many bytes, calls sum(from, to), and returns its code. Checks
// which bytes are touched.
int watch(Run& run, const Buffers& buffers, const void* input, std::size_t bytes,
          std::size_t bytes_out, std::size_t width, const auto& sum) {
  char* const in = run.in.place(bytes, width, buffers.in);
  char* const out = run.out.place(buffers.in_place ? bytes : bytes_out, width, buffers.out);
  if (bytes != 0) std::memcpy(buffers.in_place ? out : in, input, bytes);
  if (buffers.read_only) run.in.set_read_only(true);
  run.disturbance.enter();
  const int code =
      run.disturbance.call([&] { return sum(buffers.in_place ? MPI_IN_PLACE : in, out); });
  run.disturbance.leave();
  if (buffers.read_only) run.in.set_read_only(false);
  if (!buffers.in_place && bytes != 0 && std::memcmp(in, input, bytes) != 0)
    run.complain("the input was changed");
  if (!run.in.surroundings_hold()) run.complain("wrote next to the input");
  if (!run.out.surroundings_hold()) run.complain("wrote next to the output");
  return code;
}

int allreduce(Run& run, const Buffers& buffers, const void* input, std::size_t count,
              std::size_t width, MPI_Datatype type, MPI_Op op, MPI_Comm comm, bool large) {
  return watch(run, buffers, input, count * width, count * width, width,
               [&](const void* from, void* to) {
                 return large ? MPI_Allreduce_c(from, to, MPI_Count(count), type, op, comm)
                              : MPI_Allreduce(from, to, int(count), type, op, comm);
               });
}

// The collectives that a run draws from.
const char* draw_collective(const Run& run, Draws& draws) {
  if (!run.ways)
    return draws.among({"Allreduce", "Allreduce", "Allreduce", "Reduce_scatter",
                        "Reduce_scatter_block", "Allgather", "Allgatherv"});
  return draws.among({"Allreduce", "Allreduce", "Iallreduce", "Iallreduce", "Allreduce_init",
                      "Reduce_scatter", "Reduce_scatter_block", "Ireduce_scatter",
                      "Ireduce_scatter_block", "Reduce_scatter_init", "Reduce_scatter_block_init",
                      "Allgather", "Allgatherv", "Iallgather", "Iallgatherv", "Allgather_init",
                      "Allgatherv_init"});
}

bool is_blocking(const char* collective) {
  return *collective != 'I' && std::strstr(collective, "_init") == nullptr;
}

std::vector<int> places_of(const Communicator& on, const int* blocks) {
  std::vector<int> first(std::size_t(on.size) + 1);
  for (int r = 0; r < on.size; ++r) first[std::size_t(r) + 1] = first[std::size_t(r)] + blocks[r];
  return first;
}

// Writes the blocks of all ranks, gathered by MPI; `own` is the block of this rank.
void gather_blocks(const Communicator& on, const void* own, const int* blocks, MPI_Datatype type,
                   void* all) {
  PMPI_Allgatherv(own, blocks[on.rank], type, all, blocks, places_of(on, blocks).data(), type,
                  on.comm);
}

// Makes MPI's own sum or all-gather, blocking, and returns what this rank gets.
std::vector<char> call_mpi(Run& run, const Communicator& on, const char* collective,
                           const void* input, std::size_t count, const int* blocks,
                           std::size_t bytes, MPI_Datatype type, std::size_t width) {
  std::vector<char> reference(bytes);
  run.disturbance.enter();
  if (names_gather(collective) != 0)
    gather_blocks(on,
                  static_cast<const char*>(input) +
                      std::size_t(places_of(on, blocks)[std::size_t(on.rank)]) * width,
                  blocks, type, reference.data());
  else if (names_blocks(collective) == 0)
    PMPI_Allreduce(input, reference.data(), int(count), type, MPI_SUM, on.comm);
  else if (names_equal_blocks(collective) != 0)
    PMPI_Reduce_scatter_block(input, reference.data(), blocks[0], type, MPI_SUM, on.comm);
  else
    PMPI_Reduce_scatter(input, reference.data(), blocks, type, MPI_SUM, on.comm);
  run.disturbance.leave();
  return reference;
}

std::string describe(const Communicator& on, const Case& test, const Buffers& buffers) {
  return std::to_string(test.count) + " elements, " + family_name(test.family) +
         (buffers.in_place ? ", in place" : "") + (buffers.read_only ? ", read-only" : "") +
         ", on rank " + std::to_string(on.rank) + " of " + std::to_string(on.size) + " of " +
         on.made_by + " (" + on.options.text() + ")";
}

}  // namespace

void sum_floats(Run& run, Communicator& on, Draws& draws) {
  const std::size_t drawn = draw_count(draws, on);
  auto family = Family(draws.below(std::size_t(Family::opposite_infinities) + 1));
  const std::uint64_t seed = draws.number() >> 16;
  const bool large = draws.one_in(5), first = draws.one_in(2);
  MPI_Datatype type = draws.among({MPI_FLOAT, MPI_FLOAT, MPI_REAL, MPI_REAL4});
  const char* const collective = draw_collective(run, draws);
  Buffers buffers(draws, on.rank);
  const bool scatters = names_blocks(collective) != 0, gathers = names_gather(collective) != 0;
  // MPICH 4.0.2 itself aborts at some in-place reduce-scatters: "memory ranges overlap".
  if (scatters && names_equal_blocks(collective) == 0) buffers.in_place = false;
  const bool doubles = run.doubles && draws.one_in(3);
  // Error feedback would carry the residuals of huge values into later calls.
  if (on.options.keeps_error() && family == Family::huge) family = Family::normal;
  if (on.comm == MPI_COMM_NULL) return;
  if (on.inter) return reduce_others(run, on, draws);

  Case test{family, drawn, seed, buffers.in_place, false, large, on.size, first};
  int blocks[MOST_RANKS] = {};
  test.gathers = gathers;
  if (scatters || gathers) {
    test.count = std::size_t(divide_blocks(collective, long(drawn), on.size, blocks));
    const std::size_t kept = seed % std::size_t(on.size);
    for (std::size_t rank = 0; run.empty && rank < std::size_t(on.size); ++rank)
      if (names_equal_blocks(collective) == 0 && rank != kept && Draws::of(seed, rank) % 4 != 0)
        blocks[kept] += std::exchange(blocks[rank], 0);
    test.blocks.assign(blocks, blocks + on.size);
  }
  const std::size_t count = test.count;
  const std::size_t own = scatters ? test.blocks[std::size_t(on.rank)] : count;
  const std::vector<float> floats = make_input(test, on.rank);
  const std::vector<double> wide(floats.begin(), floats.end());
  const void* const input = doubles ? static_cast<const void*>(wide.data()) : floats.data();
  const std::size_t width = doubles ? sizeof(double) : sizeof(float);
  if (doubles) type = MPI_DOUBLE;
  const std::uint64_t before = run.alone ? compressed_calls() : 0;
  const int code = watch(
      run, buffers, input, count * width, own * width, width, [&](const void* from, void* to) {
        return sum_elements(collective, from, to, long(count), blocks, large, type, on.comm);
      });
  const char* const out = run.out.data();
  const std::vector<char> bytes(out, out + own * width);
  std::vector<float> result(own);
  for (std::size_t i = 0; i < own; ++i) {
    double value = 0;
    std::memcpy(doubles ? static_cast<void*>(&value) : &result[i], &bytes[i * width], width);
    if (doubles) result[i] = float(value);
  }
  const auto complain = [&](const std::string& what) {
    run.complain(std::string("MPI_") + collective + (doubles ? " of doubles: " : ": ") + what +
                 "; " + describe(on, test, buffers));
  };

  ++run.sums;
  if (code != MPI_SUCCESS) {
    if (run.faults) run.end_by(error_text(code));
    return complain(std::string("failed: ") + error_text(code));
  }
  // MPI's nonblocking and persistent sums may add in another order
  // (tests/helper/mpi/another_way.c).
  const char* const way = std::getenv("TEST_WAY");
  const bool same_way =
      is_blocking(collective) && (way == nullptr || std::strcmp(way, "blocking") == 0);
  const auto is_mpis = [&] {
    return call_mpi(run, on, collective, input, count, blocks, own * width, type, width) == bytes;
  };
  bool taken = run.alone && compressed_calls() != before;
  if (!run.alone) {
    int same = is_mpis() ? 1 : 0;
    PMPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, on.comm);
    taken = same == 0 && (doubles || may_be_taken(run, on, test));
    if (same == 0 && !taken && same_way) complain("left to MPI, but not MPI's bytes");
  }
  const Compared alike = compare(
      on.comm, scatters ? 0 : digest_of(result.data(), count * sizeof(float), kDigest), taken);
  if (!alike.answered) return complain("some ranks took it over and some did not");
  if (run.alone && !doubles)
    if (const std::string wrong = wrong_answerer(run, on, test, taken); !wrong.empty())
      complain(wrong);
  if (!alike.bytes && !on.options.decentralized() && (taken || !run.disturbance.rounds()))
    complain("the ranks' bytes differ");
  if (!taken) {
    if (run.alone && same_way && !is_mpis()) complain("left to MPI, but not MPI's bytes");
    return;
  }
  ++run.taken;
  if (scatters) {
    std::vector<float> all(count);
    gather_blocks(on, result.data(), blocks, MPI_FLOAT, all.data());
    result = all;
  }
  if (on.options.algorithm != "auto")
    run.digest =
        run.digest * 1099511628211ull ^ digest_of(result.data(), count * sizeof(float), kDigest);
  // The bytes are the same on all ranks, so only one rank, another in each step, computes what they
  // must be.
  const bool mine = run.step % std::uint64_t(on.size) == std::uint64_t(on.rank);
  if (const std::string wrong = check_result(on, test, result, mine); !wrong.empty())
    complain(wrong);
}

void reduce_others(Run& run, const Communicator& on, Draws& draws) {
  struct Kind {
    MPI_Datatype type;
    MPI_Op op;
    std::size_t width;
    bool floating;
  };
  const Kind kind = draws.among<Kind>({{MPI_INT, MPI_SUM, 4, false},
                                       {MPI_DOUBLE, run.doubles ? MPI_MIN : MPI_SUM, 8, true},
                                       {MPI_FLOAT, MPI_MAX, 4, true},
                                       {MPI_FLOAT, MPI_PROD, 4, true},
                                       {MPI_2INT, MPI_MAXLOC, 8, false},
                                       {MPI_UINT8_T, MPI_BOR, 1, false},
                                       {MPI_FLOAT, MPI_SUM, 4, true}});
  const std::size_t count = draws.among<std::size_t>({0, 1, 5, 1000, 20'000, 30'001});
  const bool large = draws.one_in(5);
  Buffers buffers(draws, on.rank);
  if (on.comm == MPI_COMM_NULL) return;
  const bool sum = kind.type == MPI_FLOAT && kind.op == MPI_SUM;
  if (sum && !on.inter) return;  // only a float sum is one
  if (on.inter) buffers.in_place = false;

  const std::size_t bytes = std::min(count * kind.width, kMostBytes);
  std::vector<char> input(bytes + 1), reference(bytes + 1);
  fill_numbers(input.data(), bytes, kind.width, kind.floating, 1, on.rank);
  const std::uint64_t before = run.alone ? compressed_calls() : 0;
  const int code =
      allreduce(run, buffers, input.data(), count, kind.width, kind.type, kind.op, on.comm, large);
  if (code != MPI_SUCCESS || (run.alone && compressed_calls() != before))
    run.complain("a call that is MPI's own: code " + std::to_string(code) + ", or taken over");
  const char* const out = run.out.data();
  run.disturbance.enter();
  PMPI_Allreduce(input.data(), reference.data(), int(count), kind.type, kind.op, on.comm);
  run.disturbance.leave();
  if (bytes != 0 && std::memcmp(out, reference.data(), bytes) != 0)
    run.complain("not MPI's bytes: another type or operation, or an intercommunicator, " +
                 std::to_string(count) + " elements on " + on.made_by);
}

}  // namespace fuzz
