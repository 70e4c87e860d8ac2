// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_ESTIMATE: MPI makes every call, and CallEstimate counts what slimpi would have done, as
// algorithm/policy.h decides.
#pragma once
#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "call/request.h"
#include "comm/communicator.h"
#include "mpi/api.h"
#include "observe/estimate.h"
#include "options/config.h"

namespace slimpi::call {

class Runtime;

class CallEstimate {
 public:
  // Returns the running object, which lives until the process ends, or null if SLIMPI_ESTIMATE is
  // unset or start() has not been called.
  static CallEstimate* running() { return running_.load(std::memory_order_acquire); }
  static void start(const mpi::Api& api, const Config& config);

  // Counts a call that MPI has made and that slimpi would leave to MPI in any case, for `reason`.
  void left(const Request& request, BypassReason reason, bool blocking,
            std::uint64_t nanoseconds) noexcept;
  // Counts a nonblocking or persistent call that slimpi would take. `nodes` is the number of nodes,
  // 0 while the ranks do not know it.
  void begun(const Request& request, int nodes) noexcept;
  // Forwards to MPI a call that slimpi would compress between `nodes` nodes, and counts it.
  int call_mpi(const Request& request, int nodes);

  // Returns the estimate for all calls so far. `job` describes the job.
  Estimate result(const Report& job) const;

 private:
  struct Key {
    std::size_t size_class = 0;
    bool empty = false;
    int ranks = 0;
    Collective collective = Collective::allreduce;
    mpi::Datatype type = mpi::abi.datatype_null;
    mpi::Op op = mpi::abi.op_null;
    bool blocking = true;
    std::optional<BypassReason> reason;
    int nodes = 0;  // 0: unknown
    auto operator<=>(const Key&) const = default;
  };
  struct Record {
    std::uint64_t calls = 0, bytes = 0, nanoseconds = 0;
  };

  CallEstimate(const mpi::Api& api, const Config& config)
      : api_(api), bucket_(config.bucket), min_size_(config.min_size) {}
  void add(const Request& request, Key key, std::uint64_t nanoseconds) noexcept;

  static inline std::atomic<CallEstimate*> running_{nullptr};

  const mpi::Api& api_;
  const std::uint64_t bucket_, min_size_;
  mutable std::mutex mutex_;  // protects all below
  std::map<Key, Record> records_;
};

// Counts a nonblocking or persistent sum for SLIMPI_ESTIMATE, and leaves it to MPI.
Outcome estimate_begun(Runtime& runtime, comm::Communicator& communicator, const Request& request);

}  // namespace slimpi::call
