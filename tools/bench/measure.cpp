// SPDX-License-Identifier: BSD-3-Clause
#include "tools/bench/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "base/hash.h"
#include "observe/statistics.h"

namespace slimpi::bench {
namespace {

constexpr double kSampleSeconds = 2e-3;  // length of a batch of calls, if a call takes less
constexpr int kMostCalls = 100;          // most calls in a batch
constexpr double kSizeSeconds = 2;  // for all candidates of a size, where --iterations is not given
constexpr int kLeastIterations = 5, kMostIterations = 50;
constexpr std::uint64_t kWireBytes = 1
                                     << 20;  // calls are repeated until this much could be counted

// Waits until the counter of a network device no longer changes, which means that all queued bytes
// have left, and returns it.
std::optional<std::uint64_t> settled(const std::string& interface) {
  std::optional<std::uint64_t> last = bytes_sent_by(interface);
  for (int still = 0, tries = 0; last && still < 3 && tries < 500; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::optional<std::uint64_t> now = bytes_sent_by(interface);
    still = now == last ? still + 1 : 0;
    last = now;
  }
  return last;
}

// Returns a hash of the values' bits, so that ranks can compare their results.
std::uint64_t fingerprint(const float* values, std::uint64_t count) {
  Fnv1a hash;
  for (std::uint64_t i = 0; i < count; ++i) hash.add(std::bit_cast<std::uint32_t>(values[i]));
  return hash.value();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace

std::string Row::label() const {
  return bits == 0 ? name : fmt::format("{} {:g}", name, bits);
}

// How often each candidate is called at a size: there are `iterations` rounds, and in each round
// candidate i makes calls[i] calls in a row.
struct Bench::Plan {
  int iterations;
  std::vector<int> calls;
};

Bench::Bench(const Options& options, const World& world) : options_(options), world_(world) {
  const std::uint64_t most = *std::max_element(options.sizes.begin(), options.sizes.end());
  bool here = true;
  try {
    in_.resize(most / sizeof(float));
    out_.resize(in_.size());
    if (options.check) exact_.reserve(in_.size());
  } catch (const std::exception&) {  // bad_alloc, or length_error beyond max_size()
    here = false;
  }
  has_memory_ = sum(!here) == 0;
  if (!has_memory_) return;
  // Values that resemble gradients: normally distributed, and different on every rank.
  std::mt19937 generator(std::uint32_t(world.rank) + 1);
  std::normal_distribution<float> normal(0, 1e-2F);
  for (float& value : in_) value = normal(generator);
  candidates_ = candidates(options, world);
}

Bench::~Bench() {
  release(candidates_);
}

double Bench::time(const Candidate& candidate, std::uint64_t count, int calls) {
  const void* from = in_.data();
  if (options_.in_place) {
    std::memcpy(out_.data(), in_.data(), count * sizeof(float));
    from = MPI_IN_PLACE;
  }
  PMPI_Barrier(MPI_COMM_WORLD);
  const double start = PMPI_Wtime();
  for (int i = 0; i < calls; ++i) candidate.run(from, out_.data(), count);
  return (PMPI_Wtime() - start) / calls;
}

Bench::Plan Bench::plan(std::uint64_t count) {
  Plan plan{options_.iterations, {}};
  double round = 0;
  for (const Candidate& candidate : candidates_) {
    for (int i = 1; i < options_.warmup; ++i) (void)time(candidate, count, 1);
    const double seconds = largest(time(candidate, count, 1));
    // With --in-place a sum becomes the input of the next call, so values would grow. Each call
    // therefore begins with a copy of the input, and calls are not batched.
    const double wanted = options_.in_place ? 1 : std::ceil(kSampleSeconds / seconds);
    plan.calls.push_back(int(std::clamp(wanted, 1.0, double(kMostCalls))));
    round += seconds * plan.calls.back();
  }
  if (plan.iterations == 0)
    plan.iterations =
        int(std::clamp(kSizeSeconds / round, double(kLeastIterations), double(kMostIterations)));
  return plan;
}

void Bench::find_exact(std::uint64_t count) {
  constexpr std::uint64_t kPart = 1 << 20;  // limits the memory that MPI allocates for one call
  while (exact_.size() < count) {
    const std::uint64_t begin = exact_.size(), part = std::min(kPart, count - begin);
    exact_.insert(exact_.end(), in_.begin() + std::ptrdiff_t(begin),
                  in_.begin() + std::ptrdiff_t(begin + part));
    PMPI_Allreduce(MPI_IN_PLACE, exact_.data() + begin, int(part), MPI_DOUBLE, MPI_SUM,
                   MPI_COMM_WORLD);
  }
}

// Fills in all of a row but its times: the bytes sent, the error, and whether all ranks have the
// same result.
void Bench::judge(const Candidate& candidate, std::uint64_t count, Row& row) {
  const std::uint64_t calls =
      options_.in_place ? 1
                        : std::clamp<std::uint64_t>(kWireBytes / (count * sizeof(float)), 1, 32);
  std::fill(out_.begin(), out_.begin() + std::ptrdiff_t(count), 0.0F);
  PMPI_Barrier(MPI_COMM_WORLD);
  const auto wire_before = world_.speaks_for_node ? settled(options_.interface) : std::nullopt;
  const auto before = statistics();
  (void)time(candidate, count, int(calls));
  PMPI_Barrier(MPI_COMM_WORLD);
  const auto after = statistics();
  const auto wire_after = world_.speaks_for_node ? settled(options_.interface) : std::nullopt;
  const bool counted = sum(wire_before && wire_after) == std::uint64_t(world_.nodes);
  const std::uint64_t on_wire =
      sum(counted && world_.speaks_for_node ? *wire_after - *wire_before : 0);
  if (counted) row.on_wire = on_wire / calls;
  if (!candidate.plain() && before && after) {
    row.sent = sum(after->bytes_sent - before->bytes_sent) / calls;
    row.compressed = sum(after->compressed - before->compressed) > 0;
  }
  if (!options_.check) return;
  find_exact(count);
  const bool all = options_.collective == Collective::allreduce;
  const std::uint64_t own = all ? count : count / std::uint64_t(world_.ranks);
  const double* const exact = exact_.data() + (all ? 0 : std::uint64_t(world_.rank) * own);
  const Deviation deviation = deviation_of(out_.data(), exact, own);
  row.error = largest(deviation.relative_l2());
  row.vnmse = *row.error * *row.error;
  const double nonzero = std::max(1.0, double(deviation.nonzero));
  row.zeros = largest(double(deviation.zeros) / nonzero);
  row.wrong_signs = largest(double(deviation.wrong_signs) / nonzero);
  if (all) row.same = all_equal(fingerprint(out_.data(), count));
}

std::vector<Row> Bench::measure(std::uint64_t bytes) {
  const std::uint64_t count = bytes / sizeof(float);
  const Plan plan = this->plan(count);
  std::vector<std::vector<double>> times(candidates_.size());
  // Each round calls the candidates in a new random order, so that none of them always finds the
  // caches as the same other one left them. The order is the same on all ranks.
  std::vector<std::size_t> order(candidates_.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::mt19937 draw(1);
  for (int i = 0; i < plan.iterations; ++i) {
    std::shuffle(order.begin(), order.end(), draw);
    for (const std::size_t c : order)
      times[c].push_back(time(candidates_[c], count, plan.calls[c]));
  }
  std::vector<Row> rows;
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    const Candidate& candidate = candidates_[c];
    PMPI_Allreduce(MPI_IN_PLACE, times[c].data(), plan.iterations, MPI_DOUBLE, MPI_MAX,
                   MPI_COMM_WORLD);
    Row row;
    row.bytes = bytes;
    row.name = candidate.name;
    row.bits = candidate.bits;
    row.iterations = plan.iterations;
    row.median = median(times[c]);
    row.least = *std::min_element(times[c].begin(), times[c].end());
    row.algbw = double(bytes) / row.median;
    row.busbw = row.algbw * row_of(options_.collective).phases * (world_.ranks - 1) / world_.ranks;
    row.speedup = c == 0 ? 1 : rows[0].median / row.median;
    if (options_.wire > 0 && candidate.coded > 0 && world_.nodes > 1)
      row.limit = wire_limit(options_.collective, double(bytes), candidate.coded, world_.nodes,
                             options_.wire);
    judge(candidate, count, row);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace slimpi::bench
