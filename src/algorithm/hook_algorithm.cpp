// SPDX-License-Identifier: BSD-3-Clause
// The algorithm hook:PATH, where a user's shared object (the hook) encodes messages or computes the
// whole sum. Keeps the open hooks of a communicator, makes the ranks agree whether a hook can be
// used, and stages buffers in host memory for a hook that needs it.
//
// A codec runs in the pairwise schedule (inter/pairwise.h). It determines the length of each
// payload, and slimpi writes the header. All ranks end with the same bytes, because the owner of a
// chunk decodes its own message, too. If the hook fails on a rank, that rank still sends its
// messages, without a payload, because its peers wait for them; it keeps the first failure until
// the ranks agree on it.
//
// A codec never sees infinities or NaNs: slimpi replaces each by 0, and appends marks to the
// payload that let the receiver restore them.
//
// Cost: with M nodes, 2 (M-1) messages per segment and rank.
// Error: the compression error of each node's sum and of the total. With error feedback, both are
// added to the next call of the same buffer.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "algorithm/hook.h"
#include "algorithm/node_frame.h"
#include "algorithm/residual_limit.h"
#include "base/round_up.h"
#include "comm/communicator.h"
#include "comm/message_header.h"
#include "comm/stream_wait.h"
#include "inter/chunk_reduction.h"
#include "inter/pairwise.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

namespace {

// The hooks that all ranks of a communicator have opened together. They stay open as long as the
// communicator lives, even if its options change.
struct Hooks : comm::Attachment {
  void abandon() override {
    for (const auto& hook : opened) hook->abandon();
  }
  std::vector<std::unique_ptr<Hook>> opened;
};

// Returns the hook of the plan, or null before open_hook().
Hook* hook_of(comm::Communicator& communicator, const comm::Plan& plan) {
  for (const auto& hook : communicator.attachment<Hooks>().opened)
    if (&hook->file() == plan.hook) return hook.get();
  return nullptr;
}

// Makes the ranks agree whether any of them failed. `mine` is this rank's failure text, or "". If
// any rank failed, all ranks get the text of the lowest rank that failed. Collective.
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
  auto hook = std::make_unique<Hook>(exchange.api(), *plan.hook, *plan.hook_option);
  SLIMPI_TRY(agree_on_failure(communicator, failure_of(hook->load())));
  bool same = false;
  SLIMPI_TRY(exchange.all_same(hook->is_codec(), &same));
  if (!same)
    return refuse_hook(*plan.hook_option, "it is a codec on some ranks and a strategy on others");
  SLIMPI_TRY(hook->give_comm(exchange.comm(), exchange.channel()));
  // `opening` has no count and no buffers, because the hook is opened for all calls of the
  // communicator.
  const comm::Call opening{.communicator = communicator,
                           .scratch = call.scratch,
                           .plan = plan,
                           .in = nullptr,
                           .out = nullptr,
                           .count = 0,
                           .location = device::host()};
  SLIMPI_TRY(agree_on_failure(communicator, failure_of(hook->open(opening))));
  SLIMPI_TRY(exchange.all_same(hook->identity(), &same));
  if (!same)
    return refuse_hook(
        *plan.hook_option,
        "its name, max_piece or bound differs between ranks; the file must be the same "
        "on every node");
  communicator.attachment<Hooks>().opened.push_back(std::move(hook));
  return Status::ok;
}

// Returns the call with its buffers in host memory: `copy` is both input and result.
comm::Call call_on_host(const comm::Call& call, float* copy) {
  return {.communicator = call.communicator,
          .scratch = call.scratch,
          .plan = call.plan,
          .in = copy,
          .out = copy,
          .count = call.count,
          .location = device::host(),
          .number = call.number,
          .state = call.state};
}

// The mark of a value says whether the value is finite or else which infinity or NaN it is.
enum Mark : std::uint32_t { kFinite, kNan, kPositive, kNegative };

void write_marks(const float* values, std::uint64_t count, std::byte* to) {
  for (std::uint64_t first = 0; first < count; first += 16, to += 4) {
    std::uint32_t word = 0;
    for (std::uint64_t i = first; i < std::min(count, first + 16); ++i) {
      const std::uint32_t mark = std::isfinite(values[i]) ? kFinite
                                 : std::isnan(values[i])  ? kNan
                                 : values[i] > 0          ? kPositive
                                                          : kNegative;
      word |= mark << 2 * (i - first);
    }
    std::memcpy(to, &word, sizeof word);
  }
}

