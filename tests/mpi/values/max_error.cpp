// SPDX-License-Identifier: BSD-3-Clause
// A plain MPI program for tests/mpi/values/max_error.sh: sums inputs of many kinds and measures the
// relative L2 error of each against the exact sum, which every rank works out for itself.
// Usage: max_error COUNT [KIND [CALLS]], a name of the table below or nonfinite
//        max_error COUNT adversarial CALLS [FACTOR], inputs that deceive an estimate, other ones at
//        every call, times a factor; prints how many calls exceed the bound, and the worst error
// Fails where an error is above the budget, SLIMPI_MAX_ERROR, and the result is not an exact float
// sum either, or where ranks do not get the same bytes. Prints a line per kind.
#include "tests/helper/base/program.h"

#include "tests/mpi/values/inputs.h"

namespace {

// A kind of input: a function, or a family of inputs.h.
struct Kind {
  const char* name;
  float (*make)(int rank, std::size_t i, std::size_t count);
  Family family = Family::normal;

  float value(int rank, std::size_t i, std::size_t count) const {
    if (make != nullptr) return make(rank, i, count);
    return make_value({family, count, 11, false, false, false, g_size}, rank, i);
  }
};

float normal(int rank, std::size_t i) {
  return make_value({Family::normal, 1, 11, false, false, false, g_size}, rank, i);
}

// Returns an addend of a sum that is only a thousandth of its addends.
float cancelling(int rank, std::size_t i) {
  const float sign = rank % 2 == 0 ? 1 : -1;
  const bool odd_one = g_size % 2 != 0 && rank == g_size - 1;
  return (odd_one ? 0 : sign * normal(100 + rank / 2, i)) + 1e-3f * normal(rank, i);
}

const Kind kKinds[] = {
    {"normal", nullptr, Family::normal},
    {"uniform", nullptr, Family::uniform},
    {"offset", nullptr, Family::offset},
    {"sparse", nullptr, Family::sparse},
    {"mixed scale", nullptr, Family::mixed_scale},
    {"huge", nullptr, Family::huge},
    {"subnormal", nullptr, Family::subnormal},
    {"zeros", nullptr, Family::zeros},
    {"constant", nullptr, Family::constant},
    {"alike", [](int, std::size_t i, std::size_t) { return normal(0, i); }},
    {"levels", [](int r, std::size_t i, std::size_t) { return float(int(4 * normal(r, i))) / 7; }},
    {"heavy tails",
     [](int r, std::size_t i, std::size_t) {
       return normal(r, i) / (1e-4f + std::fabs(normal(r + 50, i)));
     }},
    {"one spike",
     [](int r, std::size_t i, std::size_t n) {
       return r == g_size - 1 && i == n / 3 ? 1e6f : normal(r, i);
     }},
    {"cancelling", [](int r, std::size_t i, std::size_t) { return cancelling(r, i); }},
    {"partly cancelling",
     [](int r, std::size_t i, std::size_t n) {
       return i < n / 2 ? 100 * cancelling(r, i) : normal(r, i);
     }},
    {"opposite",
     [](int r, std::size_t i, std::size_t) {
       return g_size % 2 != 0 && r == g_size - 1 ? 0 : (r % 2 == 0 ? 1 : -1) * normal(r / 2, i);
     }},
    {"beyond 16-bit floats", [](int r, std::size_t i, std::size_t) { return 1e5f * normal(r, i); }},
    {"layers",  // as a model's gradients: ranges of very different sizes
     [](int r, std::size_t i, std::size_t n) {
       return normal(r, i) * float(std::pow(10.0, -double(i * 12 / n)));
     }},
};

// Sums an infinity on one rank and a NaN on another. All other elements must keep the values that
// they would have without these.
void run_nonfinite(std::size_t count) {
  std::vector<float> in(count, 1.0f), out(count);
  if (g_rank == 0) in[count / 2] = INFINITY;
  if (g_rank == g_size - 1) in[0] = NAN;
  MPI_Allreduce(in.data(), out.data(), int(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (std::size_t i = 0; i < count; ++i) {
    const bool good = i == 0           ? std::isnan(out[i])
                      : i == count / 2 ? out[i] == INFINITY
                                       : out[i] == float(g_size);
    if (!good) ++g_failures;
  }
}

// The relative L2 error of a result against the exact sum. `rounded`: whether the rounding of
// floats explains the error, so that no codec is at fault. `sizes`: for each element, the sum of
// the addends' absolute values.
struct Measured {
  double error;
  bool rounded;
};
Measured measure(const std::vector<float>& out, const double* exact, const double* sizes) {
  double error = 0, total = 0, rounding = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    error += (double(out[i]) - exact[i]) * (double(out[i]) - exact[i]);
    total += exact[i] * exact[i];
    rounding += std::pow(sizes[i] * 0x1p-24 * g_size, 2);
  }
  return {error == 0 ? 0 : std::sqrt(error / total), error <= rounding};
}

void run(const Kind& kind, double budget, std::size_t count) {
  std::vector<float> in(count), out(count);
  std::vector<double> exact(count), sizes(count);
  for (int rank = 0; rank < g_size; ++rank)
    for (std::size_t i = 0; i < count; ++i) {
      const float x = kind.value(rank, i, count);
      exact[i] += double(x);
      sizes[i] += std::fabs(double(x));
      if (rank == g_rank) in[i] = x;
    }
  const int code =
      MPI_Allreduce(in.data(), out.data(), int(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  const Measured measured = measure(out, exact.data(), sizes.data());
  const bool good = code == MPI_SUCCESS && (measured.error <= budget || measured.rounded);
  const bool same = has_rank_0_s(out.data(), count * sizeof(float));
  if (!same) std::fprintf(stderr, "rank %d: %s: other bytes than rank 0\n", g_rank, kind.name);
  if (g_rank == 0)
    std::printf("%s %-18s budget %g, %zu values on %d ranks: %.3g\n", good ? "ok    " : "FAILED",
                kind.name, budget, count, g_size, measured.error);
  if (!good || !same) ++g_failures;
}

// Makes inputs that deceive an estimate which sees only parts of the buffer. `call` selects the
// random numbers of a call.
class Adversary {
 public:
  Adversary(std::uint64_t call, std::size_t count)
      : call_(call), kind_(call % 2 == 0 ? call / 2 % 2 : call / 2 % kKinds), count_(count) {
    quiet_ = std::size_t(shared(0) * double(count));
    quiet_end_ = quiet_ + (kind_ == 0 ? 1024 : 64);
    scale_ = std::pow(10.0, (kind_ < 2 ? -1 : -3) * shared(1));
  }
  float value(int rank, std::size_t i) const;

 private:
  static constexpr std::uint64_t kKinds = 8;
  double shared(std::uint64_t i) const { return draw(call_, 1000, i); }
  double normal_like(int rank, std::size_t i) const {  // cheap: the sum of three
    const std::uint64_t r = std::uint64_t(rank);
    return 2 * (draw(call_, r, 3 * i) + draw(call_, r, 3 * i + 1) + draw(call_, r, 3 * i + 2)) - 3;
  }
  // Returns values whose sum over the ranks is 0.
  double opposed(int rank, std::size_t i) const {
    if (g_size % 2 != 0 && rank == g_size - 1) return 0;
    return (rank % 2 == 0 ? 1 : -1) * normal_like(200 + rank / 2, i);
  }

  const std::uint64_t call_, kind_;
  const std::size_t count_;
  std::size_t quiet_, quiet_end_;
  double scale_;
};

float Adversary::value(int rank, std::size_t i) const {
  const double u = draw(call_ + 77, std::uint64_t(rank), i);
  switch (kind_) {
    case 0:  // cancels, but for a quiet tile, or (1) a quiet bucket
    case 1:
      return float(i >= quiet_ && i < quiet_end_ ? scale_ * normal_like(rank, i)
                                                 : opposed(rank, i));
    case 2:  // Cauchy
      return float(std::tan(3.14159265 * (u - 0.5)));
    case 3:  // Pareto, with both signs
      return float(std::copysign(std::pow(u + 1e-12, -0.4 - 1.6 * shared(2)),
                                 draw(call_, std::uint64_t(rank), i) - 0.5));
    case 4:  // few spikes
      return u < 8 / double(count_) ? float(normal_like(rank, i) / scale_)
                                    : float(u < 0.1 ? normal_like(rank, i) : 0);
    case 5:  // blocks of very different sizes
      return float(normal_like(rank, i) * std::pow(10.0, 12 * shared(3 + i / 512) - 6));
    case 6:  // cancels to a part that is the same everywhere
      return float(opposed(rank, i) + scale_ * normal_like(rank, i));
    default:
      return float(normal_like(rank, i));
  }
}

void run_adversarial(double budget, std::size_t count, int calls, float factor) {
  std::vector<float> in(count), out(count);
  std::vector<double> sums(2 * count);
  double worst = 0;
  int beyond = 0;
  for (int call = 0; call < calls; ++call) {
    const Adversary adversary(std::uint64_t(call), count);
    for (std::size_t i = 0; i < count; ++i) {
      in[i] = out[i] = factor * adversary.value(g_rank, i);
      sums[i] = double(in[i]);
      sums[count + i] = std::fabs(double(in[i]));
    }
    PMPI_Allreduce(MPI_IN_PLACE, sums.data(), int(2 * count), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(call % 3 == 0 ? MPI_IN_PLACE : in.data(), out.data(), int(count), MPI_FLOAT,
                  MPI_SUM, MPI_COMM_WORLD);
    const Measured measured = measure(out, sums.data(), sums.data() + count);
    if (measured.rounded) continue;
    worst = std::max(worst, measured.error);
    if (!(measured.error <= budget)) ++beyond;
  }
  if (g_rank == 0)
    std::printf("%d of %d calls beyond %g, the worst error %.3g\n", beyond, calls, budget, worst);
  g_failures += beyond;
}

}  // namespace

int main(int argc, char** argv) {
  begin_mpi();
  const char* const bound = std::getenv("SLIMPI_MAX_ERROR");
  if (argc < 2 || bound == nullptr) MPI_Abort(MPI_COMM_WORLD, 2);
  const double budget = std::atof(bound);
  const std::size_t count = std::size_t(std::atoll(argv[1]));
  if (argc == 3 && std::strcmp(argv[2], "nonfinite") == 0) run_nonfinite(1000);
  if (argc >= 4 && std::strcmp(argv[2], "adversarial") == 0)
    run_adversarial(budget, count, std::atoi(argv[3]),
                    argc > 4 ? std::strtof(argv[4], nullptr) : 1);
  for (int call = 0; call < (argc == 4 ? std::atoi(argv[3]) : 1); ++call)
    for (const Kind& kind : kKinds)
      if (argc < 3 || std::strcmp(argv[2], kind.name) == 0) run(kind, budget, count);
  return end_mpi();
}
