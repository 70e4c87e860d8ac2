// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/sum.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "slimpi.h"
#include "tests/fuzz/answer.h"
#include "tests/helper/mpi4.h"
#include "tests/mpi/digest.h"
#include "tests/mpi/numbers.h"

namespace fuzz {

namespace {

std::uint64_t compressed_calls() {
  using Get = int(slimpi_statistics_t*);
  const auto get = reinterpret_cast<Get*>(dlsym(RTLD_DEFAULT, "slimpi_get_statistics"));
  slimpi_statistics_t statistics{};
  statistics.size = sizeof statistics;
  return get != nullptr && get(&statistics) == 0 ? statistics.compressed : 0;
}

std::string error_text(int code) {
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

// Sizes at the edges of what the library cuts a buffer into, and any.
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

// What must be equal on the communicator's ranks after a sum: the bytes, and who answered.
struct Compared {
  bool bytes, answered;
};

Compared compare(MPI_Comm comm, std::uint64_t hash, bool taken) {
  std::uint64_t words[] = {hash, ~hash, taken ? 1u : 0u, taken ? 0u : 1u};
  PMPI_Allreduce(MPI_IN_PLACE, words, 4, MPI_UINT64_T, MPI_MAX, comm);
  return {words[0] == ~words[1], words[2] + words[3] == 1};
}

// The buffers of one call, as they were drawn.
struct Buffers {
  Place in, out;
  bool in_place = false, read_only = false;

  explicit Buffers(Draws& draws, int rank) {
    const std::uint64_t number = draws.number();
    // Mostly the same on all ranks: slots of state go by address.
    const std::uint64_t own = draws.one_in(4) ? Draws::of(number, std::uint64_t(rank)) : number;
    in_place = number % 3 == 0;
    read_only = number % 5 == 0;
    in = {own % 2 == 0, own / 2 % 4};
    out = {own / 8 % 2 == 0, own / 16 % 4};
  }
};

// Calls MPI_Allreduce, and watches what it touches. Returns its code.
int allreduce(Run& run, const Buffers& buffers, const void* input, std::size_t count,
              std::size_t width, MPI_Datatype type, MPI_Op op, MPI_Comm comm, bool large) {
  const std::size_t bytes = count * width;
  char* const in = run.in.place(bytes, width, buffers.in);
  char* const out = run.out.place(bytes, width, buffers.out);
  if (bytes != 0) std::memcpy(buffers.in_place ? out : in, input, bytes);
  const void* const from = buffers.in_place ? MPI_IN_PLACE : in;
  if (buffers.read_only) run.in.set_read_only(true);
  run.disturbance.enter();
  const int code = large ? MPI_Allreduce_c(from, out, MPI_Count(count), type, op, comm)
                         : MPI_Allreduce(from, out, int(count), type, op, comm);
  run.disturbance.leave();
  if (buffers.read_only) run.in.set_read_only(false);
  if (!buffers.in_place && bytes != 0 && std::memcmp(in, input, bytes) != 0)
    run.complain("the input was changed");
  if (!run.in.surroundings_hold()) run.complain("wrote next to the input");
  if (!run.out.surroundings_hold()) run.complain("wrote next to the output");
  return code;
}

std::string describe(const Communicator& on, const Case& test, const Buffers& buffers) {
  return "sum of " + std::to_string(test.count) + " floats, " + family_name(test.family) +
         (buffers.in_place ? ", in place" : "") + (buffers.read_only ? ", read-only" : "") +
         ", on rank " + std::to_string(on.rank) + " of " + std::to_string(on.size) + " of " +
         on.made_by + " (" + on.options.text() + ")";
}

}  // namespace

void sum_floats(Run& run, Communicator& on, Draws& draws) {
  const std::size_t count = draw_count(draws, on);
  auto family = Family(draws.below(std::size_t(Family::opposite_infinities) + 1));
  const std::uint64_t seed = draws.number() >> 16;
  const bool large = draws.one_in(5), first = draws.one_in(2);
  const MPI_Datatype type = draws.among({MPI_FLOAT, MPI_FLOAT, MPI_REAL, MPI_REAL4});
  const Buffers buffers(draws, on.rank);
  // What error feedback keeps of such values outlives the call.
  if (on.options.keeps_error() && family == Family::huge) family = Family::normal;
  if (on.comm == MPI_COMM_NULL) return;
  if (on.inter) return reduce_others(run, on, draws);

  const Case test{family, count, seed, buffers.in_place, false, large, on.size, first};
  const std::vector<float> input = make_input(test, on.rank);
  const std::uint64_t before = compressed_calls();
  const int code =
      allreduce(run, buffers, input.data(), count, sizeof(float), type, MPI_SUM, on.comm, large);
  const bool taken = compressed_calls() != before;
  const char* const out = run.out.data();
  std::vector<float> result(count);
  if (count != 0) std::memcpy(result.data(), out, count * sizeof(float));
  const auto complain = [&](const std::string& what) {
    run.complain(what + "; " + describe(on, test, buffers));
  };

  ++run.sums;
  if (code != MPI_SUCCESS) return complain("MPI_Allreduce failed: " + error_text(code));
  const Compared alike = compare(on.comm, digest(result.data(), count), taken);
  if (!alike.answered) return complain("some ranks took it over and some did not");
  if (const std::string wrong = wrong_answerer(run, on, test, taken); !wrong.empty())
    complain(wrong);
  if (!alike.bytes && !on.options.decentralized() && (taken || !run.disturbance.rounds()))
    complain("the ranks' bytes differ");
  if (!taken) {
    std::vector<float> reference(count);
    run.disturbance.enter();
    PMPI_Allreduce(input.data(), reference.data(), int(count), MPI_FLOAT, MPI_SUM, on.comm);
    run.disturbance.leave();
    // In another way MPI may add in another order (tests/helper/another_way.c).
    const char* const way = std::getenv("TEST_WAY");
    const bool same_way = way == nullptr || std::strcmp(way, "blocking") == 0;
    if (same_way && count != 0 &&
        std::memcmp(reference.data(), result.data(), count * sizeof(float)) != 0)
      complain("left to MPI, but not MPI's bytes");
    return;
  }
  ++run.taken;
  if (on.options.algorithm != "auto")
    run.digest = run.digest * 1099511628211ull ^ digest(result.data(), count);
  // One rank after the other works out what the bytes, the same on all, must be.
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
                                       {MPI_DOUBLE, MPI_SUM, 8, true},
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
  const std::uint64_t before = compressed_calls();
  const int code =
      allreduce(run, buffers, input.data(), count, kind.width, kind.type, kind.op, on.comm, large);
  if (code != MPI_SUCCESS || compressed_calls() != before)
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
