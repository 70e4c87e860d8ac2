// SPDX-License-Identifier: BSD-3-Clause
#include "comm/communicator.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <iterator>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "base/hash.h"
#include "comm/memory.h"
#include "comm/waiter.h"
#include "device/device.h"
#include "device/foreign.h"

namespace slimpi::comm {

namespace {

// The changes of Communicator::life_ that may happen, each with its cause.
constexpr struct {
  Life from, to;
} kTransitions[] = {
    {Life::fresh, Life::refused},       // refuse_to_meet()
    {Life::fresh, Life::connecting},    // the first sum
    {Life::refused, Life::connecting},  // the first blocking sum after nonblocking sums
    {Life::fresh, Life::failed},        // no memory in a fiber, before the ranks connect
    {Life::refused, Life::failed},      // no memory in a fiber, before the ranks connect
    {Life::connecting, Life::connected},
    {Life::connecting, Life::unusable},  // no room for another internal communicator
    {Life::connecting, Life::failed},    // some rank takes no part, or any failure in a fiber
    {Life::connected, Life::agreed},
    {Life::connected, Life::unusable},  // in a fiber: some process serves too many communicators
    {Life::agreed, Life::connected},    // MPI_Comm_set_info
    {Life::agreed, Life::laid_out},     // the first sum that policy takes
    {Life::agreed, Life::unusable},     // MPI has no context id left
    {Life::laid_out, Life::outdated},   // MPI_Comm_set_info
    {Life::outdated, Life::laid_out},   // no option has changed
    {Life::outdated, Life::connected},  // some option has changed on some rank
};

// An option or other item that must be equal on all ranks: the value to compare, the user's text
// for it, and what the user can do if it differs.
struct Entry {
  std::string name, value, text;
  const char* remedy = "start all ranks with the same value";
};

std::vector<Entry> entries_to_agree(const Config& config, const std::string& rules,
                                    const std::string& communicator) {
  constexpr const char* kVersion = SLIMPI_PACKAGE_VERSION;
  // The version comes first, because another version may have other options.
  std::vector<Entry> entries = {{"the version of slimpi", kVersion, kVersion}};
  const auto& rows = option_rows();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].scope == Scope::agree || rows[i].scope == Scope::job) {
      // Texts are shown in lower case, because case matters only in paths and in the rules (below).
      const std::string& text = config.given[i].text;
      const std::string published = text.find(":/") != text.npos ? text : lower_case(text);
      entries.push_back({rows[i].variable, config.value_text(Option(i)),
                         published.empty() ? "(unset)" : published});
    }
  entries.push_back({"SLIMPI_RULES", rules,
                     "for \"" + communicator + "\" " + (rules.empty() ? "(no rule)" : rules),
                     "give the communicator the same name on all ranks (MPI_Comm_set_name), and "
                     "start all with the same rules"});
  return entries;
}

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

void Communicator::enter(Life life) {
  assert(std::any_of(std::begin(kTransitions), std::end(kTransitions), [&](const auto& each) {
    return each.from == life_.load() && each.to == life;
  }));
  life_.store(life, std::memory_order_release);
}

// The constructor is not collective and sends nothing, because each rank makes this object at its
// own first call, at a time of its own.
Communicator::Communicator(const mpi::Api& api, Statistics& statistics, const Config& config,
                           mpi::Comm user)
    : id(next_id()),
      api_(api),
      statistics_(statistics),
      config_(config),
      user_(user),
      exchange_(api, statistics) {
  CallScratchPool::instance().add_user();
  int inter = 0;
  api.Comm_test_inter(user, &inter);
  inter_ = inter != 0;
  api.Comm_rank(user, &rank_);
  api.Comm_size(user, &size_);
}

Communicator::Communicator(const Communicator& parent, int number, int channel)
    : id(next_id()),
      spans_other_world(parent.spans_other_world),
      states(parent.states.restored()),
      api_(parent.api_),
      statistics_(parent.statistics_),
      config_(parent.config_),
      user_(parent.user_),
      rank_(parent.rank_),
      size_(parent.size_),
      number_(number),
      name_(parent.name_),
      life_(Life::laid_out),
      foreign_possible_(parent.foreign_possible_),
      devices_possible_(parent.devices_possible_),
      threaded_(parent.threaded_),
      layout_(parent.layout_),
      exchange_(parent.api_, parent.statistics_) {
  CallScratchPool::instance().add_user();
  exchange_.open(parent.exchange_.internal(), channel, number);
  exchange_.set_layout(&layout_);
  exchange_.set_timeout(parent.exchange_.timeout());
  // A persistent sum has one tensor at one address, so SLIMPI_CALLS_PER_STEP is not needed.
  config_.calls_per_step = 0;
}

