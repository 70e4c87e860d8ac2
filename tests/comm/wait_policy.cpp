// SPDX-License-Identifier: BSD-3-Clause
// How a thread that waits uses its core. The operating system is simulated: after a yield, other
// threads have the core for a given time.
#include "comm/wait_policy.h"

#include "tests/helper/base/unit_test.h"

using slimpi::comm::ArrivalRate;
using slimpi::comm::WaitPolicy;
using namespace std::chrono_literals;
using Time = WaitPolicy::Time;

namespace {

class Core final : public WaitPolicy::System {
 public:
  Time away = 300ns;      // what a yield takes
  bool computes = false;  // the program's other threads compute, and get this time
  int yields = 0, sleeps = 0, pauses = 0, losses = 0;
  Time slept{};

  Time now() override {
    work(25ns);
    return now_;
  }
  void yield() override {
    ++yields;
    losses += away >= 1ms;
    pass(away - 300ns);
    work(300ns);
  }
  void sleep(Time time) override {
    ++sleeps;
    slept += time;
    pass(time + 60us);
  }
  void relax() override {
    ++pauses;
    work(50ns);
  }
  Time used_by_thread() override { return own_; }
  Time used_by_program() override { return program_; }
  void work(Time time) {
    now_ += time;
    own_ += time;
  }

 private:
  void pass(Time time) {
    now_ += time;
    if (computes) program_ += time;
  }

