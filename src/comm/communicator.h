// SPDX-License-Identifier: BSD-3-Clause
// slimpi's state of one of the program's communicators: an internal communicator for messages, the
// options that apply, and the node layout. It is kept in an attribute of the program's communicator
// and destroyed with it; a persistent sum owns a Communicator of its own. Scratch memory is shared
// among communicators (memory.h).
//
// A Communicator has no lock, because only one thread at a time uses it: MPI lets one thread call
// collectives on a communicator. This thread first waits for the nonblocking sums, and while it
// begins one, it keeps other threads out of the fibers (HoldFibers in call/queue.h). InternalComm,
// which the communicator shares with its persistent sums, has a mutex.
#pragma once
#include <atomic>
#include <chrono>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/call.h"
#include "comm/exchange.h"
#include "comm/node_layout.h"
#include "comm/tensor_state.h"
#include "mpi/internal_comm.h"
#include "observe/activity.h"

namespace slimpi::comm {

// Base of the data that another layer, such as src/inter, keeps for a communicator. The
// communicator owns one object of each derived type, which attachment<Type>() makes at its first
// use.
class Attachment {
 public:
  Attachment() = default;
  virtual ~Attachment() = default;
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  // Called on all ranks after options of some rank have changed. Must not communicate.
  virtual void options_changed() {}

  // Called on all ranks before the nodes are found again. May communicate.
  virtual void layout_changed() {}

  // Called before MPI ends, to drop all MPI handles without freeing them.
  virtual void abandon() {}
};

// How far this rank has come with a communicator. docs/PROTOCOLS.md says what the ranks do in each
// phase, and kTransitions in communicator.cpp lists the possible changes.
enum class Life : std::uint8_t {
  fresh,       // this rank has sent nothing
  refused,     // this rank left a sum to MPI and told the others, which may wait in slimpi
  connecting,  // the ranks are making the internal communicator
  connected,   // internal communicator made; options are compared before the next sum
  agreed,      // all have the same options
  laid_out,    // agreed, and all know their nodes
  outdated,    // laid out, but options are compared again before the next sum
  unusable,    // no room for internal communicators: every sum goes to MPI, on all ranks
  failed       // no internal communicator; ranks learn that at different times, so every sum fails
};

// Counts the nonblocking sums of a communicator. All ranks begin them in the same order, but may
// learn at different times that all have the same options. If some rank began a sum before it knew
// that, the sum is undecided: its fiber (base/fiber.h) decides whether slimpi takes it, whereas any
// other sum is decided where it begins.
class NonblockingSums {
 public:
  // Counts a sum that slimpi may take, when it begins. Returns its number, from 1 on.
  std::uint64_t begin() { return ++begun_; }
  // Returns whether any sum has begun, which may already be making the internal communicator.
  bool any() const { return begun_ != 0; }
  // Returns whether each rank, when it began this sum, knew that all ranks have the same options.
  bool began_agreed(std::uint64_t number) const { return number > undecided_; }
  // Returns whether some rank began the next sum before it knew that all ranks have the same
  // options.
  bool next_is_undecided() const { return begun_ < undecided_; }
  // Counts a fiber that has ended. Returns whether it was that of the last undecided sum.
  bool end_undecided() { return ++ended_ == undecided_; }
  // Returns whether each rank, when it began this sum, knew that all ranks share one node.
  bool began_on_one_node(std::uint64_t number) const { return number > unplaced_; }

  // Find the largest number of sums that any rank has begun. compare_before_agreed() is for
  // compare_options(), before the ranks know that their options agree. compare_before_placed() is
  // for find_nodes() in a fiber, before the ranks know that they share one node. While comparing()
  // is true, this rank begins no sum, but only for a short time, because all ranks are here at
  // about the same time. Collective.
  Status compare_before_agreed(Exchange& exchange) { return compare(exchange, &undecided_); }
  Status compare_before_placed(Exchange& exchange) { return compare(exchange, &unplaced_); }
  bool comparing() const { return comparing_.load(std::memory_order_acquire); }

 private:
  Status compare(Exchange& exchange, std::uint64_t* most);

  std::uint64_t begun_ = 0;
  std::uint64_t undecided_ = 0;  // the last sum that some rank began before it knew that the
                                 // options agree
  std::uint64_t ended_ = 0;      // fibers that have ended
  std::uint64_t unplaced_ = 0;   // the last sum that some rank began before it knew of the one node
  std::atomic<bool> comparing_{false};
};

class Communicator {
 public:
  Communicator(const mpi::Api& api, Statistics& statistics, const Config& config, mpi::Comm user);
  // Makes the communicator of one persistent sum on `parent`, whose ranks have agreed and found
  // their nodes. It has the parent's present options and layout, a channel of the parent's internal
  // communicator, and states of its own, and may outlive the parent. `number` and `channel`: see
  // Exchange::open().
  Communicator(const Communicator& parent, int number, int channel);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // A number that no other communicator of this process ever has, unlike handles and addresses,
  // which are reused.
  const std::uint64_t id;

