// SPDX-License-Identifier: BSD-3-Clause
// Programs whose buffers say nothing about which tensor they hold, under the preload, every rank a
// node: no sum is further from the exact one than error feedback may be, whatever state it met.
// Each row of kRows runs on communicators of its own, with its options as info keys. Every program
// runs twice: with arrays that are kept, one for each place of a sum, and with arrays that are made
// and freed around each sum, which malloc gives the same address. The exact sums are in double.
// Usage: identities HOOK   the shared object of a codec that keeps some values and drops the others
#include "tests/helper/base/program.h"

#include <map>
#include <memory>

#include "tests/mpi/values/inputs.h"

namespace {

// The unit of the error's bound: steps of buckets; the largest steps that `packed` may have;
// spacings of 16-bit floats; or norms of the ranks' values, for a low-rank sum, for a hook that
// does the same with coordinates, and for replicas.
enum class Bound { quantized, packed, value_codec, low_rank, hook, replicas };

struct Row {
  const char* algorithm;
  int bits;
  Bound bound;
  int programs;    // how many of them
  double spacing;  // of a value codec, relative
};
constexpr Row kRows[] = {{"bytegrad", 8, Bound::quantized, 5, 0},
                         {"bytegrad", 4, Bound::quantized, 5, 0},
                         {"bytegrad", 2, Bound::quantized, 5, 0},
                         {"qsgd", 4, Bound::quantized, 1, 0},
                         {"packed", 8, Bound::packed, 5, 0},
                         {"packed", 3, Bound::packed, 5, 0},
                         {"fp16", 8, Bound::value_codec, 1, 0x1p-10},
                         {"bf16", 8, Bound::value_codec, 1, 0x1p-7},
                         {"powersgd", 8, Bound::low_rank, 5, 0},
                         {"batched_powersgd", 8, Bound::low_rank, 1, 0},
                         {"hook", 8, Bound::hook, 1, 0},
                         {"low_precision_decentralized", 8, Bound::replicas, 5, 0}};

// The most that a call adds to a residual, in norms: algorithm/residual_limit.h.
constexpr double kResidualNorms = 32;
std::string g_hook;

// The random values of every rank, drawn once. Each tensor begins at another one of them.
constexpr std::size_t kDraws = 4999;
std::vector<std::vector<double>> g_draws;

// A program that runs on a communicator of its own.
class Program {
 public:
  Program(const Row& row, bool fresh, const char* name) : row_(row), fresh_(fresh), name_(name) {
    MPI_Info info;
    MPI_Info_create(&info);
    const std::string algorithm = row.algorithm;
    MPI_Info_set(info, "slimpi_algorithm", (algorithm == "hook" ? g_hook : algorithm).c_str());
    MPI_Info_set(info, "slimpi_bits", std::to_string(row.bits).c_str());
    MPI_Info_set(info, "slimpi_error_feedback", "1");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm_);
    MPI_Info_free(&info);
  }
  ~Program() {
    MPI_Comm_free(&comm_);
    if (g_rank == 0 && worst_ > 0.01)
      std::printf("  %-16s %d bits, %-14s %s arrays: at most %.2f of the bound, %d of %d beyond\n",
                  row_.algorithm, row_.bits, name_, fresh_ ? "fresh" : "kept", worst_, beyond_,
                  sums_);
    g_failures += beyond_;
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Sums a tensor of values around 0 in the array of this place. `scale`: the size of the values.
  void sum(int place, std::size_t count, double scale) {
    const int seed = ++sums_;
    std::vector<float>& array = kept_[place];
    if (array.size() < count) array.resize(count);
    const std::unique_ptr<float[]> made(fresh_ ? new float[count] : nullptr);
    float* const buffer = fresh_ ? made.get() : array.data();
    for (std::size_t i = 0; i < count; ++i) buffer[i] = value(seed, g_rank, i, scale);
    MPI_Allreduce(MPI_IN_PLACE, buffer, int(count), MPI_FLOAT, MPI_SUM, comm_);
    if (beyond(buffer, seed, count, scale)) ++beyond_;
  }

 private:
  static float value(int seed, int rank, std::size_t i, double scale) {
    return float(scale * g_draws[std::size_t(rank)][(std::size_t(seed) * 61 + i) % kDraws]);
  }

  bool beyond(const float* result, int seed, std::size_t count, double scale) {
    const double worst = row_.bound <= Bound::value_codec
                             ? worst_element(result, seed, count, scale)
                             : worst_norm(result, seed, count, scale);
    worst_ = std::max(worst_, worst);
    return !(worst <= 1);
  }

  // Returns the norm of the error divided by its bound, which follows from the norms of the ranks.
  double worst_norm(const float* result, int seed, std::size_t count, double scale) const {
    std::vector<double> exact(count);
    double sum = 0, greatest = 0;
    for (int rank = 0; rank < g_size; ++rank) {
      double squares = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const auto x = double(value(seed, rank, i, scale));
        exact[i] += x;
        squares += x * x;
      }
      sum += std::sqrt(squares);
      greatest = std::max(greatest, std::sqrt(squares));
    }
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) squares += std::pow(double(result[i]) - exact[i], 2);
    const double projected = std::sqrt(1 + kResidualNorms * kResidualNorms);
    double bound = projected * sum;
    // The ranks' values are projected first, then their sum, which may be larger than the exact sum
    // by the first error.
    if (row_.bound == Bound::hook) bound = projected * (2 + projected) * sum;
    // The result is the mean of two or three models, with an error of half a step of what is sent.
    const double levels = double((1 << row_.bits) - 1);
    if (row_.bound == Bound::replicas)
      bound = g_size * greatest * (1 + 3.5 * std::sqrt(double(count)) / levels);
    return std::sqrt(squares) / (1.001 * bound);
  }

  // Returns the greatest error of an element divided by its bound. The bound uses the range of all
  // values instead of a bucket's.
  double worst_element(const float* result, int seed, std::size_t count, double scale) const {
    std::vector<double> exact(count), magnitude(count);
    double steps = 0, greatest = 0;
    const double levels = double((1 << row_.bits) - 1);
    for (int rank = 0; rank < g_size; ++rank) {
      double least = HUGE_VAL, most = -HUGE_VAL;
      for (std::size_t i = 0; i < count; ++i) {
        const auto x = double(value(seed, rank, i, scale));
        exact[i] += x;
        magnitude[i] += std::fabs(x);
        least = std::min(least, x);
        most = std::max(most, x);
      }
      steps += (most - least) / levels;
      greatest += std::max(-least, most);
    }
    const auto [least, most] = std::minmax_element(exact.begin(), exact.end());
    const double own = (*most - *least) / levels;
    const bool draws = std::string(row_.algorithm) == "qsgd";
    const double k = draws || row_.bits == 1 ? 2 : 1.5 + 1 / levels;
    const double quantized = k * (steps * (1 + 2 * k / levels) + own);
    // A step of packed, what is added, and what is rounded then; of the greatest magnitude.
    const double share = std::min(2.25, 1.125 * std::exp2(2.11 - row_.bits) + 0x1p-13);
    const double added = 4 * (share + 1.6 * std::exp2(2 - 2 * row_.bits));
    const double lost = added + share * (1 + added), sent = lost * greatest;
    const double total = std::max(-*least, *most) + sent;
    double worst = 0;
    for (std::size_t i = 0; i < count; ++i) {
      double bound = greatest * 1e-6;
      if (row_.bound == Bound::packed) bound += sent + lost * total;
      if (row_.bound == Bound::quantized) bound += quantized;
      if (row_.bound == Bound::value_codec)
        bound += 1.5 * row_.spacing * (2.1 * magnitude[i]) + 0x1p-22;
      worst = std::max(worst, std::fabs(double(result[i]) - exact[i]) / bound);
    }
    return worst;
  }

  const Row& row_;
  const bool fresh_;
  const char* const name_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int sums_ = 0, beyond_ = 0;
  double worst_ = 0;
  std::map<int, std::vector<float>> kept_;
};