void put_marked(const std::byte* marks, std::uint64_t count, float* values) {
  const float instead[] = {0, kernels::nan_value(), INFINITY, -INFINITY};
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, marks + i / 16 * 4, sizeof word);
    if (const std::uint32_t mark = word >> 2 * (i % 16) & 3; mark != kFinite)
      values[i] = instead[mark];
  }
}

// Runs a hook as the codec of the pairwise schedule: encodes, adds and decodes segments with the
// functions of the hook. In host memory each payload follows its header.
class HookCodec : public inter::ChunkCodec {
 public:
  HookCodec(const comm::Call& call, const Hook& hook, const inter::Context& context,
            const NodeShard& shard, float* residual)
      : ChunkCodec(context, shard.group, shard.range, 0, shard.in, shard.out, residual),
        call_(call),
        hook_(hook),
        total_(call.scratch.sums.floats()),
        input_(total_ + hook.piece()),
        decoded_(input_ + hook.piece()) {}

  void encode(const comm::Range& part, std::byte* payload) override {
    encode_values(part, false, in_ + part.first, payload);
  }
  void decode(const comm::Range& part, const std::byte* payload) override {
    decode_values(part, true, payload, out_ + part.first);
  }
  void add_and_encode(const comm::Range& part, std::byte* payload,
                      const PayloadFrom& from) override;

  // Returns the text of the hook's first failure on this rank, or "".
  const std::string& failure() const { return failure_; }

 private:
  // Encode and decode values, which are the finished sum if `total` is true, and otherwise the sum
  // of one node.
  void encode_values(const comm::Range& part, bool total, const float* values, std::byte* payload);
  void decode_values(const comm::Range& part, bool total, const std::byte* payload, float* out);
  void decode(const Hook::Piece& piece, const std::byte* payload, std::uint64_t bytes, float* out) {
    const Timed timed(context_.statistics, Stage::decode, "decode", 4 * piece.count);
    note(hook_.decode(call_, piece, payload, bytes, out));
  }
  void note(Status status) {
    if (failure_.empty()) failure_ = failure_of(status);
  }

  const comm::Call& call_;
  const Hook& hook_;
  float *const total_, *const input_, *const decoded_;  // one segment each
  std::string failure_;
};

// Writes this rank's message and the new residual. An infinity or NaN never enters the residual,
// where no later call would remove it.
void HookCodec::encode_values(const comm::Range& part, bool total, const float* values,
                              std::byte* payload) {
  const Hook::Piece piece{shard_.first + part.first, part.count, total};
  float* const lost = residual(part);
  if (lost != nullptr) {
    const float used = residual_factor(device::squared_norm(values, part.count),
                                       device::squared_norm(lost, part.count));
    context_.kernels.combine(1.0f, values, used, lost, part.count, input_, nullptr);
    values = input_;
  }
  std::uint64_t bytes = 0;
  int marked = 0;
  Status status;
  {
    const Timed timed(context_.statistics, Stage::encode, "encode", 4 * part.count);
    context_.kernels.find_beyond(values, kernels::kMaxFloat, part.count, &marked, nullptr);
    if (marked != 0)
      std::transform(values, values + part.count, decoded_,
                     [](float value) { return std::isfinite(value) ? value : 0.0f; });
    status = hook_.encode(call_, piece, marked != 0 ? decoded_ : values, payload, &bytes);
    note(status);
  }
  comm::MessageHeader header = inter::message_header(context_, shard_, part, context_.rank);
  header.payload = comm::kNoPayload;
  if (status == Status::ok) {
    header.payload = bytes | (marked != 0 ? comm::kMarked : 0);
    std::memset(payload + bytes, 0, round_up(bytes, 4) - bytes);
    if (marked != 0) write_marks(values, part.count, payload + round_up(bytes, 4));
    if (lost != nullptr) {
      decode(piece, payload, bytes, decoded_);
      for (std::uint64_t i = 0; i < part.count; ++i)
        if (const float left = values[i] - decoded_[i]; std::isfinite(left)) lost[i] = left;
    }
  }
  comm::write_header(payload - comm::kHeaderBytes, header);
}

// Decodes a message to `out`, or sets `out` to zeros if the hook failed on the sender.
void HookCodec::decode_values(const comm::Range& part, bool total, const std::byte* payload,
                              float* out) {
  const std::uint32_t size = comm::payload_of(payload - comm::kHeaderBytes);
  if (size == comm::kNoPayload) {
    std::memset(out, 0, part.count * sizeof(float));
    return;
  }
  const std::uint32_t bytes = size & ~comm::kMarked;
  decode({shard_.first + part.first, part.count, total}, payload, bytes, out);
  if (size != bytes) put_marked(payload + round_up(bytes, 4), part.count, out);
}

