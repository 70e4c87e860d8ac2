// SPDX-License-Identifier: BSD-3-Clause
// A plain MPI program that checks float sums, run under the preload with any options. It computes
// every rank's input itself, so it knows the exact sum and the error bound of each element:
//   every rank gets the same bytes; each element is within the bound of its algorithm; a non-finite
//   input is non-finite everywhere and spoils its own bucket only; inputs and the memory around the
//   buffers stay untouched; the call was answered by the library (or left to MPI where it should
//   be).
// Usage: sums ALGORITHM BITS BUCKET ROUNDING(nearest|stochastic) RANKS_PER_NODE FLAT(0|1)
//             INTER_NODE_GROUPS(0 = one a rank of the smallest node, 1 = leader) SIZES(small|large)
//             [COLLECTIVE, as in tests/helper/mpi/collectives.h; Allreduce]
#include "tests/helper/base/program.h"

#include <bit>

#include "tests/helper/mpi/collectives.h"
#include "tests/mpi/values/inputs.h"
#include "tests/mpi/values/oracle.h"

namespace {

const char* g_collective = "Allreduce";

void complain(const char* what, const Case& test, std::size_t element, double got, double want,
              double bound) {
  if (++g_failures <= 5)
    std::fprintf(stderr,
                 "rank %d: %s: input %s, n = %zu, element %zu: got %.9g, exact %.9g, bound %.9g\n",
                 g_rank, what, family_name(test.family), test.count, element, got, want, bound);
}

// Checks that all ranks have the same bytes as rank 0.
void check_same_bytes(const Case& test, const std::vector<float>& result) {
  std::vector<float> first = result;
  PMPI_Bcast(first.data(), int(first.size()), MPI_FLOAT, 0, MPI_COMM_WORLD);
  if (result.empty() ||
      std::memcmp(first.data(), result.data(), result.size() * sizeof(float)) == 0)
    return;
  for (std::size_t i = 0; i < result.size(); ++i)
    if (std::memcmp(&first[i], &result[i], sizeof(float)) != 0)
      return complain("differs from rank 0", test, i, result[i], first[i], 0);
}

// Compares a result with the oracle. `first`: the position in the whole sum of the result's first
// element.
void check_values(const Case& test, const Oracle& oracle, std::size_t first,
                  const std::vector<float>& result) {
  const std::vector<Expected> expected = oracle.expect(test);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const Expected& e = expected[first + i];
    const double got = result[i];
    if (e.must_be_nonfinite) {
      if (std::isfinite(got)) complain("should not be finite", test, i, got, e.sum, 0);
    } else if (e.may_be_nonfinite && !std::isfinite(got)) {
      continue;
    } else if (!(std::fabs(got - e.sum) <= e.bound)) {
      complain("error above the bound", test, i, got, e.sum, e.bound);
    }
    if (oracle.zeros_are_positive() && got == 0 && std::signbit(result[i]))
      complain("negative zero", test, i, got, e.sum, 0);
  }
}

// Checks the result of an all-gather, which has gaps between its blocks.
void check_gathered(const Case& test, const Oracle& oracle, const float* out, std::size_t gap) {
  std::vector<float> result;
  for (const std::size_t block : test.blocks) {
    result.insert(result.end(), out, out + block);
    out += block;
    for (const float* const end = out + gap; out != end; ++out)
      if (std::bit_cast<std::uint32_t>(*out) != 0xA5A5A5A5u)
        complain("wrote between blocks", test, result.size(), *out, 0, 0);
  }
  check_same_bytes(test, result);
  check_values(test, oracle, 0, result);
}

