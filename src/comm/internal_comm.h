// SPDX-License-Identifier: BSD-3-Clause
// One internal communicator, as all its exchanges share it: that of the program's communicator,
// and one more for each of its persistent sums, which may be started in another order on every
// rank. An exchange has its own channel, which is a part of the tags of its messages, so sums of
// different channels run side by side. A failure ends all channels: messages of the failed sum may
// still arrive.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "base/status.h"
#include "comm/roll_call.h"
#include "mpi/api.h"

namespace slimpi::comm {

class InternalComm {
 public:
  // Owns `comm`, whose error handler must return.
  InternalComm(const mpi::Api& api, mpi::Comm comm);
  // Frees the communicator, unless a call failed: then its context id is never used again.
  ~InternalComm();
  InternalComm(const InternalComm&) = delete;
  InternalComm& operator=(const InternalComm&) = delete;

  // MPI has ended, or is ending: nothing may be freed any more.
  void abandon() { comm = mpi::abi.comm_null; }

  // The first channel from `least` on that no exchange of this rank uses; -1: there is none.
  int free_channel(int least) const;

  // How many channels the tags of this MPI can tell apart, and how many counts in each of them; see
  // Exchange::mpi_tag().
  int channels() const { return channels_; }
  std::uint64_t counts(int channel) const { return channel == 0 ? rows_ / 2 : counts_; }
  std::uint64_t first_row(int channel) const {
    return channel == 0 ? 0 : rows_ / 2 + std::uint64_t(channel) * counts_;
  }

  // Channels run in different threads. Whoever probes for a message that any of them may receive,
  // and whoever uses what follows, holds it; nobody leaves a fiber with it.
  std::recursive_mutex mutex;

  const mpi::Api& api;
  mpi::Comm comm;
  int rank = 0, size = 0;
  std::set<int> used_channels;
  bool failed = false;  // a call failed after messages were sent; no other call may follow
  RollCall roll_call;

  // What a rank reports that failed.
  struct Failure {
    std::uint64_t call;
    std::uint32_t status, channel;
    char text[240];
  };
  // Of this rank, until it is sent: then MPI owns it, until the end of the process.
  std::unique_ptr<Failure> failure = std::make_unique<Failure>();
  // By rank: reported a failure, and receives nothing any more. Sized at the construction, because
  // after a failure there may be no memory.
  std::vector<bool> failed_ranks;
  int failed_count = 0;
  // The report of the earliest call.
  Status reported = Status::ok;
  std::uint64_t reported_call = 0;
  std::uint32_t reported_channel = 0;
  std::chrono::steady_clock::time_point reported_at;
  char reported_text[FailureScope::kMost] = "";

 private:
  std::uint64_t rows_ = 0, counts_ = 1;
  int channels_ = 1;
};

}  // namespace slimpi::comm
