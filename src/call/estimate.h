// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_ESTIMATE: every call goes to MPI. This records the calls, what policy would do with them,
// their time inside MPI, and how well the codec does on samples of the program's own buffers.
#pragma once
#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "call/entry.h"
#include "comm/communicator.h"
#include "inter/cost_model.h"
#include "policy/policy.h"

namespace slimpi::call {

class CallEstimate {
 public:
  // The running one; null while SLIMPI_ESTIMATE is unset. Once started it lives for ever. The
  // options say for which network and how many nodes it predicts.
  static CallEstimate* running() { return running_.load(std::memory_order_acquire); }
  static void start(const mpi::Api& api, const Config& config);

  // How slimpi would do a sum: what the bytes and the time of a compressed call depend on.
  struct Way {
    int nodes = 0, ranks = 0, group_size = 0, shards = 1;
    bool flat = false;
    std::uint32_t bucket = 2048;
    bool stochastic = false;
    auto operator<=>(const Way&) const = default;
  };

  // How slimpi would do this plan on the communicator, whose nodes are known: on as many nodes as
  // SLIMPI_NODES says for a communicator of `world_size` ranks, else on its own. Empty on one node,
  // and where ranks that have not met know too little.
  std::optional<Way> way_of(comm::Communicator& communicator, const comm::Plan& plan,
                            int world_size) const;

  // Lets MPI do a call that slimpi would compress.
  int call_mpi(const Allreduce& call, const Way& way);
  // Records a nonblocking one, whose time is not known, before MPI begins it.
  void begins(const Allreduce& call, const Way& way) noexcept;

  // Records a call that MPI has done in this time, and would do without SLIMPI_ESTIMATE, too.
  void left(const Allreduce& call, BypassReason reason, std::uint64_t nanoseconds) noexcept;
  // The same of one that MPI has begun.
  void left_begun(const Allreduce& call) noexcept;

  // What all calls so far come to. `job`: what describes the job.
  Estimate result(const Report& job) const;

 private:
  // What the calls of a row have in common, in the order of the table: what would be compressed,
  // and of it the longest buffers, comes first.
  struct Key {
    std::optional<BypassReason> reason;  // empty: compressed
    std::size_t below = 0;               // kSizeClasses less the size class
    int ranks = 0;
    std::string_view type, op;  // literals
    bool nonblocking = false, empty = false;
    Way way;  // of a compressed one
    auto operator<=>(const Key&) const = default;
  };
  // Of a sample: seconds per byte of floats.
  struct Sample {
    std::array<double, kEstimatedWidths> error{}, encode{}, decode{};
    bool valid = false;
  };

  CallEstimate(const mpi::Api& api, const Config& config);
  std::uint64_t buffer_bytes(const Allreduce& call) const;
  Key key_of(const Allreduce& call, bool blocking, std::optional<BypassReason> reason,
             const Way& way) const;
  EstimateRow& find_row(const Key& key);
  void record(const Allreduce& call, const Key& key, std::uint64_t nanoseconds) noexcept;
  void sample(const Allreduce& call, const Key& key) noexcept;
  static Sample sample_of(const std::vector<float>& values, const Way& way);
  void add_sample(EstimateRow& row, const Sample& sample);
  void predict(const Way& way, EstimateRow& row) const;

  static inline std::atomic<CallEstimate*> running_{nullptr};

  const mpi::Api& api_;
  const double wire_;                 // bits per second of a node's link; 0: not known
  const int nodes_, ranks_per_node_;  // nodes: 0: those of the job
  mutable std::mutex mutex_;          // protects all below
  std::map<Key, EstimateRow> rows_;
  std::uint64_t sampling_nanoseconds_ = 0;
  cost::Constants constants_;  // encode and decode: the fastest seen
  bool timed_codec_ = false;
};

}  // namespace slimpi::call
