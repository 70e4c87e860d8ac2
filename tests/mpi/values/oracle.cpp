// SPDX-License-Identifier: BSD-3-Clause
#include "tests/mpi/values/oracle.h"

#include <algorithm>
#include <numeric>

namespace {

constexpr double kEpsilon = 0x1p-24;  // half a unit in the last place of a float, relative

std::vector<std::size_t> even_edges(std::size_t first, std::size_t count, std::size_t parts) {
  std::vector<std::size_t> edges;
  for (std::size_t i = 0; i < parts; ++i)
    edges.push_back(first + i * (count / parts) + std::min(i, count % parts));
  return edges;
}

std::vector<int> consecutive(int ranks, int ranks_per_node) {
  std::vector<int> node_of;
  for (int rank = 0; rank < ranks; ++rank) node_of.push_back(rank / ranks_per_node);
  return node_of;
}

// Returns the greatest absolute value of the finite values.
double greatest_of(const std::vector<double>& values) {
  double greatest = 0;
  for (const double value : values)
    if (std::isfinite(value)) greatest = std::max(greatest, std::fabs(value));
  return greatest;
}

}  // namespace

Oracle::Oracle(const Scheme& scheme, int ranks)
    : Oracle(scheme, consecutive(ranks, scheme.ranks_per_node)) {}

Oracle::Oracle(const Scheme& scheme, std::vector<int> node_of)
    : scheme_(scheme), ranks_(int(node_of.size())), node_of_(std::move(node_of)) {
  for (const int node : node_of_) {
    node_sizes_.resize(std::max(node_sizes_.size(), std::size_t(node) + 1));
    ++node_sizes_[std::size_t(node)];
  }
}

