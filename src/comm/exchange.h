// SPDX-License-Identifier: BSD-3-Clause
// Sends and receives slimpi's messages, by MPI on a communicator of slimpi's own. Also spreads the
// failure of one rank to all ranks, so that none of them waits for a message that never comes.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "comm/message_trace.h"
#include "comm/node_layout.h"
#include "comm/point_to_point.h"
#include "comm/roll_call.h"
#include "comm/wait_policy.h"
#include "mpi/api.h"
#include "observe/statistics.h"

namespace slimpi::comm {

// A word that the ranks compare. all_max() of the word and of its complement gives each rank the
// largest word and the complement of the smallest, and so tells whether all words are the same.
struct ComparedWord {
  static ComparedWord of(std::uint64_t word) { return {{word, ~word}}; }
  bool same() const { return words[0] == ~words[1]; }

  std::array<std::uint64_t, 2> words{0, ~std::uint64_t(0)};
};

// slimpi's own communicator, for messages of a communicator of the program. Several exchanges share
// it: that of the program's communicator, and one per persistent sum. Each rank may start
// persistent sums in its own order, so each exchange has a channel (a part of the tags), and sums
// of different channels run side by side. A failure ends all channels, because messages of the
// failed sum may still arrive.
class InternalComm {
 public:
  // Takes ownership of `comm`, whose error handler must return.
  InternalComm(const mpi::Api& api, mpi::Comm comm);
  // Frees the communicator, unless a call failed: its context id is then never reused.
  ~InternalComm();
  InternalComm(const InternalComm&) = delete;
  InternalComm& operator=(const InternalComm&) = delete;

  // Keeps the communicator from being freed, because MPI has ended or is about to.
  void abandon() { abandoned = true; }

  // Returns the first channel from `least` on that no exchange of this rank uses, or -1.
  int free_channel(int least);

  // Tags are divided into rows of kTags, one tag for each use of a message. channels() returns how
  // many channels this MPI's tags allow, rows_of() the number of rows of a channel, and first_row()
  // its first row. Sums with different counts mostly use different rows; see Exchange::mpi_tag().
  int channels() const { return channels_; }
  std::uint64_t rows_of(int channel) const { return channel == 0 ? rows_ / 2 : other_rows_; }
  std::uint64_t first_row(int channel) const {
    return channel == 0 ? 0 : rows_ / 2 + std::uint64_t(channel) * other_rows_;
  }

  // Guards the members below that change, because channels run in different threads, and probes for
  // messages that any channel may receive. A thread that holds it never leaves a fiber
  // (base/fiber.h).
  std::recursive_mutex mutex;

  // With ULFM, check_revoked() fails if the program's communicator was revoked, and
  // check_processes() also fails if a rank was lost. In both cases ranks that have noticed it have
  // left the sum, and the others must not wait for them. check_processes() asks MPI at most ten
  // times a second. The caller holds the mutex.
  Status check_revoked() const {
    return user == mpi::abi.comm_null ? Status::ok : mpi::check_revoked(user);
  }
  Status check_processes();

  const mpi::Api& api;
  mpi::Comm comm;
  // The program's communicator, or MPI_COMM_NULL once the program has freed it.
  mpi::Comm user = mpi::abi.comm_null;
  int rank = 0, size = 0;
  bool abandoned = false;  // see abandon()
  std::set<int> used_channels;
  // Set once a call has failed after messages were sent, so that no other call may follow. May be
  // read without the mutex.
  std::atomic<bool> failed{false};
  std::atomic<Status> failed_by{Status::mpi};  // the status of later calls: that of the failed call
                                               // if it is rank_failed or revoked
  RollCall roll_call;

  // A failure report as ranks send it.
  struct Failure {
    std::uint64_t call;
    std::uint32_t status, channel;
    char text[240];
  };
  // This rank's report until it is sent. From then on MPI owns it until the process ends.
  std::unique_ptr<Failure> failure = std::make_unique<Failure>();
  const Failure* sent = nullptr;  // this rank's report once it was sent
  // Has, for each rank, whether the rank has reported a failure, after which it receives nothing.
  // The constructor sets the size, because after a failure there may be no memory.
  std::vector<bool> failed_ranks;
  std::atomic<int> failed_count{0};
  // The received report of the earliest call. `reported` is set last, and also read without the
  // mutex.
  std::atomic<Status> reported{Status::ok};
  std::uint64_t reported_call = 0;
  std::uint32_t reported_channel = 0;
  std::chrono::steady_clock::time_point reported_at;
  char reported_text[FailureScope::kMost] = "";

