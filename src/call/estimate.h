// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_ESTIMATE: every call goes to MPI. This records the calls, what policy would do with them,
// their time inside MPI, and how well the codec does on samples of the program's own buffers. The
// tools predict from the record.
#pragma once
#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "call/entry.h"
#include "comm/communicator.h"
#include "observe/estimate.h"

namespace slimpi::call {

class CallEstimate {
 public:
  // The running one; null while SLIMPI_ESTIMATE is unset. Once started it lives for ever. The
  // options say for which network and how many nodes it predicts.
  static CallEstimate* running() { return running_.load(std::memory_order_acquire); }
  static void start(const mpi::Api& api, const Config& config);

  // How slimpi would do a sum, and how it is sampled.
  struct Way {
    int nodes = 0, ranks = 0, group_size = 0, shards = 1;
    bool flat = false;
    std::uint32_t bucket = 512;
    bool stochastic = false;
    bool blocking = true;
    auto operator<=>(const Way&) const = default;
  };

  // Records a call that MPI has done in this time, and that is bypassed also without
  // SLIMPI_ESTIMATE.
  void record(const Allreduce& call, BypassReason reason, std::uint64_t nanoseconds) noexcept;

  // Lets MPI do a call that slimpi would compress: with the options of the job, or for `datatype`,
  // if SLIMPI_TYPES named the type. Samples its input before, records it after. The reason is for
  // the trace, too.
  int call_mpi(const Allreduce& call, BypassReason reason, const Way& way);

  // Records a nonblocking or persistent allreduce, whose time is not known.
  void nonblocking(const Allreduce& call) noexcept;

  // The same before MPI begins one that slimpi would compress; the reason is as for call_mpi().
  void nonblocking(const Allreduce& call, BypassReason reason, Way way) noexcept;

  // How slimpi would do this plan on the communicator, whose nodes are known: on as many nodes as
  // SLIMPI_NODES says for a communicator of `world_size` ranks, else on its own. Empty on one node,
  // and where ranks that have not met know too little.
  std::optional<Way> way_of(comm::Communicator& communicator, const comm::Plan& plan,
                            int world_size) const;

  // All calls so far. `job`: what describes the job.
  Estimate result(const Report& job) const;

 private:
  struct Key {
    std::uint64_t bytes = 0;
    int ranks = 0;
    mpi::Datatype type = mpi::abi.datatype_null;
    mpi::Op op = mpi::abi.op_null;
    bool blocking = true;
    int reason = -1;  // -1: compressed
    Way way;
    auto operator<=>(const Key&) const = default;
  };
  struct Sample {
    ByEstimatedBits error{}, encode{}, decode{};  // seconds per byte of floats
    bool valid = false;
  };
  struct Record {
    std::uint64_t calls = 0, bytes = 0, nanoseconds = 0, least = UINT64_MAX, samples = 0,
                  unheld = 0;
    ByEstimatedBits error_sum{};
  };

  CallEstimate(const mpi::Api& api, const Config& config);
  Key key_of(const Allreduce& call, bool blocking) const;
  void sample(const Allreduce& call, BypassReason reason, const Way& way) noexcept;
  void record(const Allreduce& call, BypassReason reason, const Way& way,
              std::uint64_t nanoseconds) noexcept;
  Key key_of_prediction(const Allreduce& call, BypassReason reason, const Way& way) const;
  void add_call(const Key& key, std::uint64_t nanoseconds) noexcept;
  // Both need mutex_.
  Key shared_row(Key key) const;
  void add_sample(Record& record, const Sample& sample);
  static Sample sample_of(const float* values, std::uint64_t count, const Way& way);

  // Distinct sizes, communicators, types and operations that are kept apart.
  static constexpr std::size_t kMost = 4096;
  static inline std::atomic<CallEstimate*> running_{nullptr};

  const mpi::Api& api_;
  const double wire_;                 // bits per second of a node's link; 0: not known
  const int nodes_, ranks_per_node_;  // nodes: 0: those of the job
  mutable std::mutex mutex_;          // protects all below
  std::map<Key, Record> records_;
  std::uint64_t merged_ = 0, sampling_nanoseconds_ = 0;
  bool timed_codec_ = false;
  ByEstimatedBits encode_{}, decode_{};  // seconds per byte of floats: the fastest samples
};

}  // namespace slimpi::call
