// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/policy.h"

#include "config.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "algorithm/codec_choice.h"
#include "algorithm/hook.h"
#include "observe/report.h"

namespace slimpi::algorithm {

namespace {

// Returns the hierarchy of a plan. "auto" means sharded, where every rank of a node carries a
// shard, so that all cores and links of the node are used.
Hierarchy chosen(const Config& config, const Algorithm& row) {
  if (row.flat) return Hierarchy::flat;
  return config.hierarchy == Hierarchy::automatic ? Hierarchy::sharded : config.hierarchy;
}

// Makes the plan for the algorithm `row`. `name` is the name as the user wrote it, with its
// argument, and `rule` is the row of the rules that has it, or null.
comm::Plan make_plan(const Config& config, const Algorithm& row, const std::string& name,
                     const Rule* rule, double bits, Collective collective) {
  comm::Plan plan;
  plan.algorithm = &row;
  plan.format.codec = row.codec;
  if (row.codec == kernels::Codec::packed) {
    plan.format.bits = std::uint8_t(2 * bits);
    plan.format.bucket = kernels::longest_packed_tile(plan.format.bits);
  } else {
    plan.format.bits = std::uint8_t(bits);
    plan.format.bucket = std::uint32_t(config.bucket);
    plan.format.stochastic = config.rounding.value_or(row.rounding) == Rounding::stochastic;
  }
  plan.hierarchy = chosen(config, row);
  // Algorithms with peers have no error feedback, because the next difference of models contains
  // the error of the last one anyway. All-gathers have none, because they do not add: a residual
  // would only move the values away from those of their owner.
  plan.error_feedback = !row.exact && !row.talks_to_peers && collective != Collective::allgather &&
                        config.error_feedback.value_or(row.error_feedback);
  if (row.codec == kernels::Codec::quantized && row.takes_max_error)
    plan.max_error = config.max_error.value_or(0);
  if (row.has_argument()) {
    plan.hook = &kept_text(name.substr(name.find(':') + 1));
    plan.hook_option = &kept_text(
        (rule == nullptr ? config.written(Option::algorithm) + "=" : rule->where + ": ") + name);
  }
  plan.start = config.start.value_or(row.start);
  plan.needs_state =
      row.keeps_state || plan.error_feedback || plan.start != 0 ||
      (row.talks_to_peers && (config.interval != 1 || config.peers == Peers::shift_one));
  return plan;
}

// Returns the error text if these options exclude the algorithm of the options or, if `rule` is not
// null, of that row of the rules; otherwise "":
//   half bits         such as SLIMPI_BITS=2.5, which only the packed codec has
//   shift_one         changes the peers, whereas a replica belongs to one peer
//   SLIMPI_MAX_ERROR  unless the algorithm can guarantee it
std::string refuse_algorithm(const Config& config, const Rule* rule) {
  const std::string& name = rule == nullptr ? config.algorithm : rule->algorithm;
  const bool own_bits = rule != nullptr && rule->bits;
  const double bits = own_bits ? *rule->bits : config.bits;
  const std::string where = rule == nullptr ? "" : rule->where + ": ";
  const Algorithm* const row = find(name);
  if (bits != std::floor(bits) && name != "off" &&
      (row == nullptr || row->codec != kernels::Codec::packed))
    return where + (own_bits ? "bits " : config.written(Option::bits) + "=") +
           HalfBits{}.text(bits) + " cannot be combined with " + name + "; accepted: 1 to " +
           std::to_string(kernels::kMostBits) + " without a half, or the algorithm packed";
  if (row == nullptr) return "";
  if (row->talks_to_peers && row->keeps_state && config.peers == Peers::shift_one)
    return where + config.written(Option::peers) + "=shift_one cannot be combined with " + name +
           ", which needs the same peers at every call; accepted: ring, all";
  if (!config.max_error || row->takes_max_error) return "";
  std::string able;
  for (const Algorithm& other : all())
    if (other.takes_max_error) able += std::string(other.name) + ", ";
  return where + config.written(Option::max_error) + " cannot be combined with " + name +
         "; accepted: " + able + "auto, off";
}

// Returns an error text if two of these results would be written to the same file, because the
// later one would replace the earlier; otherwise "". A stream or a device can take several results.
std::string refuse_files(const Config& config) {
  const std::pair<Option, const std::optional<std::string>*> results[] = {
      {Option::report, &config.report},
      {Option::estimate, &config.estimate},
      {Option::trace, &config.trace}};
  const auto takes_both = [](const std::string& file) {
    return is_stream(file) || file.starts_with("/dev/");
  };
  for (std::size_t i = 0; i < std::size(results); ++i)
    for (std::size_t j = i + 1; j < std::size(results); ++j) {
      const auto& [option, file] = results[i];
      const auto& [other, same] = results[j];
      if (*file && *file == *same && !takes_both(**file))
        return config.written(option) + " and " + config.written(other) + " name the same file, " +
               **file + "; give each a file of its own";
    }
  return "";
}

Decision bypass(BypassReason reason) {
  Decision decision;
  decision.reason = reason;
  return decision;
}

}  // namespace

// Returns whether the rules apply. An info key of this communicator takes precedence, because it is
// more specific than SLIMPI_RULES, which is for the whole job.
bool rules_apply(const Config& config) {
  const auto of_communicator = [&](Option option) {
    return config.given[std::size_t(option)].source == Source::info;
  };
  return of_communicator(Option::rules) || !of_communicator(Option::algorithm);
}

Decision make_decision(const Config& config, const Rule* rule, Collective collective) {
  std::string wanted = config.algorithm;
  double bits = config.bits;
  if (!rules_apply(config)) rule = nullptr;
  if (rule != nullptr) {
    wanted = rule->algorithm;
    if (rule->bits) bits = *rule->bits;
    if (wanted == "off") return bypass(BypassReason::rule);
  }
  if (wanted == "off") return bypass(BypassReason::off);
  Decision decision;
  if (wanted == "auto") {
    decision.automatic = true;
    for (const Algorithm& row : all())
      if (row.tried_by_auto && (row.takes_max_error || !config.max_error))
        decision.plans.push_back(make_plan(config, row, row.name, rule, bits, collective));
  } else if (const Algorithm* const row = find(wanted); row != nullptr) {
    decision.plans.push_back(make_plan(config, *row, wanted, rule, bits, collective));
  }
  const auto cannot = [collective](const comm::Plan& plan) {
    return collective != Collective::allreduce &&
           (!plan.algorithm->functions->scatters || plan.max_error > 0);
  };
  std::erase_if(decision.plans, cannot);
  if (!config.calls.has(collective) || decision.plans.empty())
    return bypass(BypassReason::function);
  decision.take = true;
  return decision;
}

void keep_shorter(Decision& decision, int bits) {
  std::erase_if(decision.plans, [bits](const comm::Plan& plan) {
    const Algorithm& row = *plan.algorithm;
    if (row.sends_factors || row.has_argument()) return false;  // factors, or a hook's own messages
    // Keep this plan although it sends the values as they are, because it adds them in rank order,
    // which MPI does not guarantee.
    if (row.exact && plan.hierarchy == Hierarchy::flat) return false;
    kernels::Format format = plan.format;
    if (plan.max_error > 0) format = codec_at(format, codec_for_normal_values(plan.max_error));
    return kernels::value_bits(format) >= bits;
  });
  if (decision.take && decision.plans.empty()) decision = bypass(BypassReason::datatype);
}

std::string refuse(const Config& config, const Rules& rules) {
#ifndef WITH_NCCL
  if (config.intra == Intra::nccl)
    return config.written(Option::intra) +
           "=nccl is not in this build of slimpi; accepted: auto, shm, mpi";
#endif
  if (const std::string bad = refuse_algorithm(config, nullptr); !bad.empty()) return bad;
  if (const std::string bad = refuse_files(config); !bad.empty()) return bad;
  if (config.max_error && config.error_feedback.value_or(false))
    return config.written(Option::error_feedback) + "=1 cannot be combined with " +
           config.written(Option::max_error) +
           ", which bounds the error of each call by itself; unset SLIMPI_ERROR_FEEDBACK or "
           "SLIMPI_MAX_ERROR";
  if (!rules_apply(config)) return "";
  for (const Rule& rule : rules)
    if (const std::string bad = refuse_algorithm(config, &rule); !bad.empty()) return bad;
  return "";
}

std::string describe(const comm::Plan& plan) {
  std::string text = plan.algorithm->name + (plan.hook == nullptr ? "" : ":" + *plan.hook);
  if (plan.format.codec == kernels::Codec::quantized) {
    text += plan.max_error > 0 ? ", relative L2 error up to " + fmt::format("{:g}", plan.max_error)
                               : ", " + std::to_string(plan.format.bits) + " bits";
    text += ", ";
    text += plan.format.bucket == 0 ? "whole chunks"
                                    : "buckets of " + std::to_string(plan.format.bucket);
    text += plan.format.stochastic ? ", stochastic" : ", nearest";
  }
  if (plan.format.codec == kernels::Codec::packed)
    text += ", " + HalfBits{}.text(plan.format.bits / 2.0) + " bits";
  text += std::string(", ") + to_string(plan.hierarchy);
  return text + (plan.error_feedback ? ", error feedback" : "");
}

}  // namespace slimpi::algorithm