constexpr std::size_t kCount = 900;

// Sums three tensors of the same count and very different scales, in arrays at equal distances.
void equal_distances(Program& program) {
  for (int step = 0; step < 12; ++step)
    for (const double scale : {5.0, 5e-4, 0.1}) program.sum(0, kCount, scale);
}

// Sums six blocks of two layers. Each block has another scale.
void blocks(Program& program) {
  for (int step = 0; step < 6; ++step)
    for (int block = 0; block < 6; ++block) {
      program.sum(0, kCount, std::pow(8.0, -block));
      program.sum(1, kCount / 2, std::pow(8.0, block - 5));
    }
}

// Leaves a layer out now and then, as if it had no gradient.
void skipped_layer(Program& program) {
  for (int step = 0; step < 12; ++step)
    for (int layer = 0; layer < 3; ++layer)
      if (layer != 1 || step % 4 != 3) program.sum(0, kCount, std::pow(100.0, -layer));
}

// Makes two sums in each step, and in every tenth step a third one, with the count of the first.
void validation(Program& program) {
  for (int step = 0; step < 24; ++step) {
    program.sum(0, kCount, 1);
    program.sum(1, kCount, 1e-3);
    if (step % 10 == 9) program.sum(0, kCount, 1e3);
  }
}

// Sums one tensor whose length and scale vary. Each length occurs several times, with other values.
void varying_length(Program& program) {
  for (int step = 0; step < 40; ++step)
    program.sum(0, kCount - std::size_t(step * 7 % 5) * 100, std::pow(10.0, -(step * 5 % 7)));
}

}  // namespace

int main(int argc, char** argv) {
  begin_mpi();
  g_hook = std::string("hook:") + (argc > 1 ? argv[1] : "");
  for (int rank = 0; rank < g_size; ++rank) {
    std::vector<double>& draws = g_draws.emplace_back(kDraws);
    for (std::size_t i = 0; i < kDraws; ++i) draws[i] = 2 * draw(7, std::uint64_t(rank), i) - 1;
  }
  const struct {
    const char* name;
    void (*run)(Program&);
  } programs[] = {{"equal distances", equal_distances},
                  {"blocks", blocks},
                  {"skipped layer", skipped_layer},
                  {"validation", validation},
                  {"varying length", varying_length}};
  for (const Row& row : kRows)
    for (int i = 0; i < row.programs; ++i)
      for (const bool fresh : {false, true}) {
        Program program(row, fresh, programs[i].name);
        programs[i].run(program);
      }
  return end_mpi();
}
