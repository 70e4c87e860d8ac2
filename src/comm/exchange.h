// SPDX-License-Identifier: BSD-3-Clause
// Messages between the ranks of slimpi's own communicator by MPI, and the reporting of failures to
// all ranks.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/statistics.h"
#include "comm/message_trace.h"
#include "comm/node_layout.h"
#include "comm/point_to_point.h"
#include "comm/roll_call.h"

namespace slimpi::comm {

class Exchange final : public PointToPoint {
 public:
  Exchange(const mpi::Api& api, Statistics& statistics)
      : api_(api), statistics_(statistics), trace_(api), roll_call_(api) {}

  // Allocates what set_comm() needs for so many ranks: a rank that fails there could report it to
  // nobody.
  void reserve(int ranks) { failed_ranks_.reserve(std::size_t(ranks)); }
  // The communicator for messages, owned by the caller. Its error handler must return.
  // `number` is the same on all its ranks, and another one than those of other communicators of
  // this rank.
  void set_comm(mpi::Comm comm, int number = 0);

  // With `layout` it is known which messages go between nodes; only these are counted as sent.
  void set_layout(const NodeLayout* layout) { layout_ = layout; }

  using PointToPoint::wait;
  Status send(int to, Tag tag, const void* data, std::size_t bytes, mpi::Request& request) override;
  Status receive(int from, Tag tag, void* data, std::size_t bytes, mpi::Request& request) override;
  Status wait(mpi::Request& request, std::size_t* received) override;
  void progress() override;
  Status check() override;
  Status settle(Status status, std::span<mpi::Request> requests) override;

  // Counts bytes that this rank put between nodes. bytes_sent: all so far.
  void count_sent(std::uint64_t bytes) {
    sent_ += bytes;
    statistics_.count(&Counts::bytes_sent, bytes);
  }
  std::uint64_t bytes_sent() const { return sent_; }

  // To be called by all ranks before the first message of each call. A rank that fails may be
  // ahead of others by a call: its report then ends their next call, not this one.
  void begin_call() { ++call_; }

  // Reports a failure outside a schedule to all ranks, unless one was settled before. The text of
  // the failure stays; throws nothing.
  void report_failure(Status status);

  // Whether a report was received that ends this call.
  bool failure_reported() const { return reported_ != Status::ok && reported_call_ <= call_; }

  // Element-wise minimum and maximum over all ranks of the communicator; collective. Of values
  // below 2^63, as MPICH 4.0.2 compares MPI_UINT64_T as a signed type; of others, whether all are
  // the same can be found: then the maximum is the complement of the maximum of their complements.
  // In a call to which the ranks pass different counts, all get Status::disagreement, which names
  // them.
  Status all_min(std::span<std::uint64_t> values);
  Status all_max(std::span<std::uint64_t> values);

  // *flag becomes whether it is true on all ranks; as all_min. It is false after a failure, which
  // is not an answer of the ranks.
  Status all_true(bool* flag);

  // Element-wise sum over all ranks; collective. The last bits may differ between ranks. Counted as
  // sent.
  Status all_sum(std::span<double> values);

  // MPI's own sum over the communicator, for calls that MPI may not block, of elements of `width`
  // bytes; returns MPI's code. `in` may be MPI_IN_PLACE.
  int sum_by_mpi(const void* in, void* out, std::uint64_t count, mpi::Datatype type,
                 std::size_t width);

  // Of texts that all ranks but one leave empty, with zeros: all ranks get that one's. Collective.
  // What is not ASCII becomes a question mark.
  Status share_texts(std::span<char> texts);

  Exchange* exchange() override { return this; }

  // For a failure that all ranks know, at the same point of a call: rank 0 prints it, before an
  // error handler of any rank can end the job. Returns `status`. Collective.
  Status publish_disagreement(Status status);

  // Of a request that was started since the last settle: its stage, and the other rank, or -1.
  WaitStage stage_of(const mpi::Request& request) const;
  int peer_of(const mpi::Request& request) const;

  RollCall& roll_call() { return roll_call_; }
  void serve_roll_call() {
    if (comm_ != mpi::abi.comm_null) roll_call_.serve(comm_);
  }
  // Before the communicator is freed, or MPI ends.
  void drain_roll_call() {
    if (comm_ != mpi::abi.comm_null) roll_call_.drain(comm_);
  }

  const MessageTrace& trace() const { return trace_; }

  const mpi::Api& api() const { return api_; }
  mpi::Comm comm() const { return comm_; }

 private:
  struct Failure {
    std::uint64_t call;
    std::uint32_t status;
    char text[244];
  };

  template <typename Value>
  Status reduce(std::span<Value> values, mpi::Datatype type, mpi::Op op);
  Status agree(std::span<std::uint64_t> values, bool on_minimum);
  Status describe_counts(std::uint64_t most, std::uint64_t least);
  void send_failure(Status status, std::string_view text);
  bool receive_failure(int from = mpi::abi.any_source);
  bool receive_stray();
  void cancel_receives(std::span<mpi::Request> requests);
  void drain(std::span<mpi::Request> requests);
  void release_sends(std::span<mpi::Request> requests);
  bool finished(mpi::Request& request);
  int mpi_tag(Tag tag) const;
  Status mpi_failed(const char* what, int code) const;

  const mpi::Api& api_;
  mpi::Comm comm_ = mpi::abi.comm_null;
  int rank_ = 0, size_ = 0;   // in comm_
  std::uint64_t counts_ = 1;  // how many counts the tags of this MPI tell apart
  Statistics& statistics_;
  std::uint64_t sent_ = 0;
  const NodeLayout* layout_ = nullptr;

  // A message that was started. `request` points into the schedule's requests and is compared only.
  struct Started {
    const mpi::Request* request;
    MessageTrace::Message message;
  };
  void start(const mpi::Request& request, int peer, Tag tag, bool sent);
  const Started* find(const mpi::Request& request) const;
  bool is_send(const mpi::Request& request) const;
  // Every message since the last settle. A request may be in use again: the last entry counts.
  std::vector<Started> started_;
  MessageTrace trace_;
  std::uint64_t call_ = 0;  // calls that have begun
  Failure failure_{};       // what this rank reports; MPI may read it until the end of the process
  bool sent_failure_ = false;
  // By rank: reported a failure, and receives nothing any more. Sized with the communicator,
  // because after a failure there may be no memory.
  std::vector<bool> failed_ranks_;
  int failed_count_ = 0;
  // The report of the earliest call.
  Status reported_ = Status::ok;
  std::uint64_t reported_call_ = 0;
  std::chrono::steady_clock::time_point reported_at_;
  char reported_text_[FailureScope::kMost] = "";
  RollCall roll_call_;
  // What reduce() works on. After a failure it is left to MPI, which may still write there.
  std::unique_ptr<std::vector<std::uint64_t>> reduced_;
  std::vector<std::uint64_t> agreed_;  // what agree() works on
};

}  // namespace slimpi::comm