std::vector<std::size_t> Oracle::bucket_edges(std::size_t count) const {
  std::vector<std::size_t> edges;
  if (scheme_.bucket != 0) {
    for (std::size_t edge = 0; edge < count; edge += scheme_.bucket) edges.push_back(edge);
  } else {
    const int smallest = *std::min_element(node_sizes_.begin(), node_sizes_.end());
    const std::size_t group = scheme_.flat || scheme_.leader ? 1 : std::size_t(smallest);
    const std::size_t members = std::size_t(scheme_.flat ? ranks_ : nodes());
    const std::vector<std::size_t> slices = even_edges(0, count, group);
    for (std::size_t i = 0; i < group; ++i) {
      const std::size_t end = i + 1 < group ? slices[i + 1] : count;
      for (const std::size_t edge : even_edges(slices[i], end - slices[i], members))
        edges.push_back(edge);
    }
  }
  edges.push_back(count);
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

std::vector<std::size_t> Oracle::exchange_order(const std::vector<std::size_t>& blocks,
                                                std::vector<std::size_t>* edges) const {
  std::vector<std::size_t> order, first_of(blocks.size() + 1);
  for (std::size_t rank = 0; rank < blocks.size(); ++rank)
    first_of[rank + 1] = first_of[rank] + blocks[rank];
  edges->clear();
  const auto begin_chunk = [&] { edges->push_back(order.size()); };
  const auto end_chunk = [&] {
    if (scheme_.bucket == 0) return;
    for (std::size_t edge = edges->back() + scheme_.bucket; edge < order.size();
         edge += scheme_.bucket)
      edges->push_back(edge);
  };
  const auto add = [&](int rank) {
    for (std::size_t i = first_of[std::size_t(rank)]; i < first_of[std::size_t(rank) + 1]; ++i)
      order.push_back(i);
  };
  const int smallest = *std::min_element(node_sizes_.begin(), node_sizes_.end());
  const int shards = scheme_.leader ? 1 : smallest;
  for (int rank = 0; scheme_.flat && rank < ranks_; ++rank) {
    begin_chunk();
    add(rank);
    end_chunk();
  }
  for (int shard = 0; !scheme_.flat && shard < shards; ++shard)
    for (int node = 0; node < nodes(); ++node) {
      begin_chunk();
      for (int rank = 0, local = 0; rank < ranks_; ++rank)
        if (node_of_[std::size_t(rank)] == node && local++ % shards == shard) add(rank);
      end_chunk();
    }
  edges->push_back(order.size());
  edges->erase(std::unique(edges->begin(), edges->end()), edges->end());
  return order;
}

double Oracle::step_error(double low, double high, double greatest, bool infinite) const {
  const double largest = std::max(std::fabs(low), std::fabs(high));
  if (scheme_.algorithm == "fp16") return largest * 0x1p-11 + 0x1p-25;
  if (scheme_.algorithm == "bf16") return largest * 0x1p-8 + 0x1p-134;
  if (scheme_.algorithm == "allreduce" || scheme_.algorithm == "hook" || low_rank()) return 0;
  // The scale of a bucket of 64 bounds its error. And in a tile there is room for bits - 1 bits a
  // value, of which the bucket with the greatest scale has bits - 2 at least, and others the more,
  // relative to that scale. A step is lost at most.
  if (scheme_.algorithm == "packed")
    return std::min(1.125 * largest, 1.125 * greatest * std::exp2(3 - scheme_.bits)) +
           2 * kEpsilon * largest + 0x1p-110;
  // Beside infinities there are two levels less; with 1 bit there is one value.
  const double last = std::exp2(scheme_.bits) - (infinite ? 3 : 1);
  const double unit = last < 0 ? 2 * (high - low) : (high - low) / last;
  // The roundings of kernels/math/quantizer.h: five relative to the distance from the minimum, one
  // to the value.
  return (scheme_.stochastic ? 1.0 : 0.5) * unit + 5 * kEpsilon * (high - low) +
         largest * kEpsilon + 0x1p-149;
}

// The owner of a block rounds the block once. Its first bucket begins where the block begins.
std::vector<Expected> Oracle::expect_gathered(const Case& test) const {
  std::vector<Expected> expected;
  for (std::size_t rank = 0; rank < test.blocks.size(); ++rank) {
    std::vector<double> values;
    const std::size_t first = expected.size(), count = test.blocks[rank];
    for (std::size_t i = 0; i < count; ++i)
      values.push_back(make_value(test, int(rank), first + i));
    const double greatest = greatest_of(values);
    for (std::size_t begin = 0; begin < count;) {
      const std::size_t end = scheme_.bucket == 0 ? count : std::min(count, begin + scheme_.bucket);
      double low = INFINITY, high = -INFINITY;
      bool nonfinite = false;
      for (std::size_t i = begin; i < end; ++i) {
        nonfinite = nonfinite || !std::isfinite(values[i]);
        if (!std::isfinite(values[i])) continue;
        low = std::min(low, values[i]);
        high = std::max(high, values[i]);
      }
      const double bound =
          low <= high && nodes() > 1 ? step_error(low, high, greatest, nonfinite) : 0;
      for (; begin < end; ++begin)
        expected.push_back({values[begin], bound, !std::isfinite(values[begin]),
                            (nonfinite && quantized()) ||
                                (scheme_.algorithm == "fp16" && std::fabs(values[begin]) > 65000)});
    }
  }
  return expected;
}

std::vector<Expected> Oracle::expect(const Case& test) const {
  if (test.gathers) return expect_gathered(test);
  const std::size_t n = test.count;
  // The group of each rank. Ranks with the same number send their exact sum together.
  std::vector<int> senders = scheme_.flat ? consecutive(ranks_, 1) : node_of_;
  const int nodes = scheme_.flat ? ranks_ : this->nodes();
  std::vector<Expected> expected(n);
  std::vector<double> magnitude(n);
  std::vector<std::size_t> edges = bucket_edges(n), order(n);
  const bool scatters = !test.blocks.empty();
  std::iota(order.begin(), order.end(), std::size_t(0));
  if (scatters) order = exchange_order(test.blocks, &edges);
  std::vector<double> bucket_error(edges.size());
  for (int node = 0; node < nodes; ++node) {
    std::vector<double> sum(n);
    for (int rank = 0; rank < ranks_; ++rank)
      for (std::size_t i = 0; i < n && senders[std::size_t(rank)] == node; ++i) {
        const double x = make_value(test, rank, i);
        sum[i] += x;
        magnitude[i] += std::fabs(x);
      }
    for (std::size_t i = 0; i < n; ++i) {
      expected[i].sum += sum[i];
      // until the bounds are known: the largest number that a node sends
      expected[i].bound = std::max(expected[i].bound, std::fabs(sum[i]));
    }
    const double greatest = greatest_of(sum);
    for (std::size_t b = 0; b + 1 < edges.size(); ++b) {
      double low = INFINITY, high = -INFINITY;
      bool infinite = false;
      for (std::size_t at = edges[b]; at < edges[b + 1]; ++at) {
        const std::size_t i = order[at];
        infinite = infinite || !std::isfinite(sum[i]);
        if (!std::isfinite(sum[i])) continue;
        low = std::min(low, sum[i]);
        high = std::max(high, sum[i]);
      }
      if (low <= high) bucket_error[b] += step_error(low, high, greatest, infinite);
    }
  }
  if (scheme_.algorithm == "fp16")  // what a half cannot hold becomes infinite, as in a cast
    for (Expected& e : expected) e.may_be_nonfinite = std::fabs(e.sum) + e.bound > 65000;
  std::vector<double> sums;
  for (const Expected& e : expected) sums.push_back(e.sum);
  const double rounded =
      bucket_error.empty() ? 0 : *std::max_element(bucket_error.begin(), bucket_error.end());
  const double greatest = greatest_of(sums) * (1 + kEpsilon * ranks_) + rounded;
  for (std::size_t b = 0; b + 1 < edges.size(); ++b) {
    double low = INFINITY, high = -INFINITY, summing = 0;
    bool nonfinite = false;
    for (std::size_t at = edges[b]; at < edges[b + 1]; ++at) {
      const std::size_t i = order[at];
      if (!std::isfinite(expected[i].sum)) {
        nonfinite = true;
        continue;
      }
      low = std::min(low, expected[i].sum);
      high = std::max(high, expected[i].sum);
      summing = std::max(summing, magnitude[i] * kEpsilon * ranks_);
    }
    const double first = bucket_error[b];
    const double total = low <= high && !scatters
                             ? step_error(low - first - summing, high + first + summing, greatest,
                                          nonfinite)
                             : 0;  // the sum is not rounded again
    for (std::size_t at = edges[b]; at < edges[b + 1]; ++at) {
      const std::size_t i = order[at];
      expected[i].bound = nodes == 1 ? summing : first + total + 2 * summing;
      expected[i].must_be_nonfinite = !std::isfinite(expected[i].sum);
      expected[i].may_be_nonfinite |= nonfinite && quantized();
    }
  }
  if (low_rank()) {  // a projection of the sum misses no more than all of it
    double squares = 0;
    for (const Expected& e : expected) squares += std::isfinite(e.sum) ? e.sum * e.sum : 0;
    for (Expected& e : expected) e.bound += 1.001 * std::sqrt(squares) + 0x1p-140;
  }
  return expected;
}
