// SPDX-License-Identifier: BSD-3-Clause
// The row "hook" of the table of algorithms: which hooks a communicator has open, how its ranks
// agree about them, and where a call's buffers are copied to host memory for them.
#include <memory>
#include <vector>

#include "algorithm/hierarchical.h"
#include "algorithm/hook.h"
#include "comm/communicator.h"
#include "comm/stream_wait.h"
#include "mpi/internal_comm.h"

namespace slimpi::algorithm {

namespace {

// The hooks that were opened for one communicator, by all its ranks together. They stay open while
// it lives, also where its options change.
struct Hooks : comm::Attachment {
  void abandon() override {
    for (const auto& hook : opened) hook->abandon();
  }
  std::vector<std::unique_ptr<Hook>> opened;
};

// Null before open_hook().
Hook* hook_of(comm::Communicator& communicator, const comm::Plan& plan) {
  for (const auto& hook : communicator.attachment<Hooks>().opened)
    if (&hook->file() == plan.hook) return hook.get();
  return nullptr;
}

// Agrees among all ranks whether any failed. If so, every rank gets the text of the lowest rank
// that failed. Collective.
Status agree_on_failure(comm::Communicator& communicator, const std::string& mine) {
  comm::Exchange& exchange = communicator.exchange();
  const int rank = communicator.rank(), size = communicator.size();
  std::uint64_t worst = mine.empty() ? 0 : std::uint64_t(size - rank);
  SLIMPI_TRY(exchange.all_max({&worst, 1}));
  if (worst == 0) return Status::ok;
  const int from = size - int(worst);
  char text[768] = "";
  if (rank == from) text[mine.copy(text, sizeof text - 1)] = '\0';
  SLIMPI_TRY(exchange.share_texts(text));
  return fail(Status::hook, std::string(text) + " (rank " + std::to_string(from) + ")");
}

Status open_hook(const comm::Call& call) {
  comm::Communicator& communicator = call.communicator;
  const comm::Plan& plan = call.plan;
  if (hook_of(communicator, plan) != nullptr) return Status::ok;
  comm::Exchange& exchange = communicator.exchange();
  auto hook = std::make_unique<Hook>(exchange.api(), *plan.hook);
  SLIMPI_TRY(agree_on_failure(communicator, failure_of(hook->load())));
  std::uint64_t kind[] = {hook->is_codec(), !hook->is_codec()};
  SLIMPI_TRY(exchange.all_max(kind));
  if (kind[0] == kind[1])
    return refuse_hook(*plan.hook, "it is a codec on some ranks and a strategy on others");
  SLIMPI_TRY(hook->give_comm(exchange.comm(), exchange.channel()));
  // The hook is opened for the communicator, so it learns of no count and no buffer.
  const comm::Call opening{communicator,   call.scratch, plan, nullptr, nullptr, 0,
                           device::host(), nullptr,      0,    nullptr};
  SLIMPI_TRY(agree_on_failure(communicator, failure_of(hook->open(opening))));
  std::uint64_t identity[] = {hook->identity(), ~hook->identity()};
  SLIMPI_TRY(exchange.all_max(identity));
  if (identity[0] != ~identity[1])
    return refuse_hook(
        *plan.hook,
        "its name, max_piece or bound differs between ranks; the file must be the same "
        "on every node");
  communicator.attachment<Hooks>().opened.push_back(std::move(hook));
  return Status::ok;
}

// The same call with its buffer in host memory: `copy` is its input and its result.
comm::Call call_on_host(const comm::Call& call, float* copy) {
  return {call.communicator, call.scratch,   call.plan, copy,        copy,
          call.count,        device::host(), nullptr,   call.number, call.state};
}

Status reserve_hook(const comm::Call& call) {
  const Hook& hook = *hook_of(call.communicator, call.plan);
  if (call.device.staged && !hook.takes_device_memory())
    SLIMPI_TRY(call.scratch.host_copy().reserve(call.location, device::Place::staging, call.count,
                                                call.communicator.statistics()));
  return hook.is_codec() ? reserve_hook_exchange(call_on_host(call, nullptr), hook) : Status::ok;
}

Status run_together(comm::Call& call, const Hook& hook) {
  comm::Communicator& communicator = call.communicator;
  if (hook.is_codec()) {
    std::string failure;
    SLIMPI_TRY(run_hook_exchange(call, hook, &failure));
    return agree_on_failure(communicator, failure);
  }
  SLIMPI_TRY(agree_on_failure(communicator, failure_of(hook.prepare(call))));
  return agree_on_failure(communicator, failure_of(hook.allreduce(call)));
}

// After a failure the tensor state may hold residuals of a result that no rank used, so all ranks
// drop it.
Status run_in_place(comm::Call& call, const Hook& hook) {
  const Status status = run_together(call, hook);
  if (status == Status::hook && call.state != nullptr) call.state->drop();
  return status;
}

Status reserve_hook_state(comm::Call& call) {
  if (!hook_of(call.communicator, call.plan)->is_codec()) return Status::ok;
  comm::Call on_host = call_on_host(call, nullptr);
  return reserve_residual(on_host);
}

Status run_hook(comm::Call& call) {
  const Hook& hook = *hook_of(call.communicator, call.plan);
  if (call.device.staged) SLIMPI_TRY(comm::synchronize(call.device_stream()));
  if (!call.device.staged || hook.takes_device_memory()) return run_in_place(call, hook);

  float* const copy = call.scratch.host_copy().data();
  const std::size_t bytes = call.count * sizeof(float);
  SLIMPI_TRY(comm::copy_and_wait(call.device_stream(), "copy out", copy, call.in, bytes));
  comm::Call on_host = call_on_host(call, copy);
  SLIMPI_TRY(run_in_place(on_host, hook));
  return comm::copy_and_wait(call.device_stream(), "copy in", call.out, copy, bytes);
}

}  // namespace

const Functions functions::hook = {.run = run_hook,
                                   .reserve = reserve_hook,
                                   .reserve_state = reserve_hook_state,
                                   .open = open_hook};

}  // namespace slimpi::algorithm