  // Return the program's communicator, this rank in it, and its number of ranks.
  mpi::Comm user() const { return user_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  // Returns the name that the program gave the communicator, or "". read_name() updates it until
  // the ranks have the internal communicator; later changes are ignored.
  const std::string& name() const { return name_; }
  void read_name();
  // Whether some ranks are in another MPI_COMM_WORLD, where slimpi may not be loaded.
  bool spans_other_world = false;
  // Notes that the program has freed the communicator: no call follows, but requests may be
  // pending.
  void set_freed();
  bool freed() const { return freed_; }
  // Returns whether slimpi may run sums on this communicator.
  bool has_peers() const { return !inter_ && size_ > 1 && !spans_other_world; }
  // Returns what ActiveCall shows of a call while the thread is in it (observe/activity.h).
  ActiveCall::Subject subject(std::uint64_t count, std::string_view tensor = {},
                              Function function = {}) const;

  Config& config() { return config_; }
  const Config& config() const { return config_; }
  // Notes that the program has changed options of this communicator on this rank. They take effect
  // when the ranks compare their options, before the next sum.
  void options_changed() {
    changed_ = true;
    compare_options_again();
  }
  // Makes the ranks compare their options before the next sum. Must be called on all ranks.
  void compare_options_again();

  // Makes the internal communicator, and compares among the ranks the options that must agree and
  // `rules`, the text of the rules that apply here. Collective, and must come before anything else.
  // Status::disagreement names the option and both values on every rank. If some rank's options
  // have changed, all ranks drop what they derived from options. If a fiber cannot make the
  // internal communicator, all sums fail: the ranks learn of it at different times, so they cannot
  // leave a call to MPI together.
  Status compare_options(const std::string& rules);
  bool agreed() const { return is_in(Life::agreed) || is_in(Life::laid_out); }
  bool unusable() const { return is_in(Life::unusable); }
  // Called after a call that failed while its messages may still be in flight. No other call may
  // follow on this communicator, and its context id is never reused.
  void give_up(Status status);
  // Fails if the program has revoked this communicator (ULFM). Called before each call.
  Status check_revoked() const;
  // Returns the status with which later calls are refused after a call has failed.
  Status failed_by() const {
    return connected() ? exchange_.internal()->failed_by.load() : Status::mpi;
  }
  // Returns whether calls on this communicator must fail. A call that fails after it has sent
  // messages leaves life_ as it is; it is recorded in InternalComm::failed, which persistent sums
  // share.
  bool failed() const {
    return is_in(Life::failed) || (connected() && exchange_.internal()->failed);
  }
  // Returns whether the ranks have the internal communicator.
  bool connected() const { return exchange_.internal() != nullptr; }
  // Returns why the ranks could not make the internal communicator.
  mpi::Refusal refusal() const { return refusal_; }
  // Tells the other ranks, which may wait in slimpi for this rank, that this rank leaves a sum to
  // MPI. Sends the message only once, and does not wait.
  void refuse_to_meet(mpi::Refusal why = mpi::Refusal::single_threaded);
  bool refused() const { return is_in(Life::refused); }
  // Returns whether MPI has a context id left for the internal communicator. Called in the first
  // nonblocking sum.
  bool has_room() const { return mpi::has_room_in_fiber(api_, user_); }
  // Called when the fiber of a nonblocking sum ends. If the communicator has become unusable
  // because some process serves too many communicators, sums that have begun may still be waiting
  // for the ranks' decision. The fiber that is the last of these to end closes exchange(), which
  // frees the internal communicator.
  void end_nonblocking();
  // Tells the other ranks, once per type, that this rank leaves a sum to MPI because its
  // SLIMPI_TYPES does not name the type. Does nothing once an earlier sum has begun to make the
  // internal communicator, because the ranks then compare SLIMPI_TYPES.
  void refuse_type(ElementType type);
  // Waits until all ranks have received the messages of refuse_to_meet() and refuse_type().
  // Collective, like MPI_Comm_free.
  void finish_refusals();
  // Return the answers that the ranks exchanged together with their options, the same on all ranks.
  //   foreign_possible()  some rank had the library of a GPU that slimpi cannot use
  //                       (device/foreign.h), so the ranks ask each other at every call whether a
  //                       buffer lies on one of these GPUs
  //   devices_possible()  some rank had a GPU that slimpi uses, so ranks that share one node ask
  //                       each other at every long call
  //   threaded()          every rank may call MPI from several threads at once
  //   without_world()     some rank has no MPI_COMM_WORLD, only sessions
  //   reports()           some rank wants a report or an estimate
  bool foreign_possible() const { return foreign_possible_; }
  bool devices_possible() const { return devices_possible_; }
  bool threaded() const { return threaded_; }
  bool without_world() const { return without_world_; }
  bool reports() const { return reports_; }
  NonblockingSums nonblocking;

  // Finds the nodes, once, and their leaders if SLIMPI_HIERARCHY=leader. A node's leader is the
  // rank whose GPU (that of `buffer`) is nearest to a NIC, or the first of several such ranks.
  // Collective.
  Status find_nodes(const void* buffer);
  // Returns whether all ranks know that they share one node. All ranks get the same answer at the
  // same sum, except for nonblocking sums that some rank began before it knew (NonblockingSums).
  bool on_one_node() const { return is_in(Life::laid_out) && layout_.nodes() == 1; }
  const NodeLayout& layout() const { return layout_; }
  const InterNodeGroup& inter_node_group(Hierarchy hierarchy);

  Exchange& exchange() { return exchange_; }
  Statistics& statistics() { return statistics_; }
  // Returns the class of the length of inter-node messages. The class is the same on all ranks.
  SegmentClass segment_class() const { return segment_class_; }
  // Sets the class of the length of messages, on all ranks together. Only ever called with `large`.
  void use_segments(SegmentClass segment_class) { segment_class_ = segment_class; }
  // Sets *stream to the communicator's stream for `role` at the location, or to null on the host.
  // The stream is opened at its first use, and owned by the communicator.
  Status stream_for(const device::Location& location, device::Stream** stream,
                    StreamRole role = StreamRole::compute);
  // Waits until the streams at these locations have finished what a failed call has queued on them.
  // Returns false if some of it may still run after two seconds, or if the device fails. Keeps the
  // thread's failure text, and does not throw.
  bool streams_end(std::initializer_list<device::Location> locations);

  // Limits the waits of this rank in later calls, in place of SLIMPI_TIMEOUT.
  void limit_waits(std::chrono::seconds most);

  // Called on all ranks before the first message of a call or comparison, which gets the next
  // number. begin_numbered() is for a call that slimpi takes, even if the ranks later leave it to
  // MPI, and for the comparison of counts at the init of a persistent sum. begin_comparison() is
  // for a comparison of options, which has no number before the first call.
  void begin_numbered() {
    ++last_number_;
    exchange_.begin_call();
  }
  void begin_comparison() {
    if (last_number_ != 0) ++last_number_;
    exchange_.begin_call();
  }
  std::uint64_t compressed_calls = 0;  // calls so far, which message headers carry
  TensorStates states;
  // Returns the attachment of this type, which is made at its first use.
  template <typename Type>
  Type& attachment() {
    for (const auto& [key, attached] : attachments_)
      if (key == &kAttachmentKey<Type>) return static_cast<Type&>(*attached);
    auto made = std::make_unique<Type>();
    Type& result = *made;
    attachments_.emplace_back(&kAttachmentKey<Type>, std::move(made));
    return result;
  }

  // Notes that this rank makes no further call on this communicator. After begin_end(), this rank
  // says so to ranks that wait for it in a later call.
  void end_calls();
  // Notes that this rank has called MPI_Finalize, so that a rank that waits for it in a later call
  // gets an error that says so. Starts `request`, which completes when all ranks have called
  // MPI_Finalize, unless a call has failed. `word` must stay valid until then.
  void begin_end(int* word, mpi::Request* request);
  // Answers ranks that ask where this rank is. Returns false if some rank has reported a failure:
  // such ranks do not call begin_end(), so the request would never complete.
  bool serve_end();
  // Drops all MPI handles without freeing them, because nothing may be freed once MPI_Finalize has
  // begun.
  void abandon();

 private:
  bool is_in(Life life) const { return life_.load(std::memory_order_acquire) == life; }
  void enter(Life life);
  Status make_internal_comm();
  void send_refusal(mpi::Refusal refusal);
  std::chrono::seconds longest_wait() const;  // 0: no limit
  mpi::WaitFor waits();
  Status find_layout();
  Status choose_leaders(const void* buffer);
  void start_anew();

  const mpi::Api& api_;
  Statistics& statistics_;
  Config config_;
  mpi::Comm user_;
  int rank_ = 0, size_ = 1;
  // Names the communicator in messages, the same on all ranks; 0 before compare_options().
  int number_ = 0;
  std::uint64_t last_number_ = 0;  // by begin_numbered() and begin_comparison()
  bool inter_ = false;
  std::atomic<bool> freed_ = false;
  std::optional<std::chrono::seconds> own_limit_ = {};  // set by limit_waits()
  std::string name_;
  std::atomic<Life> life_{Life::fresh};  // also read while a fiber waits for other ranks
  bool foreign_possible_ = false, devices_possible_ = false, threaded_ = false;
  bool without_world_ = false, reports_ = false;
  bool changed_ = false;        // this rank's options have changed since the comparison
  ElementTypes refused_types_;  // types that refuse_type() has announced
  mpi::Refusal refusal_ = mpi::Refusal::none;
  std::vector<mpi::FirstExchange::Owner> sent_;  // refusals on their way to other ranks
  NodeLayout layout_;
  std::map<Hierarchy, InterNodeGroup> group_;
  Exchange exchange_;
  SegmentClass segment_class_ = SegmentClass::small;
  // The streams, by GPU, its generation, and role.
  std::map<std::tuple<const device::Device*, int, std::uint64_t, StreamRole>, device::Stream*>
      streams_;
  template <typename Type>
  static constexpr char kAttachmentKey = 0;  // the address is the key of the type
  std::vector<std::pair<const char*, std::unique_ptr<Attachment>>> attachments_;
};

}  // namespace slimpi::comm