void Communicator::read_name() {
  if (connected()) return;
  char name[mpi::kObjectName] = "";
  int length = 0;
  if (api_.Comm_get_name(user_, name, &length) == mpi::kSuccess) name_ = name;
}

Communicator::~Communicator() {
  set_freed();
  // The attachments go first, because they may need the internal communicator to free their
  // objects.
  attachments_.clear();
  CallScratchPool::instance().remove_user();
  for (const auto& [role, stream] : streams_) std::get<0>(role)->close_stream(stream);
}

// Returns a function that calls `poll` until it is done. A rank may come late to its first call, or
// never, so a report of the wait names the ranks that have sent nothing (`arrivals`, see
// mpi::WaitFor). The wait does not look for failure reports, because the communicator that carries
// them does not exist yet.
mpi::WaitFor Communicator::waits() {
  return [this](const mpi::Poll& poll, std::span<const int> arrivals, bool limited) {
    Waiter waiter(Waiter::Poll::mpi, nullptr, WaitStage::new_communicator);
    waiter.set_arrivals(arrivals, limited ? longest_wait() : std::chrono::seconds(0));
    return wait_until(waiter, poll);
  };
}

Status Communicator::make_internal_comm() {
  const bool in_fiber = Fiber::inside();
  enter(Life::connecting);
  mpi::Comm made = mpi::abi.comm_null;
  const Status status =
      mpi::make_internal(api_, user_, waits(), in_fiber, &made, &number_, &refusal_);
  if (status == Status::ok) {
    exchange_.open(std::make_shared<InternalComm>(api_, made), 0, number_);
    exchange_.internal()->user = user_;
    enter(Life::connected);
    return Status::ok;
  }
  // Whether other ranks are in another call, in MPI, or absent, so that this rank cannot leave the
  // sum to MPI together with them.
  const bool apart = status == Status::disagreement || status == Status::absent;
  enter(in_fiber || apart ? Life::failed : Life::unusable);
  return status;
}

// Makes the ranks compare their options, before the first sum and again after MPI_Comm_set_info.
// The error names the first option that differs. Every rank takes the same steps, whatever its own
// values.
Status Communicator::compare_options(const std::string& rules) {
  if (!connected()) SLIMPI_TRY(make_internal_comm());
  exchange_.set_timeout(longest_wait());

  const std::vector<Entry> entries = entries_to_agree(config_, rules, name());
  std::vector<std::uint64_t> words;
  for (const Entry& entry : entries) {
    const auto hash = ComparedWord::of(text_hash(entry.value));
    words.insert(words.end(), hash.words.begin(), hash.words.end());
  }
  // Further words that the ranks exchange in the same message as the options.
  enum Extra { kChanged, kUnthreaded, kForeign, kDevices, kWithoutWorld, kReports, kExtras };
  words.resize(words.size() + kExtras);
  const std::span<std::uint64_t> extras = std::span(words).last(kExtras);
  extras[kChanged] = changed_ ? 1 : 0;
  extras[kUnthreaded] = mpi::can_help(api_) ? 0 : 1;
  extras[kForeign] = device::foreign_possible() ? 1 : 0;
  extras[kDevices] = device::others() ? 1 : 0;
  extras[kWithoutWorld] = mpi::has_world(api_) ? 0 : 1;
  extras[kReports] = config_.report || config_.estimate ? 1 : 0;
  SLIMPI_TRY(exchange_.all_max(words));
  devices_possible_ = extras[kDevices] != 0;
  foreign_possible_ = extras[kForeign] != 0;
  threaded_ = extras[kUnthreaded] == 0;
  without_world_ = extras[kWithoutWorld] != 0;
  reports_ = extras[kReports] != 0;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (!ComparedWord{{words[2 * i], words[2 * i + 1]}}.same())
      return exchange_.fail_for_difference(entries[i].name, entries[i].value, entries[i].text,
                                           entries[i].remedy);
  // If any rank has changed options, all ranks drop what depends on the options.
  if (extras[kChanged] != 0) start_anew();
  SLIMPI_TRY(nonblocking.compare_before_agreed(exchange_));
  if (refusal_ != mpi::Refusal::none) enter(Life::unusable);
  SLIMPI_TRY(mpi::refuse(refusal_));
  enter(is_in(Life::outdated) ? Life::laid_out : Life::agreed);
  return Status::ok;
}

Status NonblockingSums::compare(Exchange& exchange, std::uint64_t* most) {
  comparing_.store(true, std::memory_order_release);
  std::uint64_t last = begun_;
  const Status status = exchange.all_max({&last, 1});
  *most = last;
  comparing_.store(false, std::memory_order_release);
  return status;
}

std::chrono::seconds Communicator::longest_wait() const {
  return own_limit_.value_or(std::chrono::seconds(config_.timeout.value_or(0)));
}

void Communicator::limit_waits(std::chrono::seconds most) {
  own_limit_ = most;
  exchange_.set_timeout(most);
}

