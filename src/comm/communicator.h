// SPDX-License-Identifier: BSD-3-Clause
// What slimpi keeps for one of the program's communicators: an internal communicator for messages,
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

#include "comm/attachment.h"
#include "comm/call.h"
#include "comm/exchange.h"
#include "comm/node_layout.h"
#include "comm/tensor_state.h"
#include "mpi/internal_comm.h"
#include "observe/activity.h"

namespace slimpi::comm {

class Communicator {
 public:
  Communicator(const mpi::Api& api, Statistics& statistics, const Config& config, mpi::Comm user);
  // For one persistent sum on `parent`, whose ranks have agreed and found their nodes: with the
  // options and the layout that the parent has now, a channel of its internal communicator, and
  // states of its own. May outlive the parent. `number`, `channel`: from Communicator::new_channel.
  Communicator(const Communicator& parent, int number, int channel);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Reads the name that the program has given to its communicator so far; "" if none. Does nothing
  // once the ranks have the internal communicator: later names do not count.
  void read_name();

  // Makes the internal communicator and compares among the ranks the options that must agree, and
  // `rules`, the text of the rules that apply here. Collective; must come before anything else.
  // Status::disagreement names the option and both values on every rank. If options of some rank
  // changed, all ranks make again what they derived from them. In a fiber a failure to make the
  // communicator fails all sums: the ranks know of it at different times, so none may leave the
  // call to MPI.
  Status agree(const std::string& rules);
  bool agreed() const { return agreed_.load(std::memory_order_acquire); }
  // Whether the ranks have the internal communicator.
  bool connected() const { return exchange_.internal() != nullptr; }

  // A nonblocking sum begins that may be taken; returns its number, from 1. All ranks begin the
  // same ones in the same order.
  std::uint64_t begin_nonblocking() { return ++begun_; }
  // Whether all ranks decide by the options that they have compared whether the sum with this
  // number is taken. Otherwise it is decided in the fiber, where the ranks have compared them.
  bool decides(std::uint64_t number) const { return agreed() && number > undecided_; }
  // Whether the ranks, in the fiber of an earlier sum, are comparing how many sums each has begun.
  // No other may begin meanwhile. All ranks have reached that point, so the wait is short.
  bool comparing_sums() const { return comparing_.load(std::memory_order_acquire); }
  // Whether a nonblocking sum may have been the first one to make the ranks meet.
  bool has_begun() const { return begun_ != 0; }

  // Why the ranks could not make the internal communicator.
  mpi::Refusal refusal() const { return refusal_; }

  // For a rank that leaves to MPI what may be the first sum of other ranks, which find out that it
  // does. Once; returns at once.
  void refuse_to_meet();
  // The same for a sum of a type which this rank's SLIMPI_TYPES has not; once for each type. Does
  // nothing where an earlier sum made the ranks meet, or makes them: they compare SLIMPI_TYPES.
  void refuse_type(ElementType type);
  // Waits until all ranks have got what those two sent. Collective, as MPI_Comm_free is.
  void finish_refusals();

  // Before the next sum; to be called on all ranks.
  void compare_options_again() { agreed_ = false; }

  // Whether some rank had loaded a library of device/foreign.h when the ranks agreed; the same on
  // all ranks. Then they ask each other at every call whether a buffer lies in such memory.
  bool foreign_possible() const { return foreign_possible_; }

  // Whether every rank may call MPI from several threads at once; the same on all ranks.
  bool threaded() const { return threaded_; }

  // For the case that all ranks found different values for `name`: makes the error text from `text`
  // of two ranks with different `value`, and rank 0 prints it. Collective.
  Status describe_disagreement(const std::string& name, const std::string& value,
                               const std::string& text, const std::string& remedy);

  // A number and a channel for a persistent sum, which no other of this process has; the same on
  // all ranks. *channel is -1 where some rank has no free one. Collective.
  Status new_channel(int* number, int* channel);

  // True if MPI could not provide what slimpi needs here, or if slimpi already serves its maximum
  // number of communicators. The same on all ranks. Every call is then left to MPI.
  bool unusable() const { return unusable_; }

