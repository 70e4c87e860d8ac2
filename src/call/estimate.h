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
  // The running one; null while SLIMPI_ESTIMATE is unset. Once started it lives for ever.
  static CallEstimate* running() { return running_.load(std::memory_order_acquire); }
  static void start(const mpi::Api& api, const Config& config);

  // How slimpi would do a sum (as CountedWay), and how it is sampled.
  struct Way {
    int nodes = 0, shards = 1;
    Hierarchy hierarchy = Hierarchy::automatic;  // automatic: there is no way
    std::uint32_t bucket = 512;
    bool stochastic = false;
    auto operator<=>(const Way&) const = default;
  };
  // For this plan on the communicator, between as many nodes as this rank knows of.
  static Way way_of(comm::Communicator& communicator, const comm::Plan& plan);
  // Why the report counts the call as left to MPI; datatype: SLIMPI_TYPES does not name its type,
  // so that it is only predicted.
  static BypassReason reason_of(comm::Communicator& communicator, const Allreduce& call,
                                const Way& way);

  // Records a call that MPI has done in this time, and that is bypassed also without
  // SLIMPI_ESTIMATE.
  void record(const Allreduce& call, BypassReason reason, std::uint64_t nanoseconds) noexcept;

  // Lets MPI do a call that policy takes: with the options of the job, or for `datatype`, if
  // SLIMPI_TYPES named the type. Samples its input before, records it after. The reason is for the
  // trace, too.
  int call_mpi(const Allreduce& call, BypassReason reason, const Way& way);

  // Records a nonblocking or persistent allreduce, whose time is not known.
  void nonblocking(const Allreduce& call) noexcept;

  // The same before MPI begins one that policy takes; the reason is as for call_mpi().
  void nonblocking(const Allreduce& call, BypassReason reason, const Way& way) noexcept;

  // All calls so far. `job`: what describes the job.
  Estimate result(const Report& job) const;

 private:
  struct Key {
    std::uint64_t bytes = 0;
    int ranks = 0;
    mpi::Datatype type = mpi::abi.datatype_null;
    mpi::Op op = mpi::abi.op_null;
    bool blocking = true;
    int reason = -1;  // -1: policy takes it
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

  CallEstimate(const mpi::Api& api, int ranks_per_node)
      : api_(api), ranks_per_node_(ranks_per_node) {}
  Key key_of(const Allreduce& call, bool blocking) const;
  Key key_of(const Allreduce& call, bool blocking, BypassReason reason, const Way& way) const;
  void sample(const Allreduce& call, const Key& key) noexcept;
  void add_call(const Key& key, std::uint64_t nanoseconds) noexcept;
  // Both need mutex_.
  Key shared_row(Key key) const;
  void add_sample(Record& record, const Sample& sample);
  static Sample sample_of(const float* values, std::uint64_t count, const Way& way);

  // Distinct sizes, communicators, types and operations that are kept apart.
  static constexpr std::size_t kMost = 4096;
  static inline std::atomic<CallEstimate*> running_{nullptr};

  const mpi::Api& api_;
  const int ranks_per_node_;
  mutable std::mutex mutex_;  // protects all below
  std::map<Key, Record> records_;
  std::uint64_t merged_ = 0, sampling_nanoseconds_ = 0;
  bool timed_codec_ = false;
  ByEstimatedBits encode_{}, decode_{};  // seconds per byte of floats: the fastest samples
};

}  // namespace slimpi::call
