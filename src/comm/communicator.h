// SPDX-License-Identifier: BSD-3-Clause
// What slimpi keeps for one of the user's communicators: an internal one for messages, the
// options that hold there, and the nodes. Memory that depends on the ranks or on the size of calls
// is shared with other communicators: node segments and scratch. It hangs on the user's
// communicator as an attribute and goes with it. One thread at a time calls a collective on a
// communicator, so nothing here is locked.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "algorithm/hook.h"
#include "comm/autotuner.h"
#include "comm/call.h"
#include "comm/call_scratch.h"
#include "comm/exchange.h"
#include "comm/node_layout.h"
#include "comm/segment_class.h"
#include "comm/stream_role.h"
#include "comm/tensor_state.h"
#include "inter/copy_streams.h"
#include "inter/pipeline_plan.h"
#include "intra/device_path.h"
#include "intra/shared_segment.h"
#include "intra/summation_order.h"

namespace slimpi::comm {

class Communicator {
 public:
  Communicator(const mpi::Api& api, Statistics& statistics, const Config& config, MPI_Comm user);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Looks up the name that the program gave to its communicator by now; "" if none.
  void read_name();

  // Makes the internal communicator and compares the options that must agree, and `rules`, the
  // text of the rules that hold here. Collective; the first of all steps. Status::disagreement
  // names the option and both values on every rank.
  Status agree(const std::string& rules);
  bool agreed() const { return agreed_; }

  // Every rank found that what they compared as `value` differs: words the error for `name` with
  // the texts of two ranks that differ, and rank 0 says it. Collective.
  Status describe_disagreement(const std::string& name, const std::string& value,
                               const std::string& text, const std::string& remedy);

  // MPI could not give what slimpi needs here, or slimpi serves as many communicators as it may;
  // alike on all ranks. Every call goes to MPI.
  bool unusable() const { return unusable_; }

  // The program changed options of this communicator: everything derived from them is found anew.
  void options_changed();

  // Finds the nodes, once, and where one rank of a node leads, which: the one whose GPU, that of
  // `buffer`, is nearest to a network card, the first of equals. Collective.
  Status find_nodes(const void* buffer = nullptr);

  // Reserves what calls of this plan and count need, and learns whether every rank could: *ready is
  // alike on all. Collective at the first call of a size, free later. `like` is the caller's
  // buffer. From the first size on that some rank prepares for a staged device, the segment class
  // is coarse.
  Status prepare(const Plan& plan, std::uint64_t count, const device::Device& device,
                 const void* like, bool* ready);

  // The same for the allreduce of a communicator on one node, whatever its count; opens what
  // node-local ranks share.
  Status prepare_in_node(const device::Device& device, const void* like, bool* ready);

  // The caller's rank and the ranks; valid from the start.
  int rank() const { return rank_; }
  int size() const { return size_; }
  bool intercommunicator() const { return inter_; }

  // Some ranks are in another MPI_COMM_WORLD, where slimpi need not be.
  bool spans_other_world = false;

  // How long messages between nodes are; alike on all ranks.
  SegmentClass segment_class() const { return segment_class_; }

  Config& config() { return config_; }
  const NodeLayout& layout() const { return layout_; }
  const InterNodeGroup& inter_node_group(Hierarchy hierarchy);

  // Opens the memory that node-local ranks share, once, unless SLIMPI_INTRA says otherwise or no
  // node has two ranks. Collective.
  Status open_shared();
  intra::SharedSegment* shared() const { return shared_.get(); }

  // How the node's ranks exchange in this call, as its sum found out. Needs shared().
  intra::DevicePath::Path node_way = intra::DevicePath::Path::host;

  Exchange& exchange() { return exchange_; }
  Statistics& statistics() { return statistics_; }
  MPI_Comm user() const { return user_; }
  const std::string& name() const { return name_; }

  // The stream that this communicator's work near `like` runs on, or one of the others beside it;
  // null on the host.
  Status stream_for(const device::Device& device, const void* like, device::Stream** stream,
                    StreamRole role = StreamRole::compute);

  // What is known about the speed of the ways to answer calls of one size class.
  Autotuner& autotuner(int size_class, int candidates) {
    return autotuners_.try_emplace(size_class, candidates).first->second;
  }

  // Scratch memory of the call that runs, which owns it.
  CallScratch& scratch() { return *scratch_; }
  void use_scratch(CallScratch* scratch) { scratch_ = scratch; }

  std::uint64_t calls = 0;      // compressed calls so far; a schedule's messages carry it
  intra::NodeOrder node_order;  // what is known of MPI's own sums
  TensorStates states;
  algorithm::Hooks hooks;  // the user's shared objects that were opened here
  // The rows of the info key slimpi_rules, of the type that policy knows; null: those of the job.
  std::shared_ptr<const void> rules;

  // Forgets MPI's side: after MPI_Finalize began nothing may be freed there any more.
  void abandon();

  // Set when a call failed half way: what was sent may still be on its way, so no other may follow.
  bool failed = false;

 private:
  Status make_exchange_comm();
  Status choose_leaders(const void* buffer);
  void release();

  const mpi::Api& api_;
  Statistics& statistics_;
  Config config_;
  MPI_Comm user_;
  MPI_Comm exchange_comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  bool inter_ = false, agreed_ = false, laid_out_ = false, unusable_ = false;
  std::string name_;
  NodeLayout layout_;
  std::map<Hierarchy, InterNodeGroup> group_;
  Exchange exchange_;
  std::map<int, Autotuner> autotuners_;
  void close_shared();

  CallScratch* scratch_ = nullptr;
  std::unique_ptr<intra::SharedSegment> shared_;
  bool shared_tried_ = false;
  SegmentClass segment_class_ = SegmentClass::small;
  std::optional<bool> node_ready_;  // what all ranks know of prepare_in_node
  std::map<std::tuple<const device::Device*, int, StreamRole>, device::Stream*> streams_;  // by GPU
  // Largest count that was prepared, by algorithm, bits, bucket, hierarchy and hook.
  std::map<std::tuple<const algorithm::Algorithm*, int, std::uint32_t, Hierarchy, std::string>,
           std::uint64_t>
      prepared_;
};

// Waits until everything queued on the stream is done.
Status synchronize(const device::Device& device, device::Stream* stream);

// Copies behind what the stream has queued, and waits for it. The trace shows it as `name`: "copy
// out" or "copy in", as seen from the device.
Status copy_and_wait(const device::Device& device, device::Stream* stream, const char* name,
                     void* to, const void* from, std::size_t bytes);

// *found: is any of `data`, in whatever memory, beyond the limit?
Status find_beyond(Communicator& communicator, const float* data, std::uint64_t count, float limit,
                   bool* found);

}  // namespace slimpi::comm
