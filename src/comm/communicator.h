// SPDX-License-Identifier: BSD-3-Clause
// The state of one of the program's communicators: an internal communicator for messages,
// the options that apply, and the node layout. Memory that depends on the ranks or on the size of
// calls (shared-memory segments, scratch) is shared with other communicators. The object is an
// attribute of the program's communicator and is destroyed with it. Only one thread at a time calls
// a collective on a communicator, so nothing here is locked.
#pragma once
#include <atomic>
#include <map>
#include <memory>
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

// The state that a layer above keeps for one communicator. That layer derives a type of its own and
// is the only one that uses it; the communicator owns one object of each type, made at first use,
// and destroys it with itself: communicator.attachment<Type>().
class Attachment {
 public:
  Attachment() = default;
  virtual ~Attachment() = default;
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  // The program changed options of the communicator. Not collective.
  virtual void options_changed() {}

  // The nodes are about to be found again. Collective.
  virtual void layout_changed() {}

  // MPI is about to end: drops all MPI handles without freeing them.
  virtual void abandon() {}
};

// The life of a communicator on this rank. The table in communicator.cpp has its transitions,
// docs/PROTOCOLS.md what the ranks do in them.
enum class Life : std::uint8_t {
  fresh,       // this rank has sent nothing
  refused,     // this rank has told the others that it leaves to MPI what may be their first sum
  connecting,  // the ranks make the internal communicator
  connected,   // done; the ranks compare their options before the next sum
  agreed,      // all have the same options
  laid_out,    // the same, and all know their nodes
  outdated,    // laid out; the ranks compare their options again before the next sum
  unusable,    // MPI could not provide what slimpi needs: every sum goes to MPI, on all ranks
  failed       // the ranks may know at different times that they cannot meet: every sum fails
};

// The nonblocking sums of a communicator in the order in which they begin, which is the same on all
// ranks. Ranks may know at different times that all have the same options. So a sum is decided
// where it begins only if no rank began it before it knew; otherwise in its fiber.
class NonblockingSums {
 public:
  // A sum begins that may be taken. Returns its number, from 1.
  std::uint64_t begin() { return ++begun_; }
  // Whether one may have been the first sum that made the ranks meet.
  bool any() const { return begun_ != 0; }
  // Whether every rank began the sum with this number when it knew that all agree.
  bool began_agreed(std::uint64_t number) const { return number > undecided_; }
  // Whether some rank began the next one before that.
  bool next_is_undecided() const { return begun_ < undecided_; }
  // The fiber of one has ended. Whether it was the last one of those.
  bool end_undecided() { return ++ended_ == undecided_; }
  // Whether every rank began the sum with this number when it knew that all share one node.
  bool began_on_one_node(std::uint64_t number) const { return number > unplaced_; }

  // The ranks, in the fiber of an earlier sum, compare how many each has begun: before all agree,
  // and before all know that they share one node. From the moment at which a rank says its number
  // until it knows the others', comparing() is true, and it begins none. All ranks have reached
  // that point, so the wait is short. Collective.
  Status compare_before_agreed(Exchange& exchange) { return compare(exchange, &undecided_); }
  Status compare_before_placed(Exchange& exchange) { return compare(exchange, &unplaced_); }
  bool comparing() const { return comparing_.load(std::memory_order_acquire); }

 private:
  Status compare(Exchange& exchange, std::uint64_t* most);

  std::uint64_t begun_ = 0;
  std::uint64_t undecided_ = 0;  // the last one that some rank began before it had agreed
  std::uint64_t ended_ = 0;      // fibers
  std::uint64_t unplaced_ = 0;   // or before it knew that all ranks share one node
  std::atomic<bool> comparing_{false};
};

