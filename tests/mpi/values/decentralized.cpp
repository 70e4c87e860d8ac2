// SPDX-License-Identifier: BSD-3-Clause
// A program that averages models, under the preload with SLIMPI_ALGORITHM=decentralized or
// low_precision_decentralized. It works out all ranks' results itself (tests/mpi/values/gossip.h)
// and wants the same bytes at every call. Options come from the environment, as for the library.
// Usage: decentralized MODE
//   cases     most sizes and families of inputs.h, five calls each, one of them with a NaN
//   long      1,000 calls on one buffer
//   overflow  a sum that is not finite does not stay in the replicas
//   drift     60 rounds of a drifting model: how far from the mean the ranks end
#include "tests/helper/base/program.h"

#include <list>

#include "options/config.h"
#include "tests/mpi/values/gossip.h"
#include "tests/mpi/values/inputs.h"

namespace {

using Vector = std::vector<float>;

std::uint64_t g_number;  // compressed calls so far
slimpi::Config g_config;

bool low_precision() {
  return g_config.algorithm == "low_precision_decentralized";
}

// Compares the bits of two values. If one is not finite, the other must not be, but an infinity may
// have become a NaN and the other way round.
bool same(float a, float b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (!std::isfinite(a) && !std::isfinite(b));
}

void compare(const Case& test, int call, const Vector& got, const Vector& want) {
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!same(got[i], want[i])) {
      if (++g_failures <= 3)
        std::fprintf(stderr, "rank %d: %s, n = %zu, call %d, element %zu: got %.9g, not %.9g\n",
                     g_rank, family_name(test.family), test.count, call, i, double(got[i]),
                     double(want[i]));
      return;
    }
}

double drift(int rank, int call, std::size_t i) {
  return 2 * draw(std::uint64_t(1000 + call), std::uint64_t(rank), i) - 1;
}

// The calls on one buffer. Every rank computes the results of all ranks itself, so that all
// messages are slimpi's.
class Run {
 public:
  Run(const Case& test, float* buffer)
      : test_(test), buffer_(buffer), gossip_(g_config, g_size, test.count) {
    for (int rank = 0; rank < g_size; ++rank) models_.push_back(make_input(test, rank));
  }

  // Changes every model by one step and makes a call. `nan`: whether the last rank's model has a
  // NaN.
  void call(int call, bool nan) {
    std::vector<Vector> in = models_;
    for (std::size_t rank = 0; rank < in.size() && call != 0; ++rank)
      for (std::size_t i = 0; i < test_.count; ++i)
        in[rank][i] += float(1e-3 * (drift(int(rank), call, i) + drift(99, call, i)));
    if (nan) in.back()[test_.count / 2] = std::nanf("");
    bool finite = true;
    for (const Vector& one : in)
      for (const float value : one) finite = finite && std::isfinite(value);

    const Vector& mine = in[std::size_t(g_rank)];
    const bool start = earlier_ < g_config.start.value_or(0);
    const bool take = !start && (finite || !low_precision());
    std::vector<Vector> want;
    if (take)
      want = gossip_.call(in, ++g_number, earlier_);
    else
      want.assign(in.size(), plain_sum(mine));
    const std::uint64_t before = compressed_calls();
    if (test_.in_place) std::memcpy(buffer_, mine.data(), mine.size() * sizeof(float));
    MPI_Allreduce(test_.in_place ? MPI_IN_PLACE : mine.data(), buffer_, int(test_.count), MPI_FLOAT,
                  MPI_SUM, MPI_COMM_WORLD);
    if ((compressed_calls() != before) != take && ++g_failures <= 3)
      std::fprintf(stderr, "rank %d: call %d should%s be compressed\n", g_rank, call,
                   take ? "" : " not");
    compare(test_, call, Vector(buffer_, buffer_ + test_.count), want[std::size_t(g_rank)]);
    if (take || start) ++earlier_;
    for (std::size_t rank = 0; rank < models_.size(); ++rank)
      for (std::size_t i = 0; i < test_.count; ++i)
        keep(models_[rank][i], want[rank][i] / float(g_size));
  }

