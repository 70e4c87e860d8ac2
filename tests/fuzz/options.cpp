// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/options.h"

#include <cstdlib>
#include <cstring>

namespace fuzz {

namespace {
const char* variable(const std::string& name) {
  std::string spelled = "SLIMPI_";
  for (const char c : name) spelled += c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
  const char* const value = std::getenv(spelled.c_str());
  return value == nullptr ? "" : value;
}

// Every node's ranks stay together only where the nodes do not change from one communicator to the
// next: FUZZ_NODES=fixed leaves SLIMPI_RANKS_PER_NODE as it is.
bool fixed_nodes() {
  const char* const nodes = std::getenv("FUZZ_NODES");
  return nodes != nullptr && std::strcmp(nodes, "fixed") == 0;
}
}  // namespace

void Options::set(const std::string& name, const std::string& value) {
  if (name == "algorithm") algorithm = value;
  if (name == "hierarchy") hierarchy = value;
  if (name == "rounding") rounding = value;
  if (name == "max_error") max_error = value;
  if (name == "error_feedback") error_feedback = value;
  const auto number = [&](const char* option, std::uint64_t& field) {
    if (name == option) field = std::strtoull(value.c_str(), nullptr, 10);
  };
  number("bits", bits);
  number("bucket", bucket);
  number("min_size", min_size);
  number("ranks_per_node", ranks_per_node);
  number("start", start);
}

Options Options::from_environment() {
  Options options;
  for (const char* name : {"algorithm", "hierarchy", "rounding", "max_error", "error_feedback",
                           "bits", "bucket", "min_size", "ranks_per_node", "start"})
    if (const char* const value = variable(name); *value != '\0') options.set(name, value);
  return options;
}

bool Options::keeps_error() const {
  return error_feedback.empty() ? low_rank() : error_feedback == "1";
}

void Options::draw_codec(Draws& draws, Keys& keys) {
  const bool feedback = draws.one_in(5), nearest = draws.one_in(2), bounded = draws.one_in(8);
  // With few bits, the residuals of error feedback may grow from call to call.
  keys.push_back({"bits", std::to_string(feedback ? 4 + draws.below(13) : 1 + draws.below(16))});
  keys.push_back({"bucket", draws.among({"64", "100", "512", "2048", "4096", "0", "65536"})});
  if (draws.one_in(2)) keys.push_back({"rounding", nearest ? "nearest" : "stochastic"});
  keys.push_back({"error_feedback", feedback && !decentralized() && !low_rank() ? "1" : "0"});
  const bool quantizes = algorithm == "bytegrad" || algorithm == "qsgd";
  keys.push_back({"max_error", quantizes && bounded && !feedback ? "0.01" : ""});
}

MPI_Info Options::draw(Draws& draws) {
  Keys keys;
  const char* const drawn =
      draws.among({"bytegrad", "bytegrad", "bytegrad", "bytegrad", "qsgd", "qsgd", "packed",
                   "packed", "fp16", "bf16", "allreduce", "auto", "off", "decentralized",
                   "low_precision_decentralized", "powersgd", "batched_powersgd"});
  algorithm = drawn;
  keys.push_back({"algorithm", algorithm});
  draw_codec(draws, keys);
  keys.push_back({"hierarchy", draws.among({"auto", "flat", "leader", "sharded"})});
  keys.push_back({"min_size", draws.among({"0", "0", "4", "20000", "65536"})});
  const std::string per_node = draws.among({"1", "1", "2", "2", "3", "4", "0"});
  if (!fixed_nodes()) keys.push_back({"ranks_per_node", per_node});
  keys.push_back({"peers", draws.among({"ring", "all"})});
  keys.push_back({"powersgd_rank", draws.among({"1", "2", "5"})});
  keys.push_back({"start", low_rank() || !draws.one_in(10) ? "0" : "2"});
  keys.push_back({"verify", draws.among({"0", "0", "1", "3"})});
  MPI_Info info;
  MPI_Info_create(&info);
  // MPI has no empty values; a blank one unsets an option.
  for (const auto& [name, value] : keys) {
    set(name, value);
    MPI_Info_set(info, ("slimpi_" + name).c_str(), value.empty() ? " " : value.c_str());
  }
  return info;
}

Scheme Options::scheme() const {
  Scheme scheme;
  // The other candidates of auto, except packed, are more exact than bytegrad.
  scheme.algorithm = algorithm == "auto" ? "bytegrad" : algorithm;
  scheme.bits = int(bits);
  scheme.bucket = algorithm == "packed" ? 64 : bucket;  // packed has buckets of its own
  scheme.stochastic = rounding.empty() ? algorithm == "qsgd" : rounding == "stochastic";
  scheme.flat = flat();
  scheme.leader = hierarchy == "leader";
  return scheme;
}

std::string Options::text() const {
  std::string text = algorithm + ", " + std::to_string(bits) + " bits, buckets of " +
                     std::to_string(bucket) + ", " + hierarchy + ", " +
                     std::to_string(ranks_per_node) + " ranks a node, from " +
                     std::to_string(min_size) + " bytes";
  if (!rounding.empty()) text += ", " + rounding;
  if (keeps_error()) text += ", error feedback";
  if (!max_error.empty()) text += ", error up to " + max_error;
  if (start != 0) text += ", from call " + std::to_string(start + 1);
  return text;
}

}  // namespace fuzz