class Communicator {
 public:
  Communicator(const mpi::Api& api, Statistics& statistics, const Config& config, mpi::Comm user);
  // For one persistent sum on `parent`, whose ranks have agreed and found their nodes: with the
  // options and the layout that the parent has now, a channel of its internal communicator, and
  // states of its own. May outlive the parent. No other channel or communicator of this process has
  // the number or the channel, which are the same on all ranks.
  Communicator(const Communicator& parent, int number, int channel);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Identity: the program's communicator, this rank and the number of ranks.
  mpi::Comm user() const { return user_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  // The name that the program had given when read_name() was called last before the ranks had the
  // internal communicator; later names do not count. "": none.
  const std::string& name() const { return name_; }
  void read_name();
  // Some ranks are in another MPI_COMM_WORLD, in which slimpi may not be loaded.
  bool spans_other_world = false;
  // The program has freed it; MPI frees it when its requests are complete. No call follows.
  bool freed = false;
  // Whether slimpi may make sums on it.
  bool has_peers() const { return !inter_ && size_ > 1 && !spans_other_world; }
  // The name of a call, while its thread is in it.
  ActiveCall::Subject subject(std::uint64_t count, std::string_view tensor = {},
                              Function function = {}) const;

  // Options.
  Config& config() { return config_; }
  const Config& config() const { return config_; }
  // To be called when the program changed options of this communicator on this rank. Takes effect
  // when the ranks compare their options, before the next sum.
  void options_changed() {
    changed_ = true;
    compare_options_again();
  }
  // Before the next sum; to be called on all ranks.
  void compare_options_again();

  // Agreement.
  // Makes the internal communicator and compares among the ranks the options that must agree, and
  // `rules`, the text of the rules that apply here. Collective; must come before anything else.
  // Status::disagreement names the option and both values on every rank. If options of some rank
  // changed, all ranks make again what they derived from them. In a fiber a failure to make the
  // communicator fails all sums: the ranks know of it at different times, so none may leave the
  // call to MPI.
  Status agree(const std::string& rules);
  bool agreed() const { return is_in(Life::agreed) || is_in(Life::laid_out); }
  bool unusable() const { return is_in(Life::unusable); }
  // A call failed after messages were sent. They may still be in flight, so no other call may
  // follow on this communicator, and its context id is never used again: for good.
  void give_up();
  // A failure after messages were sent is that of the internal communicator, which persistent sums
  // share. So it is no state of this life, which goes on where the call left it.
  bool failed() const {
    return is_in(Life::failed) || (connected() && exchange_.internal()->failed);
  }
  // Whether the ranks have the internal communicator.
  bool connected() const { return exchange_.internal() != nullptr; }
  // Why the ranks could not make it.
  mpi::Refusal refusal() const { return refusal_; }
  // For a rank that leaves to MPI what may be the first sum of other ranks, which find out that it
  // does. Once; returns at once.
  void refuse_to_meet(mpi::Refusal why = mpi::Refusal::single_threaded);
  bool refused() const { return is_in(Life::refused); }
  // In its first nonblocking sum: whether MPI has room for an internal communicator.
  bool has_room() const { return mpi::has_room_in_fiber(api_, user_); }
  // The fiber of a nonblocking sum has ended. Where other sums go to MPI, because this process
  // serves too many communicators, the last one that needed an internal one frees it.
  void end_nonblocking();
  // The same for a sum of a type which this rank's SLIMPI_TYPES has not; once for each type. Does
  // nothing where an earlier sum made the ranks meet, or makes them: they compare SLIMPI_TYPES.
  void refuse_type(ElementType type);
  // Waits until all ranks have got what those two sent. Collective, as MPI_Comm_free is.
  void finish_refusals();
  // The facts that the ranks told each other with their options; the same on all of them. Whether
  // some rank had loaded a library of device/foreign.h: then they ask each other at every call
  // whether a buffer lies in such memory. Whether some rank had a GPU that slimpi uses: then ranks
  // that share one node ask each other at every long call. Whether every rank may call MPI from
  // several threads at once.
  bool foreign_possible() const { return foreign_possible_; }
  bool devices_possible() const { return devices_possible_; }
  bool threaded() const { return threaded_; }
  NonblockingSums nonblocking;

  // Layout.
  // Finds the nodes, once. With one leader for each node it also chooses the leader: the rank whose
  // GPU (that of `buffer`) is nearest to a NIC; of equal ranks the first. Collective.
  Status find_nodes(const void* buffer = nullptr);
  // Whether all ranks know that they share one node; the same on all ranks at the same sum, but for
  // nonblocking sums that some rank began before (NonblockingSums).
  bool on_one_node() const { return is_in(Life::laid_out) && layout_.nodes() == 1; }
  const NodeLayout& layout() const { return layout_; }
  const InterNodeGroup& inter_node_group(Hierarchy hierarchy);

  // Exchange.
  Exchange& exchange() { return exchange_; }
  Statistics& statistics() { return statistics_; }
  // The length of inter-node messages; the same on all ranks.
  SegmentClass segment_class() const { return segment_class_; }
  // All ranks call it together. The class is never `small` again.
  void use_segments(SegmentClass segment_class) { segment_class_ = segment_class; }
  // The communicator's stream for `role` at the location; opened at first use and owned by
  // the communicator. Null on the host.
  Status stream_for(const device::Location& location, device::Stream** stream,
                    StreamRole role = StreamRole::compute);

  // State.
  // Calls so far that slimpi took, or would have taken but for what the ranks then agreed on, and
  // comparisons of options after the first one.
  std::uint64_t taken = 0;
  std::uint64_t calls = 0;  // compressed calls so far; message headers carry it
  TensorStates states;
  // The attachments of layers above, by their types; made at first use.
  template <typename Type>
  Type& attachment() {
    for (const auto& [key, attached] : attachments_)
      if (key == &kAttachmentKey<Type>) return static_cast<Type&>(*attached);
    auto made = std::make_unique<Type>();
    Type& result = *made;
    attachments_.emplace_back(&kAttachmentKey<Type>, std::move(made));
    return result;
  }

  // End.
  // No call follows on this rank, which says so to ranks that wait, from begin_end() on.
  void end_calls();
  // This rank has called MPI_Finalize: ranks that wait for it in a later call get an error that
  // says so. Starts `request`, which is complete when all ranks have, unless a call failed before;
  // `word` is valid until then.
  void begin_end(int* word, mpi::Request* request);
  // Answers ranks that wait. False where a rank has reported a failure: it has not begun the end.
  bool serve_end();
  // Drops all MPI handles without freeing them: after MPI_Finalize began nothing may be freed.
  void abandon();

 private:
  bool is_in(Life life) const { return life_.load(std::memory_order_acquire) == life; }
  void enter(Life life);
  Status make_internal_comm();
  void send_refusal(mpi::Refusal refusal);
  Status wait_for_ranks(const mpi::Poll& poll, std::span<const int> arrivals, bool limited);
  mpi::WaitFor waits();
  Status find_layout();
  Status choose_leaders(const void* buffer);
  void start_anew();

  const mpi::Api& api_;
  Statistics& statistics_;
  Config config_;
  mpi::Comm user_;
  int rank_ = 0, size_ = 1;
  int number_ = 0;  // in messages; the same on all ranks; 0 before agree()
  bool inter_ = false;
  std::string name_;
  std::atomic<Life> life_{Life::fresh};  // read also while a fiber agrees
  bool foreign_possible_ = false, devices_possible_ = false, threaded_ = false;
  bool changed_ = false;  // options of this rank, since the ranks compared theirs; in any state
  ElementTypes refused_types_;  // by refuse_type()
  mpi::Refusal refusal_ = mpi::Refusal::none;
  std::vector<mpi::FirstExchange::Owner> sent_;  // exchanges that nobody here waits for
  NodeLayout layout_;
  std::map<Hierarchy, InterNodeGroup> group_;
  Exchange exchange_;
  SegmentClass segment_class_ = SegmentClass::small;
  // By GPU, and its generation.
  std::map<std::tuple<const device::Device*, int, std::uint64_t, StreamRole>, device::Stream*>
      streams_;
  template <typename Type>
  static constexpr char kAttachmentKey = 0;  // the address is the key of a type
  std::vector<std::pair<const char*, std::unique_ptr<Attachment>>> attachments_;
};

}  // namespace slimpi::comm