 private:
  // Gives the model its next value, unless the value is not finite, as a program would.
  static void keep(float& model, float next) {
    if (std::isfinite(next))
      model = next;
    else if (!std::isfinite(model))
      model = 0.25f;
  }
  static Vector plain_sum(const Vector& mine) {
    Vector sum(mine.size());
    PMPI_Allreduce(mine.data(), sum.data(), int(mine.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return sum;
  }

  const Case& test_;
  float* buffer_;
  Gossip gossip_;
  std::vector<Vector> models_;
  std::uint64_t earlier_ = 0;
};

int cases() {
  std::list<Vector> buffers;  // all live at once, so that no two have the same address
  int done = 0;
  for (const Case& test : make_cases(false, std::size_t(g_size))) {
    const bool kept = test.family == Family::normal
                          ? test.count <= 10007 || test.count == 65537
                          : test.count == 77 || (test.count == 5000 && int(test.family) % 3 == 0);
    if (test.count == 0 || !kept) continue;
    buffers.emplace_back(test.count);
    Run run(test, buffers.back().data());
    for (int call = 0; call < 5; ++call) run.call(call, call == 2);
    ++done;
  }
  return done;
}

int long_run() {
  const Case test = {Family::normal, 3001, 5, true, false, false, g_size};
  Vector buffer(test.count);
  Run run(test, buffer.data());
  for (int call = 0; call < 1000 && (call % 50 != 0 || all_failures() == 0); ++call)
    run.call(call, call == 500);
  return 1;
}

double rms(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum / double(a.size()));
}

void within(const char* what, double value, double bound) {
  if (g_rank == 0) std::printf("  %s: %.2e rms (at most %.0e)\n", what, value, bound);
  if (!(value <= bound)) ++g_failures;
}

int hold_together() {
  const std::size_t n = 20000;
  const Case test = {Family::normal, n, 3, true, false, false, g_size};
  Vector model = make_input(test, g_rank);
  std::vector<double> exact = exact_sum(test);
  for (double& value : exact) value /= g_size;
  for (int round = 0; round < 60; ++round) {
    for (int rank = 0; rank < g_size; ++rank)
      for (std::size_t i = 0; i < n; ++i) {
        const float step = float(1e-3 * (drift(rank, round, i) + 10 * drift(99, round, i)));
        exact[i] += double(step) / g_size;
        if (rank == g_rank) model[i] += step;
      }
    MPI_Allreduce(MPI_IN_PLACE, model.data(), int(n), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (float& value : model) value /= float(g_size);
  }
  const std::vector<double> mine(model.begin(), model.end());
  std::vector<double> mean(n);
  PMPI_Allreduce(mine.data(), mean.data(), int(n), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (double& value : mean) value /= g_size;
  double away = rms(mine, mean), farthest = 0;
  PMPI_Allreduce(&away, &farthest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  within("the farthest rank from the mean", farthest, low_precision() ? 4e-3 : 2e-3);
  within("the mean from the exact average", rms(mean, exact), low_precision() ? 2e-3 : 1e-5);
  return 1;
}

// Finite models whose sum is not finite make replicas infinite, so slimpi must start over at the
// next call.
int overflow() {
  const std::size_t n = 5000;
  Vector buffer(n, 3e38f);
  const auto sum = [&] {
    MPI_Allreduce(MPI_IN_PLACE, buffer.data(), int(n), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  sum();
  for (const float value : buffer)
    if (std::isfinite(value)) ++g_failures;
  const Case test = {Family::normal, n, 3, true, false, false, g_size};
  buffer = make_input(test, g_rank);
  sum();
  const std::vector<double> exact = exact_sum(test);
  for (std::size_t i = 0; i < n; ++i)
    if (!(std::fabs(double(buffer[i]) - exact[i]) < 1e-5)) ++g_failures;
  const Vector first = buffer;
  for (float& value : buffer) value /= float(g_size);
  sum();
  for (std::size_t i = 0; i < n; ++i)
    if (!(std::fabs(buffer[i] - first[i]) < 1e-4f)) ++g_failures;
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  begin_mpi();
  g_config = slimpi::load_config(slimpi::slimpi_environment()).config;
  const std::string mode = argc > 1 ? argv[1] : "";
  int done = 0;
  if (mode == "cases") done = cases();
  if (mode == "long") done = long_run();
  if (mode == "drift") done = hold_together();
  if (mode == "overflow") done = overflow();
  if (compressed_calls() == 0) ++g_failures;
  const bool bad = all_failures() != 0 || done == 0;
  if (g_rank == 0)
    std::printf("%s %s %s: %d cases on %d ranks\n", bad ? "FAILED" : "ok",
                g_config.algorithm.c_str(), mode.c_str(), done, g_size);
  MPI_Finalize();
  return bad ? 1 : 0;
}