  Time now_ = 1s, own_{}, program_{};
};

// Waits by polls of a microsecond for an event that comes `after` the begin. Returns the time of
// the wait.
Time wait(WaitPolicy& policy, Core& core, Time after) {
  const Time begin = core.now();
  WaitPolicy::Wait one;
  while (core.now() - begin < after) {
    core.work(1us);
    (void)policy.rest(one);
  }
  return core.now() - begin;
}

// Waits for `total`, 100 us each, with as much work between them. Returns the part that the waits
// take.
double run(WaitPolicy& policy, Core& core, Time total) {
  Time waited{};
  const Time begin = core.now(), end = begin + total;
  while (core.now() < end) {
    core.work(100us);
    waited += wait(policy, core, 100us);
  }
  return double(waited.count()) / double((core.now() - begin).count());
}

constexpr Time kRank = 60us, kSlice = 4ms;  // what a rank, or a thread that computes, keeps a core

UNIT_TEST(alone_it_yields_and_loses_nothing) {
  Core core;
  WaitPolicy policy(core);
  run(policy, core, 1s);
  assert_true(core.yields > 0);
  assert_int_equal(core.sleeps + core.pauses, 0);
  assert_true(wait(policy, core, 100us) < 102us);
}

// Other ranks give the core back when they wait, too.
UNIT_TEST(beside_ranks_it_yields) {
  Core core;
  core.away = kRank;
  WaitPolicy policy(core);
  run(policy, core, 1s);
  assert_false(policy.contended());
  assert_int_equal(core.sleeps + core.pauses, 0);
}

// In 10 s, the thread yields again after 0.1, 0.2, 0.4 s and so on.
UNIT_TEST(beside_others_it_keeps_its_core_in_short_waits) {
  Core core;
  core.away = kSlice;
  WaitPolicy policy(core);
  const double part = run(policy, core, 10s);
  assert_true(policy.contended());
  assert_in_range(core.yields, 4, 9);
  assert_true(part < 0.52);
}

// A sleep lasts a sixteenth of the wait so far, so the end of the wait is found late by no more.
UNIT_TEST(beside_others_it_sleeps_in_long_waits) {
  Core core;
  core.away = kSlice;
  WaitPolicy policy(core);
  wait(policy, core, 1ms);
  assert_true(policy.contended());
  for (const Time after : {1ms, 5ms, 90ms}) {
    core.sleeps = 0;
    core.slept = {};
    const Time took = wait(policy, core, after);
    assert_true(core.sleeps > 0);
    assert_true(core.slept > (after - 100us) / 3);
    assert_true(took < after + after / 8 + 200us);
  }
}

// Brings the policy to where it has lost its core to the program.
void lose_to_program(WaitPolicy& policy, Core& core) {
  core.computes = true;
  core.away = kSlice;
  wait(policy, core, 30s);  // until yields have become rare
  assert_true(policy.contended());
  core.yields = core.sleeps = core.losses = 0;
}

UNIT_TEST(while_the_program_computes_it_sleeps) {
  Core core;
  WaitPolicy policy(core);
  lose_to_program(policy, core);
  wait(policy, core, 20ms);
  assert_true(core.sleeps > 0);
  assert_int_equal(core.losses, 0);
}

// A program that waits for the sum leaves its core to the thread that makes the sum.
UNIT_TEST(as_soon_as_the_program_waits_it_yields) {
  Core core;
  WaitPolicy policy(core);
  lose_to_program(policy, core);
  wait(policy, core, 5ms);
  core.computes = false;
  core.away = 300ns;
  wait(policy, core, 200us);
  core.sleeps = 0;
  for (int turn = 0; turn < 10; ++turn) {
    assert_true(wait(policy, core, 1ms) < 1ms + 10us);
    assert_int_equal(core.sleeps, 0);
  }
}

// On a slow link the core is left to others between two messages.
UNIT_TEST(while_the_program_waits_it_sleeps_before_a_message_that_is_due_much_later) {
  Core core;
  WaitPolicy policy(core);
  lose_to_program(policy, core);
  core.computes = false;
  core.away = 300ns;
  wait(policy, core, 2ms);
  for (const Time after : {Time(20us), Time(2ms)}) {
    core.sleeps = core.yields = 0;
    WaitPolicy::Wait one;
    one.due = core.now() + after;
    while (core.now() < one.due) (void)policy.rest(one);
    assert_int_equal(core.sleeps > 0, after == 2ms);
    assert_true(core.yields > 0 || after == 2ms);
    assert_true(core.now() < one.due + 100us);
  }
}

// The steps of a training: the program computes and waits in turn. A turn costs one loss at most,
// and one or two sleeps after the program has begun to wait.
UNIT_TEST(the_program_computes_and_waits_in_turn) {
  Core core;
  WaitPolicy policy(core);
  lose_to_program(policy, core);
  for (int turn = 0; turn < 20; ++turn) {
    core.computes = true;
    core.away = kSlice;
    core.losses = 0;
    wait(policy, core, 10ms);
    assert_in_range(core.losses, 0, 1);
    core.computes = false;
    core.away = 300ns;
    core.sleeps = 0;
    wait(policy, core, 10ms);
    assert_in_range(core.sleeps, 0, 2);
  }
}

UNIT_TEST(another_program_may_take_the_core_while_the_program_waits) {
  Core core;
  WaitPolicy policy(core);
  lose_to_program(policy, core);
  core.computes = false;
  core.away = 300ns;
  wait(policy, core, 10ms);
  core.away = kSlice;
  core.losses = core.sleeps = 0;
  wait(policy, core, 10s);
  assert_in_range(core.losses, 1, 10);
  assert_true(core.sleeps > 1000);
}

UNIT_TEST(no_sleep_is_longer_than_a_millisecond) {
  Core core;
  core.away = kSlice;
  WaitPolicy policy(core);
  wait(policy, core, 90ms);
  core.sleeps = 0;
  core.slept = {};
  wait(policy, core, 90ms);
  assert_true(core.slept <= core.sleeps * Time(1ms));
}

UNIT_TEST(it_changes_both_ways) {
  Core core;
  WaitPolicy policy(core);
  for (int turn = 0; turn < 3; ++turn) {
    core.away = kSlice;
    run(policy, core, 3s);
    assert_true(policy.contended());
    core.away = turn % 2 == 0 ? Time(300ns) : kRank;
    run(policy, core, 11s);  // more than the longest time to the next yield
    assert_false(policy.contended());
  }
}

// One loss in a second costs less than the delays that follow losses in a row.
UNIT_TEST(after_a_rare_loss_it_soon_yields_again) {
  Core core;
  WaitPolicy policy(core);
  for (int turn = 0; turn < 20; ++turn) {
    core.away = kSlice;
    wait(policy, core, 100us);
    assert_true(policy.contended());
    core.away = 300ns;
    run(policy, core, 150ms);
    assert_false(policy.contended());
    run(policy, core, 1s);
  }
}

// A core may be lost during a poll, as when a hypervisor or a quota takes it.
UNIT_TEST(a_loss_in_a_poll_counts) {
  Core core;
  WaitPolicy policy(core);
  WaitPolicy::Wait one;
  (void)policy.rest(one);
  assert_false(policy.contended());
  core.work(kSlice);
  assert_true(policy.rest(one));
  assert_true(policy.contended());
}

// A word in memory is polled for a microsecond before the first yield.
UNIT_TEST(the_first_polls_do_not_yield) {
  Core core;
  WaitPolicy policy(core);
  WaitPolicy::Wait one;
  one.first_spins = 64;
  for (int i = 0; i < 64; ++i) (void)policy.rest(one);
  assert_int_equal(core.yields, 0);
  (void)policy.rest(one);
  assert_int_equal(core.yields, 1);
}

// A wait for a message never spins: it sleeps until shortly before the message is due.
UNIT_TEST(beside_others_it_sleeps_until_a_message_is_due) {
  Core core;
  core.away = kSlice;
  WaitPolicy policy(core);
  wait(policy, core, 1ms);
  for (const Time after : {Time(200us), Time(500us), Time(2ms)}) {
    core.sleeps = core.pauses = 0;
    WaitPolicy::Wait one;
    const Time begin = core.now();
    one.due = begin + after;
    while (core.now() - begin < after) (void)policy.rest(one);
    assert_int_equal(core.pauses, 0);
    assert_in_range(core.sleeps, 1, 6);
    assert_true(core.now() - begin < after + 120us);
  }
}

// Messages have any length, and no rank had to wait for some of them.
UNIT_TEST(the_rate_of_messages_tells_when_the_next_one_is_due) {
  ArrivalRate rate;
  Time now = 1s;
  assert_true(rate.due(now, 1000) == now);  // nothing is known
  rate.arrived(now, 1000);
  for (const int bytes : {4000, 1000, 8000}) rate.arrived(now += bytes * 8ns, std::size_t(bytes));
  assert_true(rate.due(now, 500) == now + 500 * 8ns);
  rate.found(1000);
  assert_true(rate.due(now, 500) == now + 1500 * 8ns);
  assert_true(rate.due(now + 1ms, 500) == now + 1ms);
  // A pause between two calls changes little, and many slower messages change the rate.
  rate.arrived(now += 1s, 500);
  assert_in_range((rate.due(now, 1000) - now).count(), 8000, 9000);
  for (int i = 0; i < 20; ++i) rate.arrived(now += 1000 * 80ns, 1000);
  assert_in_range((rate.due(now, 1000) - now).count(), 40000, 80000);
}

}  // namespace
