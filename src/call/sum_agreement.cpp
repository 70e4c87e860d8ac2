// SPDX-License-Identifier: BSD-3-Clause
// The agreement of the ranks before a call between nodes: which tensor state (residual and so on)
// they use, and whether all values are finite. A reduction gives all ranks the same answers, so all
// ranks decide in the same way whether they leave the call to MPI.
#include <algorithm>
#include <cstring>
#include <utility>

#include "algorithm/algorithm.h"
#include "algorithm/residual_limit.h"
#include "base/described_tensor.h"
#include "base/hash.h"
#include "call/sum.h"
#include "comm/kernel_result.h"
#include "device/device.h"
#include "observe/log.h"

namespace slimpi::call {

struct Sum::Agreement {
  comm::ComparedWord number, history, shape;
  std::uint64_t no_memory, nonfinite, state_nonfinite;  // 1: true on some rank
  std::uint64_t may_overflow;  // a value is not finite, or the sum may overflow
  std::uint64_t state_unfit;   // the state may change the result too much (Functions::state_fits)
  // Used only for elements other than floats. They say whether a GPU has the elements, and whether
  // float32 cannot hold them.
  std::uint64_t on_device, beyond_float32;

  // Returns whether all ranks have the same state.
  bool alike() const { return number.same() && history.same(); }
};

// Enters the number and history of this rank's tensor state, and the shapes of its matrices, into
// the agreement.
void Sum::describe_state(const comm::TensorState& state, Agreement* agreement) const {
  agreement->number = comm::ComparedWord::of(state.number);
  agreement->history = comm::ComparedWord::of(state.history());
  agreement->state_nonfinite = state.nonfinite != 0 ? 1 : 0;
  const Shape shape = plan_.algorithm->shape(plan_, communicator_.config(), call_.count);
  Fnv1a shapes;
  for (const std::uint64_t size : {shape.rows, shape.columns}) shapes.add(size);
  for (const auto& [rows, columns] : plan_.matrices) {
    shapes.add(rows);
    shapes.add(columns);
  }
  agreement->shape = comm::ComparedWord::of(shapes.value());
}

// Hands the tensor state, if the call has one, to the plan's algorithm, and reserves its arrays if
// they are needed. Then fills in this rank's part of the agreement and reduces it over all ranks.
Status Sum::exchange_agreement(Agreement* agreement) {
  comm::TensorState* const state = call_.state;
  if (state != nullptr) state->claim(plan_.algorithm, call_.location);
  *agreement = {};
  agreement->on_device = left_on_device_ ? 1 : 0;
  agreement->beyond_float32 = float32_holds_ ? 0 : 1;
  if (conversion_ != Status::ok) agreement->no_memory = 1;
  if (can_be_read() && (state == nullptr || state->calls >= plan_.start)) {
    if (state != nullptr && plan_.algorithm->reserve_state(call_) != Status::ok) {
      log_failure_once(LogLevel::warn, "no state for a buffer");
      agreement->no_memory = 1;
    }
    Status status = check_values(agreement);
    if (status == Status::ok && agreement->no_memory == 0) status = check_state(agreement);
    if (status == Status::no_memory)
      agreement->no_memory = 1;
    else
      SLIMPI_TRY(status);
  }
  if (state != nullptr) describe_state(*state, agreement);
  std::uint64_t words[sizeof(Agreement) / sizeof(std::uint64_t)];
  std::memcpy(words, agreement, sizeof words);
  SLIMPI_TRY(communicator_.exchange().all_max(words));
  std::memcpy(agreement, words, sizeof words);
  return Status::ok;
}

// Exchanges the agreement. If the ranks' states of this tensor differ in number or history, or one
// of them is not finite, every rank drops the data of its state and the ranks exchange again. Fails
// if the states still differ.
Status Sum::share_state(Agreement* agreement) {
  SLIMPI_TRY(exchange_agreement(agreement));
  if (agreement->alike() && agreement->state_nonfinite == 0) return Status::ok;
  if (!agreement->alike()) {
    runtime_.statistics.count(&Counts::state_dropped);
    if (communicator_.rank() == 0)
      log_once(LogLevel::warn,
               call_.state->key.by == comm::TensorKey::By::name
                   ? "the ranks have different states of the tensor " + call_.state->key.name +
                         ", so all drop theirs; set them on all ranks from one checkpoint"
                   : "the ranks use their buffers in different orders, so state of earlier calls "
                     "is dropped; SLIMPI_CALLS_PER_STEP names buffers by the order of calls");
  } else {
    log_debug("state became infinite; all ranks drop it and start over");
  }
  std::uint64_t number = communicator_.states.next_number();
  SLIMPI_TRY(communicator_.exchange().all_max({&number, 1}));
  communicator_.states.realign(*call_.state, number);
  SLIMPI_TRY(exchange_agreement(agreement));
  if (agreement->alike()) return Status::ok;
  return communicator_.exchange().fail_for_difference(
      "the state of a buffer", std::to_string(call_.state->number),
      "number " + std::to_string(call_.state->number),
      "all ranks make the same calls in one order, and "
      "say the same name by slimpi_describe_next");
}

// Decides, from the reduced agreement, how the call continues.
comm::Verdict Sum::act_on(const Agreement& agreement) {
  if (call_.state != nullptr && call_.state->calls < plan_.start) {
    ++call_.state->calls;
    return BypassReason::start;
  }
  if (!agreement.shape.same()) {
    // The length of a factor depends on the shape, so some ranks have made a new factor in
    // exchange_agreement(). All ranks drop the factor now: the program may correct the shape, and
    // the next sum must not mix an old factor with a new one.
    call_.state->close({comm::StateArray::factor});
    return fail_for_shapes();
  }
  if (agreement.on_device != 0) return BypassReason::datatype;
  if (agreement.beyond_float32 != 0) return BypassReason::precision;
  if (agreement.no_memory != 0) {
    if (call_.state != nullptr && communicator_.rank() == 0)
      log_once(LogLevel::warn, "some rank has no state for a buffer; its calls go to MPI");
    if (call_.state != nullptr) call_.state->drop();
    return BypassReason::failure;
  }
  if (agreement.nonfinite != 0) return BypassReason::nonfinite;
  if (agreement.may_overflow != 0) {
    // The program will discard this training step, so the call runs without error feedback and
    // keeps the residual for the next step.
    plan_.error_feedback = false;
  } else if (agreement.state_unfit != 0) {
    call_.state->uninitialized = true;
    runtime_.statistics.count(&Counts::state_dropped);
  }
  return Status::ok;
}

// Finds the buffer's tensor state if the plan needs one, and ensures that all ranks use the same
// state (share_state()).
comm::Verdict Sum::agree() {
  if (plan_.needs_state)
    SLIMPI_TRY(find_state());
  else if (!plan_.algorithm->finite_only && type_ == ElementType::float32)
    return Status::ok;
  Agreement agreement{};
  SLIMPI_TRY(share_state(&agreement));
  const comm::Verdict verdict = act_on(agreement);
  if (call_.state == nullptr) return verdict;
  if (verdict.left())
    communicator_.states.give_back(*std::exchange(call_.state, nullptr));
  else
    communicator_.states.keep(*call_.state);
  return verdict;
}

// Fails because the ranks have described different shapes (slimpi_describe_next()).
Status Sum::fail_for_shapes() {
  const Shape shape = plan_.algorithm->shape(plan_, communicator_.config(), call_.count);
  std::string text;
  for (const auto& [rows, columns] : plan_.matrices)
    text += (text.empty() ? "" : "+") + std::to_string(rows) + "x" + std::to_string(columns);
  if (text.empty()) text = std::to_string(shape.rows) + "x" + std::to_string(shape.columns);
  return communicator_.exchange().fail_for_difference(
      "the shape of buffers of " + std::to_string(call_.count) + " floats", text, text,
      "call slimpi_describe_next with the same matrices at the same point on all ranks");
}

// Checks this rank's input for values that the algorithm or error feedback cannot take: values that
// are not finite, or whose sum may overflow.
Status Sum::check_values(Agreement* agreement) {
  const bool finite_only = plan_.algorithm->finite_only;
  if (!finite_only && (!plan_.error_feedback || plan_.algorithm->finds_nonfinite))
    return Status::ok;
  const float limit =
      finite_only ? kernels::kMaxFloat : algorithm::safe_limit(plan_.format, communicator_.size());
  bool beyond = false;
  SLIMPI_TRY(comm::find_beyond(call_, in_location_, call_.in, call_.count, limit, &beyond));
  (finite_only ? agreement->nonfinite : agreement->may_overflow) = beyond ? 1 : 0;
  return Status::ok;
}

// Checks whether this rank's state fits the values of the call. state_fits() needs input and output
// on one device, so the input may first be copied to the output, which is safe because no rank
// reads its output before the call ends.
Status Sum::check_state(Agreement* agreement) {
  const auto fits = plan_.algorithm->functions->state_fits;
  if (fits == nullptr || call_.state == nullptr || call_.state->uninitialized) return Status::ok;
  SLIMPI_TRY(colocate_buffers());
  bool fit = false;
  SLIMPI_TRY(fits(call_, &fit));
  agreement->state_unfit = fit ? 0 : 1;
  return Status::ok;
}

// Returns the key of the tensor: the name in its description, or else its position in the step, or
// else its address.
comm::TensorKey Sum::tensor_key() const {
  if (request_.tensor != nullptr && !request_.tensor->name.empty())
    return comm::TensorKey::of_name(request_.tensor->name, call_.count);
  const std::uint64_t step = communicator_.config().calls_per_step;
  if (step != 0)
    return comm::TensorKey::of_index((communicator_.states.calls() - 1) % step, call_.count);
  return comm::TensorKey::of_address(request_.buffer(), call_.count);
}

// Returns TensorKey::placement, a digest of which elements each rank's arrays have; 0 for a
// low-rank algorithm, whose arrays have all elements on every rank.
std::uint64_t Sum::digest_placement() const {
  if (plan_.algorithm->sends_factors) return 0;
  const comm::InterNodeGroup& group = communicator_.inter_node_group(plan_.hierarchy);
  Fnv1a digest;
  digest.add(group.owners);
  if (gather_) digest.add(std::uint64_t(Collective::allgather));  // the state only counts calls
  if (!scatter_) digest.add(group.shards == 1 ? 0 : comm::chunk_alignment(plan_.format));
  for (std::size_t rank = 0; scatter_ && rank < scatter_->blocks.size(); ++rank) {
    digest.add(scatter_->blocks[rank].count);
    digest.add(scatter_->places[rank]);
  }
  return digest.value();
}

// Finds the tensor state. A rank with an empty block receives nothing of the sum, so no address
// identifies the tensor there; it uses the number of the other ranks' state (By::others).
Status Sum::find_state() {
  comm::TensorStates& states = communicator_.states;
  comm::TensorKey key = key_;
  key.placement = digest_placement();
  const auto is_empty = [](const comm::Range& block) { return block.count == 0; };
  if (scatter_ && std::any_of(scatter_->blocks.begin(), scatter_->blocks.end(), is_empty)) {
    const bool asks = key.by == comm::TensorKey::By::address && result_count_ == 0;
    std::uint64_t number = asks ? 0 : states.number_of(key);
    SLIMPI_TRY(communicator_.exchange().all_max({&number, 1}));
    if (asks) key = {comm::TensorKey::By::others, number, {}, key.count, key.placement};
  }
  comm::TensorStates::Lost lost{};
  call_.state = &states.use(key, &lost);
  Statistics& statistics = runtime_.statistics;
  if (lost != comm::TensorStates::Lost::nothing) {
    statistics.count(&Counts::state_dropped);
    const std::string sums_of_step = std::to_string(communicator_.config().calls_per_step);
    if (communicator_.rank() == 0)
      log_once(LogLevel::warn,
               lost == comm::TensorStates::Lost::saved
                   ? "the state that was set for the tensor " + key.name +
                         " is of a sum with another function, other counts or another hierarchy "
                         "than its next sum, so it is dropped"
                   : "a sum has another count than the one in its place in the step before, so "
                     "SLIMPI_CALLS_PER_STEP=" +
                         sums_of_step +
                         " is not the number of sums of every step, and all state of earlier calls "
                         "is dropped; unset it, or name tensors by slimpi_describe_next");
  }
  statistics.count(&Counts::state_calls);
  if (call_.state->calls == 0) statistics.count(&Counts::state_first_times);
  if (call_.state->calls == 1) statistics.count(&Counts::state_second_times);
  return Status::ok;
}

}  // namespace slimpi::call