 private:
  std::chrono::steady_clock::time_point looked_at_{};  // in check_processes()
  std::uint64_t rows_ = 0, other_rows_ = 1;            // of all channels, of each channel but 0
  int channels_ = 1;
};

class Exchange final : public PointToPoint {
 public:
  Exchange(const mpi::Api& api, Statistics& statistics)
      : api_(api), statistics_(statistics), trace_(api) {}
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Opens the exchange, whose messages go through `internal`. `channel` and `number` are the same
  // on all ranks; the channel is unique in `internal`, and the number in this process. The
  // program's communicator has channel 0 and the number of mpi::make_internal(); a persistent sum
  // has those that find_channel() in call/persistent.cpp finds.
  void open(std::shared_ptr<InternalComm> internal, int channel, int number);
  void close();
  const std::shared_ptr<InternalComm>& internal() const { return internal_; }

  // Sets the longest wait, from the communicator's SLIMPI_TIMEOUT; 0: no limit.
  void set_timeout(std::chrono::seconds timeout) { timeout_ = timeout; }
  std::chrono::seconds timeout() const { return timeout_; }

  // Sets the layout, so that only messages between nodes are counted as sent.
  void set_layout(const NodeLayout* layout) { layout_ = layout; }

  // As long as an object of this class lives, the exchange does not count bytes as sent.
  class Uncounted {
   public:
    explicit Uncounted(Exchange& exchange)
        : exchange_(exchange), layout_(std::exchange(exchange.layout_, nullptr)) {}
    ~Uncounted() { exchange_.layout_ = layout_; }
    Uncounted(const Uncounted&) = delete;
    Uncounted& operator=(const Uncounted&) = delete;

   private:
    Exchange& exchange_;
    const NodeLayout* const layout_;
  };

  using PointToPoint::wait;
  Status send(int to, Tag tag, const void* data, std::size_t bytes, mpi::Request& request) override;
  Status receive(int from, Tag tag, void* data, std::size_t bytes, mpi::Request& request) override;
  Status wait(mpi::Request& request, std::size_t* received) override;
  void progress() override;
  Status check() override;
  Status settle(Status status, std::span<mpi::Request> requests) override;

  // Counts bytes that this rank has sent to other nodes. bytes_sent() returns their total so far.
  void count_sent(std::uint64_t bytes) {
    sent_ += bytes;
    statistics_.count(&Counts::bytes_sent, bytes);
  }
  std::uint64_t bytes_sent() const { return sent_; }

  // Counts a call, on all ranks before its first message. A rank that fails may be a call ahead of
  // the others; its report then ends their next call instead of the present one.
  void begin_call() { ++call_; }

  // Reports a failure outside a schedule to all ranks, unless this rank has already reported one.
  // Keeps this thread's failure text, and does not throw.
  void report_failure(Status status);

  // Returns whether a received report ends this call.
  bool failure_reported() const {
    if (internal_ == nullptr || internal_->reported == Status::ok) return false;
    const std::lock_guard lock(internal_->mutex);
    return internal_->reported_channel != std::uint32_t(channel_) ||
           internal_->reported_call <= call_;
  }

  // Compute the element-wise minimum or maximum over all ranks of the communicator; collective. If
  // the ranks pass different numbers of values, all get Status::disagreement, whose text has these
  // numbers.
  Status all_min(std::span<std::uint64_t> values);
  Status all_max(std::span<std::uint64_t> values);

  // Sets *flag to whether all ranks passed true; collective, like all_min(). After a failure *flag
  // is false, whatever the ranks passed.
  Status all_true(bool* flag);

  // Sets *same to whether all ranks passed the same word; collective, like all_min().
  Status all_same(std::uint64_t word, bool* same);

  // Computes the element-wise sum over all ranks, with the same result on all of them; collective.
  // The bytes of this sum are counted as sent.
  Status all_sum(std::span<double> values);

  // Runs an MPI collective in its nonblocking form and polls until it is complete, so that the
  // thread never blocks in MPI. Returns MPI's code. start(communicator, request) posts the
  // collective. Each channel but 0 uses a communicator of its own for this, which is made at its
  // first use. The wait continues even after a failure of slimpi, because MPI may still use the
  // buffers.
  using StartByMpi = std::function<int(mpi::Comm, mpi::Request*)>;
  int make_by_mpi(const StartByMpi& start);

  // Runs an allreduce of any number of elements of `width` bytes through make_by_mpi(). `in` may be
  // MPI_IN_PLACE.
  int sum_by_mpi(const void* in, void* out, std::uint64_t count, mpi::Datatype type,
                 std::size_t width);

  // Makes the request that the program holds for a persistent sum: a persistent receive of an empty
  // message. complete() sends this message from this rank to itself. Returns MPI's code.
  int make_completion(mpi::Request* request);
  void complete();