  // A call failed after messages were sent. They may still be in flight, so no other call may
  // follow on this communicator, and its context id is never used again: for good.
  void give_up() {
    failed_ = true;
    if (connected()) exchange_.internal()->failed = true;
  }
  bool failed() const { return failed_ || (connected() && exchange_.internal()->failed); }

  // To be called when the program changed options of this communicator on this rank. Takes effect
  // when the ranks compare their options, before the next sum.
  void options_changed() {
    changed_ = true;
    compare_options_again();
  }

  // Finds the nodes, once. With one leader for each node it also chooses the leader: the rank whose
  // GPU (that of `buffer`) is nearest to a NIC; of equal ranks the first. Collective.
  Status find_nodes(const void* buffer = nullptr);

  // This rank and the number of ranks; valid after construction.
  int rank() const { return rank_; }
  int size() const { return size_; }
  bool intercommunicator() const { return inter_; }

  // Some ranks are in another MPI_COMM_WORLD, in which slimpi may not be loaded.
  bool spans_other_world = false;

  // The length of inter-node messages; the same on all ranks.
  SegmentClass segment_class() const { return segment_class_; }
  // All ranks call it together. The class is never `small` again.
  void use_segments(SegmentClass segment_class) { segment_class_ = segment_class; }

  Config& config() { return config_; }
  const NodeLayout& layout() const { return layout_; }
  const InterNodeGroup& inter_node_group(Hierarchy hierarchy);

  Exchange& exchange() { return exchange_; }
  Statistics& statistics() { return statistics_; }
  mpi::Comm user() const { return user_; }
  const std::string& name() const { return name_; }

  // The communicator's stream for `role` at the location; opened at first use and owned by
  // the communicator. Null on the host.
  Status stream_for(const device::Location& location, device::Stream** stream,
                    StreamRole role = StreamRole::compute);

  // Of something that this rank made, or not (`here`): whether all ranks have it. Collective.
  Status agree_on_made(Status here, bool* all);
  // This communicator's number in messages; the same on all ranks. 0 before agree().
  int number() const { return number_; }
  ActiveCall::Subject subject(std::uint64_t count, std::string_view tensor = {}) const {
    return {std::uint64_t(number_),
            name_,
            rank_,
            size_,
            taken,
            count,
            exchange_.trace().first_world_rank(),
            tensor};
  }

  // Calls so far that slimpi took, or would have taken but for what the ranks then agreed on, and
  // comparisons of options after the first one.
  std::uint64_t taken = 0;
  std::uint64_t calls = 0;  // compressed calls so far; message headers carry it
  TensorStates states;

  // What a layer above keeps here, by its type; made at first use.
  template <typename Type>
  Type& attachment() {
    for (const auto& [key, attached] : attachments_)
      if (key == &kAttachmentKey<Type>) return static_cast<Type&>(*attached);
    auto made = std::make_unique<Type>();
    Type& result = *made;
    attachments_.emplace_back(&kAttachmentKey<Type>, std::move(made));
    return result;
  }

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
  Status make_internal_comm();
  Status compare_sums();
  void send_refusal(mpi::Refusal refusal);
  Status wait_for_ranks(mpi::Request& request, std::span<const int> arrivals);
  Status find_layout();
  Status choose_leaders(const void* buffer);
  void start_anew();

  const mpi::Api& api_;
  Statistics& statistics_;
  Config config_;
  mpi::Comm user_;
  int rank_ = 0, size_ = 1, number_ = 0;
  std::atomic<bool> agreed_{false}, comparing_{false};  // read also while a fiber agrees
  std::uint64_t begun_ = 0;                             // nonblocking sums
  std::uint64_t undecided_ = 0;  // of these, the last one that some rank began before it had agreed
  bool inter_ = false, laid_out_ = false, unusable_ = false, failed_ = false;
  bool foreign_possible_ = false, threaded_ = false;
  bool refused_ = false;        // by refuse_to_meet()
  ElementTypes refused_types_;  // by refuse_type()
  mpi::Refusal refusal_ = mpi::Refusal::none;
  std::vector<mpi::FirstExchange::Owner> sent_;  // exchanges that nobody here waits for
  bool changed_ = false;  // options of this rank, since the ranks compared theirs
  std::string name_;
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
