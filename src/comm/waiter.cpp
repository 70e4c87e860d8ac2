// SPDX-License-Identifier: BSD-3-Clause
#include "comm/waiter.h"

#include <sched.h>
#include <time.h>

#include <atomic>
#include <mutex>

#include "base/fiber.h"
#include "base/process_manager.h"
#include "comm/exchange.h"
#include "observe/log.h"

namespace slimpi::comm {

namespace {

using std::chrono::seconds;

// A waiting thread polls, and between polls it checks now and then whether the wait must end
// (Waiter::check()). This many polls of a word in memory come before the first check and the
// first yield; they take one or two microseconds.
constexpr unsigned kMemoryPolls = 64;
// How many polls of MPI or a driver lie between two checks; they take a fraction of a millisecond.
constexpr unsigned kLibraryPolls = 1024;
// How many polls of a nonblocking call, made in the program's MPI calls, lie between two checks.
constexpr unsigned kFiberPolls = 16;

// The time between two polls while another thread of slimpi is in a blocking function of MPI.
constexpr auto kBesideBlocking = std::chrono::microseconds(50);

// After this time a wait is shown in the record of its call, and the rank answers questions.
constexpr auto kPublished = std::chrono::milliseconds(50);
// After this time a rank that waits asks the others what they sum, and compares.
constexpr seconds kCompared(2);
// How long the other ranks have to answer.
constexpr seconds kTimeToAnswer(1);
// If a check comes later than this after the last one, only this much of the time counts as
// waiting.
constexpr seconds kLongestLook(1);

class Linux final : public WaitPolicy::System {
 public:
  WaitPolicy::Time now() override { return std::chrono::steady_clock::now().time_since_epoch(); }
  void yield() override { sched_yield(); }
  void sleep(WaitPolicy::Time time) override {
    const timespec length{0, time.count()};
    nanosleep(&length, nullptr);
  }
  WaitPolicy::Time used_by_thread() override { return time_of(CLOCK_THREAD_CPUTIME_ID); }
  WaitPolicy::Time used_by_program() override {
    return time_of(CLOCK_PROCESS_CPUTIME_ID) - used_by_thread();
  }
  void relax() override {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#endif
  }

