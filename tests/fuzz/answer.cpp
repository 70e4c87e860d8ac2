// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/answer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace fuzz {

namespace {

std::string at(std::size_t element, const char* what, double got, double want, double bound) {
  char text[160];
  std::snprintf(text, sizeof text, "element %zu %s: got %.9g, exact %.9g, bound %.9g", element,
                what, got, want, bound);
  return text;
}

bool finite_input(const Case& test) {
  return test.family < Family::one_nan;
}

int count_nodes(const Communicator& on) {
  const std::vector<int> nodes = on.node_of();
  return nodes.empty() ? 0 : 1 + *std::max_element(nodes.begin(), nodes.end());
}

// A worker ends with a mean of workers' models, times the number of ranks: never outside what the
// ranks gave.
std::string check_mean(const Case& test, const std::vector<float>& result) {
  for (std::size_t i = 0; i < result.size(); ++i) {
    double low = INFINITY, high = -INFINITY;
    for (int rank = 0; rank < test.ranks; ++rank) {
      low = std::min(low, double(make_value(test, rank, i)));
      high = std::max(high, double(make_value(test, rank, i)));
    }
    const double slack = test.ranks * (std::max(std::fabs(low), std::fabs(high)) * 1e-6 + 1e-44);
    if (!(result[i] >= test.ranks * low - slack && result[i] <= test.ranks * high + slack))
      return at(i, "is no mean of the ranks' values", result[i], test.ranks * low, slack);
  }
  return "";
}

std::string check_relative(const std::vector<Expected>& expected, const std::vector<float>& result,
                           double most) {
  double squares = 0, error = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    squares += expected[i].sum * expected[i].sum;
    error += (result[i] - expected[i].sum) * (result[i] - expected[i].sum);
  }
  if (std::sqrt(error) <= most * std::sqrt(squares)) return "";
  return at(0, "and all others: the relative error is too large", std::sqrt(error / squares), 0,
            most);
}

// Elements that are zero on all ranks, and buckets of one value, must be exact. Except with packed,
// which rounds a constant as all other values: at 1 bit an eighth of it is sent in no bits.
std::string check_exact(const Options& options, const Case& test,
                        const std::vector<float>& result) {
  if (options.low_rank() || options.keeps_error()) return "";
  const bool stochastic = options.scheme().stochastic;
  const bool may_pack = options.algorithm == "packed" || options.algorithm == "auto";
  for (std::size_t i = 0; i < result.size(); ++i) {
    const float constant = 0.75f * float(test.gathers ? 1 : test.ranks);
    if (test.family == Family::constant && !may_pack && result[i] != constant)
      return at(i, "of a constant", result[i], double(constant), 0);
    if (test.family == Family::sparse && i % 37 != 0 && !stochastic && result[i] != 0)
      return at(i, "is zero on all ranks", result[i], 0, 0);
  }
  return "";
}

// `carried`: what error feedback may add of earlier calls.
std::string check_elements(const Options& options, bool positive_zeros, double carried,
                           const std::vector<Expected>& expected,
                           const std::vector<float>& result) {
  for (std::size_t i = 0; i < result.size(); ++i) {
    const Expected& e = expected[i];
    const double got = result[i], bound = e.bound + carried;
    const bool overflows = options.algorithm == "fp16" && std::fabs(e.sum) + bound > 65000;
    if (e.must_be_nonfinite) {
      if (std::isfinite(got)) return at(i, "should not be finite", got, e.sum, 0);
    } else if ((e.may_be_nonfinite || overflows) && !std::isfinite(got)) {
      continue;
    } else if (!(std::fabs(got - e.sum) <= bound)) {
      return at(i, "is over the bound", got, e.sum, bound);
    }
    if (positive_zeros && got == 0 && std::signbit(result[i]))
      return at(i, "is a negative zero", got, e.sum, bound);
  }
  return "";
}

}  // namespace

bool may_be_taken(const Run& run, const Communicator& on, const Case& test) {
  const Options& options = on.options;
  // Some algorithms, and a bound of the error, have neither reduce-scatter nor all-gather.
  const bool without = !test.blocks.empty() && (options.low_rank() || options.decentralized() ||
                                                !options.max_error.empty());
  return run.on && on.size > 1 && test.count > 0 && !without &&
         test.count * sizeof(float) >= options.min_size && options.algorithm != "off" &&
         count_nodes(on) > 1;
}

std::string wrong_answerer(const Run& run, const Communicator& on, const Case& test, bool taken) {
  const Options& options = on.options;
  if (run.plain) return "";
  const bool wanted = may_be_taken(run, on, test);
  if (taken && !wanted) return "taken over, but is MPI's own";
  if (taken || !wanted || options.algorithm == "auto" || options.start != 0) return "";
  if (run.disturbance.limited()) return "";
  const bool needs_finite =
      options.low_rank() || options.algorithm == "low_precision_decentralized";
  if (needs_finite && (!finite_input(test) || test.family == Family::huge)) return "";
  return "left to MPI, but is the library's";
}

std::string check_result(Communicator& on, const Case& test, const std::vector<float>& result,
                         bool mine) {
  const Options& options = on.options;
  if (!mine && !options.keeps_error()) return "";
  if (options.algorithm == "low_precision_decentralized") return "";
  if (options.algorithm == "decentralized")
    return finite_input(test) ? check_mean(test, result) : "";
  const Oracle oracle(options.scheme(), on.node_of());
  std::vector<Expected> expected = oracle.expect(test);
  if (options.algorithm == "auto") {  // The choice may be packed.
    Scheme packed = options.scheme();
    packed.algorithm = "packed";
    packed.bucket = 64;
    const std::vector<Expected> others = Oracle(packed, on.node_of()).expect(test);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i].bound = std::max(expected[i].bound, others[i].bound);
      expected[i].must_be_nonfinite &= others[i].must_be_nonfinite;
      expected[i].may_be_nonfinite |= others[i].may_be_nonfinite;
    }
  }
  if (!options.max_error.empty()) {
    const bool plain = test.family == Family::normal || test.family == Family::uniform;
    return plain ? check_relative(expected, result, std::stod(options.max_error)) : "";
  }
  const double carried = options.keeps_error() && finite_input(test) ? 4 * on.worst : 0;
  if (options.keeps_error() && finite_input(test))
    for (const Expected& e : expected) on.worst = std::max(on.worst, e.bound);
  const bool positive_zeros = oracle.zeros_are_positive() && options.algorithm != "auto";
  const std::string wrong = check_elements(options, positive_zeros, carried, expected, result);
  return wrong.empty() ? check_exact(options, test, result) : wrong;
}

}  // namespace fuzz
