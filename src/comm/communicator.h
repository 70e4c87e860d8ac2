// SPDX-License-Identifier: BSD-3-Clause
// What slimpi keeps for one of the program's communicators: an internal communicator for messages,
// the options that apply, and the node layout. Memory that depends on the ranks or on the size of
// calls (shared-memory segments, scratch) is shared with other communicators. The object is an
// attribute of the program's communicator and is destroyed with it. Only one thread at a time calls
// a collective on a communicator, so nothing here is locked.
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

  // Reads the name that the program has given to its communicator so far; "" if none.
  void read_name();

  // Makes the internal communicator and compares among the ranks the options that must agree, and
  // `rules`, the text of the rules that apply here. Collective; must come before anything else.
  // Status::disagreement names the option and both values on every rank.
  Status agree(const std::string& rules);
  bool agreed() const { return agreed_; }

  // For the case that all ranks found different values for `name`: makes the error text from `text`
  // of two ranks with different `value`, and rank 0 prints it. Collective.
  Status describe_disagreement(const std::string& name, const std::string& value,
                               const std::string& text, const std::string& remedy);

  // True if MPI could not provide what slimpi needs here, or if slimpi already serves its maximum
  // number of communicators. The same on all ranks. Every call is then left to MPI.
  bool unusable() const { return unusable_; }

  // To be called when the program changed options of this communicator: all state that was derived
  // from them is made again.
  void options_changed();

  // Finds the nodes, once. With one leader for each node it also chooses the leader: the rank whose
  // GPU (that of `buffer`) is nearest to a network card; of equal ranks the first. Collective.
  Status find_nodes(const void* buffer = nullptr);

  // Reserves memory and streams for calls of this plan and count. *ready: all ranks could; it is
  // the same on all. Collective at the first call of a size, without communication later.
  // `location` is the program's buffer's. Once some rank prepares for a staged device, the segment
  // class is `large` for good.
  Status prepare(const Plan& plan, std::uint64_t count, const device::Location& location,
                 bool* ready);

  // The same for a communicator on one node, for all counts. Also opens the shared memory of the
  // node-local ranks.
  Status prepare_in_node(const device::Location& location, bool* ready);

  // This rank and the number of ranks; valid after construction.
  int rank() const { return rank_; }
  int size() const { return size_; }
  bool intercommunicator() const { return inter_; }

  // Some ranks are in another MPI_COMM_WORLD, in which slimpi may not be loaded.
  bool spans_other_world = false;

  // The length of inter-node messages; the same on all ranks.
  SegmentClass segment_class() const { return segment_class_; }

  Config& config() { return config_; }
  const NodeLayout& layout() const { return layout_; }
  const InterNodeGroup& inter_node_group(Hierarchy hierarchy);

  // Opens the shared-memory segment of the node-local ranks, once. Does nothing if SLIMPI_INTRA
  // excludes it or if no node has two ranks. Collective.
  Status open_shared();
  intra::SharedSegment* shared() const { return shared_.get(); }

  // The memory through which the node's ranks exchange in this call; set by the intra-node sum.
  // Valid only if shared() is not null.
  intra::DevicePath::Path node_way = intra::DevicePath::Path::host;

  Exchange& exchange() { return exchange_; }
  Statistics& statistics() { return statistics_; }
  MPI_Comm user() const { return user_; }
  const std::string& name() const { return name_; }

  // The communicator's stream for `role` at the location; opened at first use and owned by
  // the communicator. Null on the host.
  Status stream_for(const device::Location& location, device::Stream** stream,
                    StreamRole role = StreamRole::compute);

  // The autotuner of one size class; made at first use.
  Autotuner& autotuner(int size_class, int candidates) {
    return autotuners_.try_emplace(size_class, candidates).first->second;
  }

  // Scratch memory of the current call. The call owns it; the pointer is valid only during the
  // call.
  CallScratch& scratch() { return *scratch_; }
  void use_scratch(CallScratch* scratch) { scratch_ = scratch; }

  std::uint64_t calls = 0;      // compressed calls so far; message headers carry it
  intra::NodeOrder node_order;  // what is known about the summation order of MPI
  TensorStates states;
  algorithm::Hooks hooks;  // the user's shared objects that were opened here
  // The rules of the info key slimpi_rules, of a type that only policy knows; null: the process's
  // rules.
  std::shared_ptr<const void> rules;

  // Drops all MPI handles without freeing them: after MPI_Finalize began nothing may be freed.
  void abandon();

  // Set when a call failed after messages were sent. They may still be in flight, so no other call
  // may follow on this communicator.
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
  std::optional<bool> node_ready_;  // the agreed result of prepare_in_node; the same on all ranks
  std::map<std::tuple<const device::Device*, int, StreamRole>, device::Stream*> streams_;  // by GPU
  // The largest count for which all ranks were ready, by algorithm, bits, bucket, hierarchy and
  // hook. The same on all ranks: it decides whether prepare() communicates.
  std::map<std::tuple<const algorithm::Algorithm*, int, std::uint32_t, Hierarchy, std::string>,
           std::uint64_t>
      prepared_;
};

// *found: whether any absolute value in `data`, at the location, is above the limit.
Status find_beyond(Communicator& communicator, const device::Location& location, const float* data,
                   std::uint64_t count, float limit, bool* found);

}  // namespace slimpi::comm
