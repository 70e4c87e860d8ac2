// SPDX-License-Identifier: BSD-3-Clause
// Persistent sums (MPI_Allreduce_init and its relatives). Ranks may start the persistent sums of a
// communicator in different orders, so each sum has its own range of message tags on the internal
// communicator, called its channel, and its own tensor state. The ranks set up both together in the
// init function. There they also agree on whether and how the sum is compressed, from the options
// that the communicator has at that time.
#include "call/persistent.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/described_tensor.h"
#include "base/exceptions.h"
#include "base/float_environment.h"
#include "call/admission.h"
#include "call/arguments.h"
#include "call/element_type.h"
#include "call/entry.h"
#include "call/estimate.h"
#include "call/held_sum.h"
#include "call/queue.h"
#include "call/sum.h"
#include "mpi/internal_comm.h"
#include "observe/activity.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

// A range of message tags on the internal communicator. `number` identifies the channel in
// messages, where other sums have the number of their communicator. `index` is -1 if some rank has
// no free channel.
struct Channel {
  int number = 0, index = -1;
};

// Counts the persistent sums that the ranks have made on a communicator.
struct PersistentCount final : comm::Attachment {
  std::uint64_t made = 0;
};

class PersistentSum final : public HeldSum {
 public:
  PersistentSum(Runtime& its_runtime, const comm::Communicator& parent,
                const algorithm::Decision& its_decision, Request its_request,
                const Channel& channel, std::uint64_t index)
      : HeldSum(its_runtime, parent, own_, std::move(its_request), &own_decision_),
        own_(parent, channel.number, channel.index),
        own_decision_(its_decision) {
    request.blocks.agreed = true;
    // Each sum numbers its calls from 1 on, so with one seed all would draw the same numbers.
    own_.config().seed += index * 0x9e3779b97f4a7c15u;
  }

  // Creates the program's request. Returns MPI's code.
  int make_request() { return own_.exchange().make_completion(&handle); }

  int before_start(bool* begins) override;
  void started() override;
  void before_free() override {
    remove_sum(*this);  // left over from a start that the program's error handler has left
    wait_for_sums(own_);
  }
  bool freed() override {
    end_starts();
    return true;
  }
  void end_starts() override {
    (void)caught([&] { own_.end_calls(); });
  }
  void abandon() override { own_.abandon(); }

 private:
  void complete() override { own_.exchange().complete(); }

  comm::Communicator own_;
  const algorithm::Decision own_decision_;
};

// Once slimpi has ended, each start calls MPI's blocking function on the program's communicator.
int PersistentSum::before_start(bool* begins) {
  if (!runtime.finished) return HeldSum::before_start(begins);
  *begins = comm_for_errors() == comm;
  if (*begins) return mpi::kSuccess;
  const Status status =
      fail(Status::unsupported,
           "a persistent sum starts after slimpi_finish or in MPI_Finalize, and its communicator "
           "has been freed; start it earlier, or free the communicator later");
  return runtime.errors.raise(comm_for_errors(), status);
}

void PersistentSum::started() {
  if (runtime.finished) {
    (void)call_mpi(request, std::nullopt);  // MPI has raised the error, if there is one
    return complete();
  }
  const bool bypassed = !Runtime::on;
  bypass = bypassed ? std::optional(BypassReason::off) : std::nullopt;
  {
    const HoldFibers held;  // for count_in_order(), whose lock comes before that of use()
    runtime.communicators.use(comm, of_comm, [&](comm::Communicator& parent) {
      own_.exchange().set_timeout(parent.exchange().timeout());
      // A start counts for SLIMPI_CALLS_PER_STEP like any other sum on the program's communicator,
      // unless slimpi is off.
      if (!bypassed) count_in_order(parent);
    });
  }
  begin_sum(*this);
  if (bypassed) count_bypass(runtime, BypassReason::off, own_, request);
}

// Compares the ranks' counts, because a sum with counts that differ would hang at its first start.
// Also finds out whether slimpi sees the starts of requests on all ranks and, if slimpi takes the
// sum, the nodes and the memory of its buffers. Collective.
comm::Verdict compare_inits(Runtime& runtime, comm::Communicator& communicator, bool takes,
                            const Request& request, bool* starts_seen) {
  const OwnFloats environment;
  SLIMPI_TRY(agree_on_blocks(communicator, request, true));
  *starts_seen = !mpi::g_starts_hidden;
  SLIMPI_TRY(communicator.exchange().all_true(starts_seen));  // the messages have the count
  if (!takes) return Status::ok;
  return find_nodes_and_memory(runtime, communicator, request);
}