void Communicator::compare_options_again() {
  if (is_in(Life::agreed)) enter(Life::connected);
  if (is_in(Life::laid_out)) enter(Life::outdated);
}

void Communicator::set_freed() {
  freed_ = true;
  // Only channel 0 belongs to the program's communicator. The destructor of a persistent sum's
  // Communicator also comes here, while the program's communicator may live on.
  if (!connected() || exchange_.channel() != 0) return;
  const std::lock_guard lock(exchange_.internal()->mutex);
  exchange_.internal()->user = mpi::abi.comm_null;
}

Status Communicator::check_revoked() const {
  if (!connected()) return Status::ok;
  const std::lock_guard lock(exchange_.internal()->mutex);
  return exchange_.internal()->check_revoked();
}

void Communicator::give_up(Status status) {
  if (connected()) {
    if (status == Status::rank_failed || status == Status::revoked)
      exchange_.internal()->failed_by.store(status);
    if (!exchange_.internal()->failed.exchange(true)) mpi::lose_internal();
  } else if (!is_in(Life::failed))
    enter(Life::failed);
}

ActiveCall::Subject Communicator::subject(std::uint64_t count, std::string_view tensor,
                                          Function function) const {
  return {std::uint64_t(number_),
          name_,
          rank_,
          size_,
          last_number_,
          count,
          exchange_.trace().first_world_rank(),
          tensor,
          function};
}

void Communicator::send_refusal(mpi::Refusal refusal) {
  sent_.push_back(mpi::FirstExchange::make());
  (void)sent_.back()->begin(api_, user_, 0, refusal);
}

void Communicator::refuse_to_meet(mpi::Refusal why) {
  if (!is_in(Life::fresh)) return;
  enter(Life::refused);
  send_refusal(why);
}

void Communicator::end_nonblocking() {
  if (nonblocking.end_undecided() && unusable()) exchange_.close();
}

void Communicator::refuse_type(ElementType type) {
  if (nonblocking.any() || connected() || unusable() || failed() || refused_types_.has(type))
    return;
  refused_types_.add(type);
  send_refusal(mpi::Refusal::other_types);
}

void Communicator::finish_refusals() {
  for (auto& sent : sent_)
    if (sent->wait(waits(), true) != Status::ok) return;
  sent_.clear();
}

void Communicator::end_calls() {
  const std::lock_guard lock(exchange_.internal()->mutex);
  exchange_.internal()->roll_call.end_calls(std::uint32_t(number_), std::uint32_t(last_number_));
}

void Communicator::begin_end(int* word, mpi::Request* request) {
  sent_.clear();  // MPI has completed them by now
  if (!connected() || failed()) return;
  end_calls();
  {
    const std::lock_guard lock(exchange_.internal()->mutex);
    exchange_.internal()->roll_call.finalize();
  }
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

// Drops what was derived from the options. All ranks do so at the same call, because what follows
// is collective. The internal communicator, the streams, and what the attachments choose to keep,
// stay.
void Communicator::start_anew() {
  changed_ = false;
  if (is_in(Life::outdated)) enter(Life::connected);
  group_.clear();
  states.drop_all();
  for (const auto& [key, attached] : attachments_) attached->options_changed();
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

bool Communicator::streams_end(std::initializer_list<device::Location> locations) {
  using Clock = std::chrono::steady_clock;
  const FailureScope cleaning_up;
  const auto limit = Clock::now() + std::chrono::seconds(2);
  Waiter waiter(Waiter::Poll::device);
  const auto ended = [&](const device::Device& device, device::Stream* stream) {
    std::uint64_t event = 0;
    bool done = false;
    SLIMPI_TRY(device.record(stream, &event));
    while (!done && Clock::now() < limit) {
      SLIMPI_TRY(device.query(stream, event, &done));
      if (!done) waiter.rest();
    }
    return done ? Status::ok : Status::device;
  };
  bool all = true;
  for (const device::Location& at : locations)
    for (const StreamRole role : {StreamRole::compute, StreamRole::d2h, StreamRole::h2d}) {
      const auto found = streams_.find({at.device, at.ordinal, at.generation, role});
      if (found == streams_.end() || found->second == nullptr) continue;
      if (caught([&] { return ended(*at.device, found->second); }) != Status::ok) all = false;
    }
  return all;
}

Status Call::reserve(Memory& memory, device::Place place, std::size_t bytes) const {
  return memory.reserve(location, place, bytes, communicator.statistics());
}

Status Call::reserve_messages(std::size_t bytes) const {
  if (bytes == 0) return Status::ok;
  SLIMPI_TRY(reserve(scratch.near, device::Place::device, bytes));
  return device.staged ? reserve(scratch.staging, device::Place::staging, bytes) : Status::ok;
}

}  // namespace slimpi::comm