void run(Case test, const Oracle& oracle) {
  constexpr std::size_t kGuard = 64;
  int blocks[MOST_RANKS] = {};
  std::size_t first = 0, length = test.count;  // of this rank's part of the sum
  test.gathers = names_gather(g_collective) != 0;
  if (names_blocks(g_collective) || test.gathers) {
    test.count = std::size_t(divide_blocks(g_collective, long(test.count), g_size, blocks));
    test.blocks.assign(blocks, blocks + g_size);
    length = test.blocks[std::size_t(g_rank)];
    for (int rank = 0; rank < g_rank; ++rank) first += test.blocks[std::size_t(rank)];
  }
  const std::size_t n = test.count;
  const std::vector<float> input = make_input(test, g_rank);
  const std::size_t shift = test.misaligned ? 1 : 0;  // 4 bytes off any wider alignment
  // Elements between the blocks of an all-gather, if its form has displacements.
  const std::size_t gap = test.gathers && !names_equal_blocks(g_collective) ? 3 : 0;
  std::vector<float> send(n + gap * std::size_t(g_size) + 2 * kGuard + 1), receive(send.size());
  for (float& x : send) x = 12345.0f;
  for (float& x : receive) std::memset(&x, 0xA5, sizeof x);
  float* const in = send.data() + kGuard + shift;
  float* const out = receive.data() + kGuard + shift;
  if (test.gathers && test.in_place)
    std::copy_n(input.begin() + std::ptrdiff_t(first), length,
                out + first + gap * std::size_t(g_rank));
  else
    std::copy(input.begin(), input.end(), test.in_place ? out : in);
  const std::vector<float> send_before = send, receive_before = receive;

  const std::uint64_t before = compressed_calls();
  const void* const from = test.in_place ? MPI_IN_PLACE : in;
  const int code = test.gathers ? gather_elements(g_collective, from, out, blocks, int(gap),
                                                  test.large_count, MPI_FLOAT, MPI_COMM_WORLD)
                                : sum_floats(g_collective, from, out, long(n), blocks,
                                             test.large_count, MPI_COMM_WORLD);
  if (code != MPI_SUCCESS) complain("returned an error", test, 0, code, 0, 0);
  const bool taken = compressed_calls() != before;
  if (taken != oracle.takes(test) && !oracle.may_pass(test))
    complain("should be compressed exactly where nodes differ", test, 0, taken, 0, 0);

  if (std::memcmp(send.data(), send_before.data(), send.size() * sizeof(float)) != 0)
    complain("the input was changed", test, 0, 0, 0, 0);
  const std::size_t begin = kGuard + shift;
  // In an in-place call that slimpi leaves to it, MPI may write to the input after the block.
  const std::size_t end = begin + (test.gathers ? n + gap * std::size_t(g_size)
                                   : test.in_place && !oracle.takes(test) ? n
                                                                          : length);
  if (std::memcmp(receive.data(), receive_before.data(), begin * sizeof(float)) != 0 ||
      std::memcmp(receive.data() + end, receive_before.data() + end,
                  (receive.size() - end) * sizeof(float)) != 0)
    complain("wrote outside the output", test, 0, 0, 0, 0);

  if (test.gathers) return check_gathered(test, oracle, out, gap);
  const std::vector<float> result(out, out + length);
  if (test.blocks.empty()) check_same_bytes(test, result);
  check_values(test, oracle, first, result);
}

// Checks that a sendcount which differs from the recvcount on one rank is an error on all ranks.
void check_sendcount() {
  constexpr int kBlock = 20000;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const std::vector<float> in(kBlock + 1);
  std::vector<float> out(std::size_t(g_size) * kBlock);
  const int code = MPI_Allgather(in.data(), g_rank == 1 ? kBlock + 1 : kBlock, MPI_FLOAT,
                                 out.data(), kBlock, MPI_FLOAT, comm);
  check(code != MPI_SUCCESS, "a sendcount that is not the recvcount is no error");
}

}  // namespace

int main(int argc, char** argv) {
  begin_mpi();
  if (argc < 9) {
    if (g_rank == 0) std::fprintf(stderr, "usage: see the top of sums.cpp\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  Scheme scheme;
  scheme.algorithm = argv[1];
  scheme.bits = std::atoi(argv[2]);
  scheme.bucket = std::size_t(std::atoll(argv[3]));
  scheme.stochastic = std::strcmp(argv[4], "stochastic") == 0;
  scheme.ranks_per_node = std::atoi(argv[5]);
  scheme.flat = std::atoi(argv[6]) != 0;
  scheme.leader = std::atoi(argv[7]) != 0;
  if (argc > 9) g_collective = argv[9];
  const Oracle oracle(scheme, g_size);
  int cases = 0;
  for (const Case& test : make_cases(std::strcmp(argv[8], "large") == 0, std::size_t(g_size))) {
    run(test, oracle);
    ++cases;
    if (all_failures() > 20) break;
  }
  if (std::strcmp(g_collective, "Allgather") == 0 && oracle.nodes() > 1) check_sendcount();
  const int failed = all_failures();
  if (g_rank == 0)
    std::printf("%s %s %s bits %d bucket %zu, %d ranks, %d a node: %d cases, %d failures\n",
                failed == 0 ? "ok" : "FAILED", g_collective, argv[1], scheme.bits, scheme.bucket,
                g_size, scheme.ranks_per_node, cases, failed);
  MPI_Finalize();
  return failed == 0 ? 0 : 1;
}