 private:
  static WaitPolicy::Time time_of(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
};

constinit Linux g_system;
// Each thread has its own policy, because it has its own core and competitors.
constinit thread_local WaitPolicy t_policy(g_system);
constinit thread_local bool t_without_rest = false;
// When the first message that fibers wait for is due; 0: unknown.
constinit std::atomic<WaitPolicy::Time::rep> g_fiber_due{0};
// How many waits fibers have begun.
constinit std::atomic<std::uint64_t> g_fiber_waits{0};

// Returns whether a rank of MPI_COMM_WORLD takes part in an exchange. Returns true for -1, which
// stands for any rank.
bool takes_part(const Exchange& exchange, int rank) {
  const mpi::Api& api = exchange.api();
  mpi::Group all = mpi::abi.group_null, group = mpi::abi.group_null;
  int place = 0;
  if (rank < 0 || !mpi::has_world(api) || api.Comm_group(mpi::abi.comm_world, &all) != 0)
    return true;
  if (api.Comm_group(exchange.comm(), &group) == 0) {
    api.Group_translate_ranks(all, 1, &rank, group, &place);
    api.Group_free(&group);
  }
  api.Group_free(&all);
  return place >= 0;  // MPI_UNDEFINED is negative
}

}  // namespace

Waiter::Waiter(Poll poll, PointToPoint* exchange, WaitStage stage, const mpi::Request* request)
    : poll_(poll),
      exchange_(exchange),
      polls_to_check_(Fiber::inside()        ? kFiberPolls
                      : poll == Poll::memory ? kMemoryPolls
                                             : kLibraryPolls),
      rests_{poll == Poll::memory ? kMemoryPolls : 0},
      asks_(exchange == nullptr ? nullptr : exchange->exchange()),
      request_(request),
      stage_(stage) {}

bool Waiter::give_way() {
  // MPI makes no progress while a driver is polled, but a peer may be waiting for a message that
  // MPI has not sent yet. So MPI gets a turn here.
  if (poll_ == Poll::device && exchange_ != nullptr) exchange_->progress();
  if (Fiber::inside())
    note_fiber();
  else if (!rested_ && request_ != nullptr && asks_ != nullptr && t_policy.contended())
    rests_.due = asks_->due(*request_, now());
  rested_ = true;
  if (let_fibers_run() || t_without_rest) return false;
  if (poll_ != Poll::device) return !follow_fibers() && pass_time();
  // Some operations of a driver make progress only while it is polled, so the thread never sleeps.
  sched_yield();
  return false;
}

// Passes the time, and returns whether the core was given away for long. If a thread of slimpi runs
// a blocking function of MPI, leaves the core to it, because MPI polls there without a pause.
bool Waiter::pass_time() {
  if (g_blocking <= g_abandoned) return t_policy.rest(rests_);
  sleep_beside_blocking(kBesideBlocking);
  return true;
}

// Notes, before a fiber is left, when the message that it waits for is due. The first time, also
// counts the wait.
void Waiter::note_fiber() {
  if (!rested_) {
    g_fiber_waits.fetch_add(1, std::memory_order_relaxed);
    if (request_ != nullptr && asks_ != nullptr) rests_.due = asks_->due(*request_, now());
  }
  const auto due = rests_.due.count(), earliest = g_fiber_due.load(std::memory_order_relaxed);
  if (due != 0 && (earliest == 0 || due < earliest))
    g_fiber_due.store(due, std::memory_order_relaxed);
}

// Called by a thread that waits while fibers run. Makes its wait end when a fiber's next message is
// due. Returns true if messages of fibers have arrived since the last look. More may then have
// arrived, so the thread polls again at once.
bool Waiter::follow_fibers() {
  if (request_ != nullptr || poll_ != Poll::mpi || g_fibers == 0) return false;
  const bool moved = fibers_moved(&fiber_waits_);
  if (moved) rests_ = {.first_spins = rests_.first_spins};
  rests_.due = fibers_due();
  return moved;
}

bool fibers_moved(std::uint64_t* seen) {
  const std::uint64_t before = *seen;
  *seen = g_fiber_waits.load(std::memory_order_relaxed);
  return *seen != before;
}

WaitPolicy::Time fibers_due() {
  return WaitPolicy::Time(g_fiber_due.load(std::memory_order_relaxed));
}

void forget_fibers_due() {
  g_fiber_due.store(0, std::memory_order_relaxed);
}

WaitPolicy::Time now() {
  return g_system.now();
}

void poll_without_rest() {
  t_without_rest = true;
}

Status Waiter::check() {
  const auto now = Clock::now();
  // The clock is not read before the first check, because most waits end earlier.
  if (began_ == Clock::time_point{}) began_ = looked_ = now;
  // Time in which the process was suspended, or could not check for another reason, does not count.
  if (const auto stood = now - looked_ - kLongestLook; stood > Clock::duration::zero()) {
    began_ += stood;
    asked_at_ += stood;
  }
  looked_ = now;
  if (now - began_ >= kPublished) SLIMPI_TRY(check_long(now));
  return exchange_ == nullptr ? Status::ok : exchange_->check();
}

Waiter::Question Waiter::question_due(Clock::duration waited) const {
  // A limit of 0 means never. Before a timeout the question comes kTimeToAnswer earlier, so that
  // the answers are there in time.
  if (timeout_.count() != 0 && waited >= timeout_ - kTimeToAnswer) return Question::timeout;
  if (const seconds stall = stall_limit(); stall.count() != 0 && waited >= stall)
    return Question::report;
  return waited >= kCompared ? Question::compare : Question::none;
}

// Shows the wait in the record of the call, once.
void Waiter::publish() {
  if (published_) return;
  if (asks_ != nullptr && request_ != nullptr) stage_ = asks_->stage_of(*request_);
  if (ActiveCall* const call = ActiveCall::current(); call != nullptr) call->waits(stage_, began_);
  published_ = true;
}

void Waiter::ask_if_due(Clock::time_point now) {
  const Question due = question_due(now - began_);
  if (due <= question_) return;
  question_ = due;
  asked_at_ = now;
  const int peer = asks_ != nullptr && request_ != nullptr ? asks_->peer_of(*request_) : -1;
  asked_ = asks_ != nullptr && asks_->roll_call().ask(asks_->comm(), peer);
}

// Warns, once, that the wait lasts long, without ending it.
void Waiter::report(seconds waited) {
  const seconds stall = stall_limit();
  if (stall.count() == 0 || waited < stall || reported_) return;
  reported_ = true;
  log_warn("waits for " + describe(waited));
  if (ActiveCall* const call = ActiveCall::current(); call != nullptr)
    call->reported(describe_absent());
}

// Handles a wait that lasts long: asks the ranks, compares their answers, reports, and fails after
// SLIMPI_TIMEOUT. A rank that has not answered in time computes, or blocks in MPI, or has left the
// job.
Status Waiter::check_long(Clock::time_point now) {
  publish();
  std::unique_lock<std::recursive_mutex> lock;
  if (asks_ != nullptr) {
    timeout_ = asks_->timeout();
    lock = std::unique_lock(asks_->internal()->mutex);
    asks_->serve_roll_call();
  }
  // Compare at every check, because answers arrive at any time.
  const ActiveCall* const call = ActiveCall::current();
  if (asked_ && call != nullptr) SLIMPI_TRY(asks_->roll_call().compare(*call));
  if (const auto lost = lost_rank(); lost && asks_ != nullptr && takes_part(*asks_, lost->rank))
    return fail(Status::absent, lost->text + " and does not take part in " +
                                    (call != nullptr ? describe_call(call->record()) : "a sum"));
  ask_if_due(now);
  if (asked_ && now - asked_at_ < kTimeToAnswer && !asks_->roll_call().silent().empty())
    return Status::ok;
  const auto waited = std::chrono::floor<seconds>(now - began_);
  if (question_ == Question::timeout && waited >= timeout_)
    return fail(Status::absent, "waited " + describe(waited) +
                                    "; SLIMPI_TIMEOUT=" + std::to_string(timeout_.count()) +
                                    ", or the timeout of PyTorch's process group, is the limit");
  report(waited);
  return Status::ok;
}

// Returns the ranks that this rank waits for and that have not answered, as far as it knows them.
std::vector<int> Waiter::absent() const {
  if (asked_ && arrivals_.empty()) return asks_->roll_call().silent();
  std::vector<int> absent;
  for (std::size_t rank = 0; rank < arrivals_.size(); ++rank)
    if (arrivals_[rank] < 0) absent.push_back(int(rank));
  if (arrivals_.empty() && asks_ != nullptr && request_ != nullptr)
    if (const int peer = asks_->peer_of(*request_); peer >= 0) absent.push_back(peer);
  return absent;
}

std::string Waiter::describe_absent() const {
  const std::vector<int> absent = this->absent();
  if (absent.empty() && asked_) return "every rank that was asked has answered";
  if (absent.empty() && stage_ == WaitStage::device) return "for a device of this rank";
  if (absent.empty()) return "MPI does not tell from which ranks";
  return "not heard from: " + describe_ranks(absent) + ", which " +
         (absent.size() == 1 ? "is" : "are") + " late, or left this call to MPI, or run" +
         (absent.size() == 1 ? "s" : "") + " without slimpi";
}

std::string Waiter::describe(seconds waited) const {
  const ActiveCall* const call = ActiveCall::current();
  std::string text = std::to_string(waited.count()) + " s in ";
  text += call != nullptr ? describe_call(call->record()) : "no call";
  text += std::string(", stage ") + to_string(stage_) + ": " + describe_absent();
  if (asked_ && call != nullptr) text += asks_->roll_call().describe(*call);
  return text;
}

void Waiter::end() {
  if (ActiveCall* const call = ActiveCall::current(); call != nullptr) call->works();
}

}  // namespace slimpi::comm
