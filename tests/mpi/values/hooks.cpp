// SPDX-License-Identifier: BSD-3-Clause
// A plain MPI program for tests/mpi/values/hooks.sh and overflow.sh: it sums floats and says
// whether the hook that stands in, or the algorithm, did what it has to.
// Usage: hooks exact COUNT     sparse inputs; every sum is exact, to the bit
//        hooks nodes COUNT     the same where nodes sum first: exact but for the order of adding
//        hooks near COUNT      dense inputs; the sum is off by a fiftieth at most
//        hooks sparse COUNT    dense inputs; each piece keeps its largest eighth
//        hooks feedback COUNT  the mean of many calls on one input nears the exact sum
//        hooks ugly COUNT      infinities, NaNs and sums that overflow stay what they are, each
//                              value by itself; the others are off by a fiftieth of the greatest
//        hooks great COUNT     the same without NaNs
//        hooks lost COUNT      one sum with a NaN and an infinity of rank 0; nothing is checked
//        hooks sign COUNT      the sum of mean sizes, with the sign of the majority
//        hooks errors COUNT    five calls; prints which ones MPI called an error, on every rank,
//                              and how their text begins
// All ranks must get the same bytes.
#include "tests/helper/base/program.h"

#include <map>

#include "tests/mpi/values/inputs.h"

namespace {

using Floats = std::vector<float>;

Floats input(Family family, std::size_t count, int rank) {
  return make_input({family, count, 5, false, false, false, g_size}, rank);
}

Floats exact_sum(Family family, std::size_t count) {
  Floats sum = input(family, count, 0);
  for (int rank = 1; rank < g_size; ++rank) {
    const Floats addend = input(family, count, rank);
    for (std::size_t i = 0; i < count; ++i) sum[i] += addend[i];
  }
  return sum;
}

Floats reduce(const Floats& in, bool in_place) {
  Floats out = in_place ? in : Floats(in.size(), -1.0f);
  const Floats before = in;
  const int code = MPI_Allreduce(in_place ? MPI_IN_PLACE : in.data(), out.data(), int(in.size()),
                                 MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  check(code == MPI_SUCCESS, "the call succeeds");
  check(in == before, "the input is not written");
  check(has_rank_0_s(out.data(), out.size() * sizeof(float)), "all ranks get the same bytes");
  return out;
}

double distance(const Floats& a, const Floats& b) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += double(a[i] - b[i]) * double(a[i] - b[i]);
    size += double(b[i]) * double(b[i]);
  }
  return std::sqrt(error / size);
}

void check_exact(std::size_t count) {
  const Floats want = exact_sum(Family::sparse, count);
  for (const bool in_place : {false, true})
    check(reduce(input(Family::sparse, count, g_rank), in_place) == want, "the sum is exact");
}

void check_nodes(std::size_t count) {
  const Floats got = reduce(input(Family::sparse, count, g_rank), false);
  check(distance(got, exact_sum(Family::sparse, count)) < 1e-6, "nothing but rounding is lost");
}

void check_near(std::size_t count) {
  const Floats got = reduce(input(Family::normal, count, g_rank), false);
  check(distance(got, exact_sum(Family::normal, count)) < 0.02, "near the sum");
}

void check_sparse(std::size_t count) {
  const Floats sum = exact_sum(Family::normal, count);
  const Floats got = reduce(input(Family::normal, count, g_rank), false);
  std::size_t kept = 0;
  for (const float x : got) kept += x != 0;
  check(kept > count / 16 && kept <= count / 8 + 8 * std::size_t(g_size), "an eighth is kept");
  check(distance(got, sum) < 0.9, "the largest values are kept");
}