void HookCodec::add_and_encode(const comm::Range& part, std::byte* payload,
                               const PayloadFrom& from) {
  for (int member = 0; member < int(group_.peers.size()); ++member) {
    const float* addend = in_ + part.first;
    if (member != group_.index) {
      decode_values(part, false, from(member), decoded_);
      addend = decoded_;
    }
    if (member == 0)
      std::memcpy(total_, addend, part.count * sizeof(float));
    else
      for (std::uint64_t i = 0; i < part.count; ++i) total_[i] += addend[i];
  }
  encode_values(part, true, total_, payload);
  decode(part, payload);
}

// Returns the layout of the exchange of this rank's shard. It is the same for every device, because
// hooks get host memory.
inter::SegmentedLayout layout_of(const comm::Call& call, const comm::InterNodeGroup& group,
                                 const Hook& hook) {
  const inter::ExchangeSize size{.format = call.plan.format,
                                 .count = own_shard(call).count,
                                 .group_size = int(group.peers.size()),
                                 .me = group.index};
  // The guard bytes let encode() detect an overrun. Marks may overwrite them afterwards.
  const std::size_t message = round_up(comm::kHeaderBytes + round_up(hook.most_bytes(), 4) +
                                           Hook::kGuardBytes + comm::mark_bytes(hook.piece()),
                                       64);
  return {size, inter::hook_segments(size, hook.piece(), message), &call.scratch.objects};
}

Status reserve_codec(const comm::Call& call, const Hook& hook) {
  const comm::InterNodeGroup& group = call.communicator.inter_node_group(call.plan.hierarchy);
  if (group.shard_index >= 0) {
    SLIMPI_TRY(call.reserve_messages(layout_of(call, group, hook).segments().total));
    SLIMPI_TRY(
        call.reserve(call.scratch.sums, device::Place::device, 3 * hook.piece() * sizeof(float)));
  }
  return intra::reserve_node_sum(call, group);
}

// Runs a codec hook, and sets *failure to its first failure on this rank. Any rank's failure makes
// the call fail on all ranks.
Status run_codec(comm::Call& call, const Hook& hook, std::string* failure) {
  return run_in_nodes(call, [&](const NodeShard& shard) {
    if (!shard.owned()) return Status::ok;
    float* residual = nullptr;
    SLIMPI_TRY(find_residual(call, shard.range, &residual));
    inter::Context context = inter::context_of(call);
    context.hook_bytes = hook.most_bytes();
    const inter::SegmentedLayout layout = layout_of(call, shard.group, hook);
    HookCodec codec(call, hook, context, shard, residual);
    SLIMPI_TRY(inter::run_pairwise(context, layout, shard.group.peers, shard.range, codec));
    *failure = codec.failure();
    return Status::ok;
  });
}

Status reserve_hook(const comm::Call& call) {
  const Hook& hook = *hook_of(call.communicator, call.plan);
  if (call.device.staged && !hook.takes_device_memory())
    SLIMPI_TRY(
        call.reserve(call.scratch.staging, device::Place::staging, call.count * sizeof(float)));
  return hook.is_codec() ? reserve_codec(call_on_host(call, nullptr), hook) : Status::ok;
}

Status run_together(comm::Call& call, const Hook& hook) {
  comm::Communicator& communicator = call.communicator;
  if (hook.is_codec()) {
    std::string failure;
    SLIMPI_TRY(run_codec(call, hook, &failure));
    return agree_on_failure(communicator, failure);
  }
  SLIMPI_TRY(agree_on_failure(communicator, failure_of(hook.prepare(call))));
  return agree_on_failure(communicator, failure_of(hook.allreduce(call)));
}

// Runs the hook on the call's buffers. If it fails, all ranks drop the tensor state, since the
// residuals in it may be those of a result that no rank uses.
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

comm::Verdict run_hook(comm::Call& call) {
  const Hook& hook = *hook_of(call.communicator, call.plan);
  if (call.device.staged) SLIMPI_TRY(comm::synchronize(call.device_stream()));
  if (!call.device.staged || hook.takes_device_memory()) return run_in_place(call, hook);

  float* const copy = call.scratch.staging.floats();
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
