// SPDX-License-Identifier: BSD-3-Clause
#include "comm/communicator.h"

#include "base/fiber.h"
#include "comm/call_scratch.h"
#include "comm/waiter.h"
#include "observe/log.h"

namespace slimpi::comm {

// Not collective, and sends nothing: ranks make it at their own first call, at different times.
Communicator::Communicator(const mpi::Api& api, Statistics& statistics, const Config& config,
                           mpi::Comm user)
    : api_(api), statistics_(statistics), config_(config), user_(user), exchange_(api, statistics) {
  CallScratchPool::instance().add_user();
  int inter = 0;
  api.Comm_test_inter(user, &inter);
  inter_ = inter != 0;
  api.Comm_rank(user, &rank_);
  api.Comm_size(user, &size_);
}

Communicator::Communicator(const Communicator& parent, int number, int channel)
    : spans_other_world(parent.spans_other_world),
      api_(parent.api_),
      statistics_(parent.statistics_),
      config_(parent.config_),
      user_(parent.user_),
      rank_(parent.rank_),
      size_(parent.size_),
      number_(number),
      agreed_(true),
      laid_out_(true),
      foreign_possible_(parent.foreign_possible_),
      threaded_(parent.threaded_),
      name_(parent.name_),
      layout_(parent.layout_),
      exchange_(parent.api_, parent.statistics_) {
  CallScratchPool::instance().add_user();
  exchange_.open(parent.exchange_.internal(), channel, number);
  exchange_.set_layout(&layout_);
  exchange_.set_timeout(parent.exchange_.timeout());
  // The sum has one tensor, in one place.
  config_.calls_per_step = 0;
}

void Communicator::read_name() {
  if (connected()) return;
  char name[mpi::kObjectName] = "";
  int length = 0;
  if (api_.Comm_get_name(user_, name, &length) == mpi::kSuccess) name_ = name;
}

Communicator::~Communicator() {
  // First: they may free what needs the internal communicator.
  attachments_.clear();
  CallScratchPool::instance().remove_user();
  for (const auto& [role, stream] : streams_) std::get<0>(role)->close_stream(stream);
}

// A rank may come late to its first call, or never. The wait names those from which nothing has
// come (`arrivals`, as in mpi::WaitFor). It looks for no failure report: the communicator on which
// ranks report failures is what they are making.
Status Communicator::wait_for_ranks(mpi::Request& request, std::span<const int> arrivals) {
  Waiter waiter(Waiter::Poll::mpi, nullptr, WaitStage::new_communicator);
  waiter.set_arrivals(arrivals, std::chrono::seconds(config_.timeout.value_or(0)));
  for (int done = 0;;) {
    const int code = api_.Test(&request, &done, mpi::abi.status_ignore);
    if (code != mpi::kSuccess) return fail(Status::mpi, mpi::error_text(api_, code));
    if (done != 0) return Status::ok;
    SLIMPI_TRY(waiter.pause());
  }
}

Status Communicator::make_internal_comm() {
  const auto wait = [this](mpi::Request& request, std::span<const int> arrivals) {
    return wait_for_ranks(request, arrivals);
  };
  const bool in_fiber = Fiber::inside();
  (in_fiber ? failed_ : unusable_) = true;
  mpi::Comm made = mpi::abi.comm_null;
  const Status status = mpi::make_internal(api_, user_, wait, in_fiber, &made, &number_, &refusal_);
  // The others are not in the sum, or have not left it to MPI.
  if (status == Status::disagreement || status == Status::absent) failed_ = true, unusable_ = false;
  SLIMPI_TRY(status);
  unusable_ = failed_ = false;
  exchange_.open(std::make_shared<InternalComm>(api_, made), 0, number_);
  return Status::ok;
}

// Sums of a channel have their own number, as those of another communicator have.
Status Communicator::new_channel(int* number, int* channel) {
  std::uint64_t words[] = {std::uint64_t(mpi::next_number()), 0};
  for (int proposed = 1;;) {
    proposed = exchange_.internal()->free_channel(proposed);
    // The largest word wins, so that a rank without a free channel ends the search.
    words[1] =
        proposed < 0 ? std::uint64_t(exchange_.internal()->channels()) : std::uint64_t(proposed);
    SLIMPI_TRY(exchange_.all_max(words));
    *channel = int(words[1]);
    if (*channel == exchange_.internal()->channels()) *channel = -1;
    bool all = *channel < 0 || *channel == exchange_.internal()->free_channel(*channel);
    SLIMPI_TRY(exchange_.all_true(&all));
    if (all) break;
    proposed = *channel + 1;
  }
  *number = int(words[0]);
  mpi::use_number(*number);
  return Status::ok;
}

void Communicator::send_refusal(mpi::Refusal refusal) {
  sent_.push_back(mpi::FirstExchange::make());
  (void)sent_.back()->begin(api_, user_, 0, refusal);
}

void Communicator::refuse_to_meet() {
  if (!std::exchange(refused_, true)) send_refusal(mpi::Refusal::single_threaded);
}

void Communicator::refuse_type(ElementType type) {
  if (begun_ != 0 || connected() || unusable_ || failed_ || refused_types_.has(type)) return;
  refused_types_.add(type);
  send_refusal(mpi::Refusal::other_types);
}

void Communicator::finish_refusals() {
  for (auto& sent : sent_)
    if (wait_for_ranks(sent->request, sent->arrivals()) != Status::ok) return;
  sent_.clear();
}

void Communicator::end_calls() {
  exchange_.internal()->roll_call.end_calls(std::uint32_t(number_), std::uint32_t(taken));
}

void Communicator::begin_end(int* word, mpi::Request* request) {
  sent_.clear();  // by now MPI has completed them
  if (!connected() || failed()) return;
  end_calls();
  exchange_.internal()->roll_call.finalize();
  *word = 0;
  (void)api_.Iallreduce(mpi::abi.in_place, word, 1, mpi::abi.type_int, mpi::abi.op_max,
                        exchange_.comm(), request);
}

bool Communicator::serve_end() {
  exchange_.serve_roll_call();
  (void)exchange_.check();
  return exchange_.internal()->failed_count == 0;
}

void Communicator::abandon() {
  if (connected()) exchange_.internal()->abandon();
  for (auto& sent : sent_) (void)sent.release();
  sent_.clear();
  for (const auto& [key, attached] : attachments_) attached->abandon();
}

// Drops what was derived from the options. On all ranks at the same call, because what follows is
// collective. The internal communicator, streams and attached memory stay; an attachment drops what
// it derived from the options itself.
void Communicator::start_anew() {
  changed_ = laid_out_ = false;
  group_.clear();
  states.drop_all();
  for (const auto& [key, attached] : attachments_) attached->options_changed();
}

const InterNodeGroup& Communicator::inter_node_group(Hierarchy hierarchy) {
  // One for each hierarchy at most. A reference is valid until the options change.
  const auto found = group_.find(hierarchy);
  if (found != group_.end()) return found->second;
  return group_.emplace(hierarchy, make_inter_node_group(layout_, hierarchy)).first->second;
}

Status Communicator::stream_for(const device::Location& location, device::Stream** stream,
                                StreamRole role) {
  *stream = nullptr;
  const device::Device& device = *location.device;
  if (&device == &device::host()) return Status::ok;
  // A GPU that was reset has a new generation, and gets new streams.
  device::Stream*& known = streams_[{&device, location.ordinal, location.generation, role}];
  if (known == nullptr) SLIMPI_TRY(device.open_stream(location, &known));
  *stream = known;
  return Status::ok;
}

Status Communicator::agree_on_made(Status here, bool* all) {
  if (here != Status::ok) log_failure_once(LogLevel::warn, "some sums go to MPI on all ranks");
  *all = here == Status::ok;
  return exchange_.all_true(all);
}

}  // namespace slimpi::comm