void check_feedback(std::size_t count) {
  const Floats in = input(Family::normal, count, g_rank), sum = exact_sum(Family::normal, count);
  Floats mean(count), buffer(count);
  double once = 0;
  constexpr int kCalls = 100;
  for (int call = 0; call < kCalls; ++call) {
    buffer = in;
    MPI_Allreduce(MPI_IN_PLACE, buffer.data(), int(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (call == 0) once = distance(buffer, sum);
    for (std::size_t i = 0; i < count; ++i) mean[i] += buffer[i] / float(kCalls);
  }
  check(distance(mean, sum) < once / 4, "feedback brings the mean near the sum");
}

// Returns element `i` of `rank`. One element of 16 is special: an infinity or a NaN on one rank, or
// so large on all ranks that the sum overflows. All others are `rest`.
float ugly(std::size_t i, int rank, float rest, bool nans) {
  const bool chosen = int(i / 16) % g_size == rank;
  if (i % 16 != 7) return rest;
  switch (i / 16 % 5) {
    case 0:
      return chosen && nans ? std::nanf("") : rest;
    case 1:
      return chosen ? INFINITY : rest;
    case 2:
      return chosen ? -INFINITY : rest;
    case 3:
      return 3.4e38f;
    default:
      return -3.4e38f;
  }
}

void check_not_finite(std::size_t count, bool nans) {
  for (const float rest : {1.5f, 1e38f / float(g_size), 0.0f}) {
    Floats in(count);
    bool good = true;
    for (std::size_t i = 0; i < count; ++i) in[i] = ugly(i, g_rank, rest, nans);
    Floats got(count);
    MPI_Allreduce(in.data(), got.data(), int(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    check(has_rank_0_s(got.data(), count * sizeof(float)), "all ranks get the same bytes");
    for (std::size_t i = 0; i < count; ++i) {
      float sum = ugly(i, 0, rest, nans);
      for (int rank = 1; rank < g_size; ++rank) sum += ugly(i, rank, rest, nans);
      good = good && (std::isnan(sum)   ? std::isnan(got[i])
                      : std::isinf(sum) ? got[i] == sum
                                        : std::fabs(got[i] - sum) <= 0.02f * 3.4e38f);
    }
    check(good, "what is not finite stays so, and nothing else becomes so");
  }
}

void check_ugly(std::size_t count) {
  check_not_finite(count, true);
}
void check_great(std::size_t count) {
  check_not_finite(count, false);
}

void check_sign(std::size_t count) {
  std::vector<int> votes(count);
  double means = 0;
  for (int rank = 0; rank < g_size; ++rank) {
    double size = 0;
    const Floats in = input(Family::normal, count, rank);
    for (std::size_t i = 0; i < count; ++i) {
      size += std::fabs(double(in[i]));
      votes[i] += in[i] < 0 ? -1 : 1;
    }
    means += size / double(count);
  }
  for (const bool in_place : {false, true}) {
    const Floats got = reduce(input(Family::normal, count, g_rank), in_place);
    bool good = true;
    for (std::size_t i = 0; i < count; ++i) {
      const double want = votes[i] == 0 ? 0 : votes[i] > 0 ? means : -means;
      good = good && std::fabs(double(got[i]) - want) <= 1e-5 * means;
    }
    check(good, "the majority's sign and the sum of the means");
  }
}

void show_errors(std::size_t count) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const Floats in = input(Family::sparse, count, g_rank), want = exact_sum(Family::sparse, count);
  for (int call = 1; call <= 5; ++call) {
    Floats out(count);
    const int code =
        MPI_Allreduce(in.data(), out.data(), int(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    std::strcpy(text, error_text(code));
    int failed = code != MPI_SUCCESS ? 1 : 0, ranks = 0;
    PMPI_Allreduce(&failed, &ranks, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(failed != 0 || out == want || std::getenv("HOOK_ANY_SUM") != nullptr,
          "a call without an error gives the sum");
    check(has_rank_0_s(text, sizeof text), "every rank gets the same text");
    if (g_rank == 0) std::printf("call %d: %d of %d ranks: %s\n", call, ranks, g_size, text);
  }
}

// Returns element `i` of `rank`. One value in 70 is too large on one rank, one in 110 has a sum
// that is too large, and one in 130 is an infinity.
float overflowing(std::size_t i, int rank, float limit) {
  if (i % 70 == 0) return rank == int(i / 70) % g_size ? 1.003f * limit : 1;
  if (i % 110 == 0) return rank == 0 || rank == g_size - 1 ? -0.6f * limit : 0;
  if (i % 130 == 0) return rank == g_size - 1 ? INFINITY : 2;
  return float((i * 7 + std::size_t(rank) * 13) % 101);
}

void check_overflow(std::size_t count, float limit, int calls) {
  int overflows = 0, wrong = 0;
  Floats in(count);
  for (std::size_t i = 0; i < count; ++i) in[i] = overflowing(i, g_rank, limit);
  for (int call = 0; call < calls; ++call) {
    const Floats out = reduce(in, call % 2 == 0);
    for (std::size_t i = 0; i < count; ++i) {
      const bool wanted = i % 70 == 0 || i % 110 == 0 || i % 130 == 0;
      wrong += wanted != std::isinf(out[i]);
      overflows += wanted;
    }
  }
  check(wrong == 0, "the values above the limit become infinite, and no others");
  if (g_rank == 0) std::printf("overflowed %d\n", overflows);
}

void lose(std::size_t count) {
  Floats in(count, 1.0f);
  if (g_rank == 0) in[3] = std::nanf(""), in[5] = INFINITY;
  MPI_Allreduce(MPI_IN_PLACE, in.data(), int(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  begin_mpi();
  const std::string mode = argc >= 3 ? argv[1] : "";
  const auto count = std::size_t(argc >= 3 ? std::atoll(argv[2]) : 0);
  const std::map<std::string, void (*)(std::size_t)> modes = {
      {"exact", check_exact},       {"nodes", check_nodes},
      {"near", check_near},         {"sparse", check_sparse},
      {"feedback", check_feedback}, {"ugly", check_ugly},
      {"great", check_great},       {"lost", lose},
      {"sign", check_sign},         {"errors", show_errors}};
  if (mode == "overflow" && argc == 5)
    check_overflow(count, float(std::atof(argv[3])), std::atoi(argv[4]));
  else if (modes.count(mode) == 1)
    modes.at(mode)(count);
  else
    check(false, "usage: see the top of hooks.cpp");
  return end_mpi();
}