// Finds a channel and a number for a new sum, the same on all ranks. On every rank the channel is
// free, and no other communicator or channel of the process has the number. Collective over the
// communicator.
Status find_channel(comm::Exchange& exchange, Channel* channel) {
  comm::InternalComm& internal = *exchange.internal();
  std::uint64_t words[] = {std::uint64_t(mpi::next_number()), 0};
  for (int proposed = 1;; proposed = channel->index + 1) {
    proposed = internal.free_channel(proposed);
    // A rank without a free channel proposes channels(), which is larger than any index, so
    // all_max() returns it to all ranks.
    words[1] = std::uint64_t(proposed < 0 ? internal.channels() : proposed);
    SLIMPI_TRY(exchange.all_max(words));
    channel->index = int(words[1]);
    if (channel->index == internal.channels()) channel->index = -1;
    bool all = channel->index < 0 || channel->index == internal.free_channel(channel->index);
    SLIMPI_TRY(exchange.all_true(&all));
    if (all) break;
  }
  channel->number = int(words[0]);
  mpi::use_number(channel->number);
  return Status::ok;
}

// Makes a persistent sum that slimpi runs on all ranks, and writes its MPI request to `handle`.
Outcome make(Runtime& runtime, comm::Communicator& communicator,
             const algorithm::Decision& decision, const Request& request, void* handle) {
  Channel channel;
  if (const Status status = find_channel(communicator.exchange(), &channel); status != Status::ok)
    return Outcome::finished(fail_call(runtime, communicator, status));
  if (channel.index < 0) {
    if (communicator.rank() == 0)
      log_once(LogLevel::warn, "a persistent sum goes to MPI: the tags of " + runtime.mpi_version +
                                   " suffice for no more of them on one communicator");
    return bypass(runtime, BypassReason::failure, communicator, request);
  }
  const std::uint64_t index = communicator.attachment<PersistentCount>().made++;
  const auto made =
      std::make_shared<PersistentSum>(runtime, communicator, decision, request, channel, index);
  HeldRequests::Entry entry{made};
  if (const int code = made->make_request(); code != mpi::kSuccess) return Outcome::finished(code);
  mpi::write(handle, made->handle);
  HeldRequests::instance().add(entry);
  return Outcome::finished(mpi::kSuccess);
}

}  // namespace

Outcome init_persistent(Request& request, void* handle) {
  if (Fiber::inside() || handle == nullptr) return {};
  take_description(request);
  Outcome outcome;
  comm::Communicator* const admitted = admit(request, Way::persistent, &outcome);
  if (admitted == nullptr) return outcome;
  Runtime& runtime = *Runtime::started();
  comm::Communicator& communicator = *admitted;
  wait_for_sums(communicator);
  const algorithm::Decision* const decision = decide(runtime, communicator, request, &outcome);
  if (decision == nullptr) return outcome;
  if (CallEstimate::running() != nullptr)
    return decision->take ? estimate_begun(runtime, communicator, request) : outcome;
  if (communicator.failed()) return decision->take ? refuse_failed(runtime, communicator) : outcome;
  if (stays_on_node(communicator, request))
    return decision->take ? bypass(runtime, BypassReason::single_node, communicator, request)
                          : outcome;
  communicator.begin_numbered();
  const ActiveCall active(subject(communicator, request, true));
  bool starts_seen = false;
  const comm::Verdict compared =
      compare_inits(runtime, communicator, decision->take, request, &starts_seen);
  if (!is_done(compared)) return end_call(runtime, communicator, request, compared);
  if (!decision->take) return outcome;
  if (!communicator.threaded() || !starts_seen)
    return bypass(runtime, BypassReason::nonblocking, communicator, request);
  return make(runtime, communicator, *decision, request, handle);
}

std::vector<std::shared_ptr<comm::Communicator>> find_persistent(
    const comm::Communicator& communicator, const std::string& name) {
  const auto found = HeldRequests::instance().find_all([&](const Held& one) {
    if (!one.persistent || !one.is_sum() || one.of_comm != communicator.id) return false;
    const auto& tensor = static_cast<const PersistentSum&>(one).request.tensor;
    return tensor != nullptr && tensor->name == name;
  });
  std::vector<std::shared_ptr<comm::Communicator>> communicators;
  for (const auto& one : found)
    communicators.emplace_back(one, &static_cast<PersistentSum&>(*one).communicator);
  // In the order in which the program made the requests, which is the same on all ranks.
  std::sort(communicators.begin(), communicators.end(),
            [](const auto& one, const auto& other) { return one->id < other->id; });
  return communicators;
}

}  // namespace slimpi::call