  // Gives all ranks the same texts. For each text, one rank passes the text and the others pass
  // zeros. Characters that are not ASCII become question marks. Collective.
  Status share_texts(std::span<char> texts);

  Exchange* exchange() override { return this; }

  // Fails after all ranks have found that their values for `name` differ. The text shows `remedy`,
  // and the `text` of rank 0 and of the first rank whose `value` differs from rank 0's. Rank 0
  // prints the error. Collective.
  Status fail_for_difference(const std::string& name, const std::string& value,
                             const std::string& text, const std::string& remedy);

  // Publishes a failure that all ranks know at the same point of a call: rank 0 prints it before an
  // error handler of any rank can end the job. Returns `status`. Collective.
  Status fail_on_all_ranks(Status status);

  // Return the stage of a request started since the last settle(), and the peer of its message or
  // -1.
  WaitStage stage_of(const mpi::Request& request) const;
  int peer_of(const mpi::Request& request) const;

  // Returns when the message of a request should be complete, for a thread that waits from `now`
  // on; 0 if the request belongs to no schedule.
  ArrivalRate::Time due(const mpi::Request& request, ArrivalRate::Time now) const;

  RollCall& roll_call() { return internal_->roll_call; }
  void serve_roll_call() {
    const std::lock_guard lock(internal_->mutex);
    internal_->roll_call.serve(internal_->comm);
  }
  // Receives and drops the notes of the roll call that have arrived. Called before MPI ends.
  void drain_roll_call() {
    if (internal_ == nullptr) return;
    const std::lock_guard lock(internal_->mutex);
    internal_->roll_call.drain(internal_->comm);
  }

  // Returns whether MPI may still read or write messages of a failed call. The caller must then
  // never reuse or free the memory of these messages.
  bool memory_left() const { return memory_left_; }

  const MessageTrace& trace() const { return trace_; }

  const mpi::Api& api() const { return api_; }
  mpi::Comm comm() const { return internal_ == nullptr ? mpi::abi.comm_null : internal_->comm; }
  int channel() const { return channel_; }

 private:
  // How many words the first message of every agreement has (all_min() and the like). This number
  // is fixed, so that the first messages of ranks in different calls match; the ranks then see the
  // difference and fail.
  static constexpr std::size_t kAgreed = 16;

  Status spread_maxima(std::span<std::uint64_t> words);
  Status pass_words(int to, int from, std::size_t count);
  Status move_words(std::span<std::uint64_t> words, int to, int from);
  Status agree(std::span<std::uint64_t> values, bool on_minimum);
  Status fail_for_sums(std::uint64_t most, std::uint64_t least);
  void send_failure(Status status, std::string_view text);
  bool receive_failure(int from = mpi::abi.any_source);
  bool receive_stray();
  void cancel_receives(Status status, std::span<mpi::Request> requests);
  void drain(Status status, std::span<mpi::Request> requests);
  void release(Status status, std::span<mpi::Request> requests);
  bool finished(mpi::Request& request);
  int mpi_tag(Tag tag) const;
  Status mpi_failed(const char* what, int code) const;

  const mpi::Api& api_;
  std::shared_ptr<InternalComm> internal_;
  int channel_ = 0;
  std::chrono::seconds timeout_{0};
  int rank_ = 0, size_ = 0;                   // this rank, and the number of ranks
  mpi::Comm sums_comm_ = mpi::abi.comm_null;  // of make_by_mpi() in channels other than 0
  Statistics& statistics_;
  std::uint64_t sent_ = 0;
  const NodeLayout* layout_ = nullptr;

  // A message that was started. Of `request` only the address is used.
  struct Started {
    const mpi::Request* request;
    std::size_t bytes;
    MessageTrace::Message message;
  };
  void start(const mpi::Request& request, int peer, Tag tag, std::size_t bytes, bool sent);
  const Started* find(const mpi::Request& request) const;
  bool is_send(const mpi::Request& request) const;
  // All messages since the last settle(). If a request was reused, find() takes its last entry.
  std::vector<Started> started_;
  MessageTrace trace_;
  ArrivalRate arrivals_;  // the rate of messages to this rank
  bool memory_left_ = false;
  std::uint64_t call_ = 0;  // calls begun
  // The words of the present agreement, those to send before those received. After a failure the
  // memory is left to MPI, which may still use it.
  std::unique_ptr<std::vector<std::uint64_t>> passed_;
  mpi::Request agreement_[2] = {mpi::abi.request_null, mpi::abi.request_null};
  int agrees_with_ = -1;               // the peer of the agreement_ that is waited for
  std::vector<std::uint64_t> agreed_;  // the words of agree() and all_sum()
};

}  // namespace slimpi::comm
