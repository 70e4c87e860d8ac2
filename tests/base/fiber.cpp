// SPDX-License-Identifier: BSD-3-Clause
#include "base/fiber.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/helper/base/unit_test.h"

using slimpi::Fiber;

namespace {

bool is_blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

void set_blocked(int signal, bool blocked) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &one, nullptr);
}

// A fiber that calls `body` again and again, and leaves after each call.
class Repeating {
 public:
  explicit Repeating(void (*body)(Repeating&)) : body_(body) { prepare(); }
  ~Repeating() {
    ends_ = true;
    while (fiber.enter()) continue;
  }
  void prepare() {
    fiber.prepare(
        [](void* argument) {
          auto& self = *static_cast<Repeating*>(argument);
          while (!self.ends_) {
            self.body_(self);
            Fiber::leave();
          }
        },
        this, Fiber::Stack::small);
  }
  Fiber fiber;
  int value = 0;

 private:
  void (*const body_)(Repeating&);
  bool ends_ = false;
};

// The mask is that of the thread that enters, even if another thread has prepared or left the
// fiber, and the thread has it afterwards.
UNIT_TEST(keeps_the_mask_of_the_thread) {
  Repeating seen([](Repeating& self) { self.value = is_blocked(SIGUSR1) ? 1 : 0; });
  for (const bool blocked : {true, false, true, false}) {
    set_blocked(SIGUSR1, blocked);
    assert_true(seen.fiber.enter());
    assert_int_equal(seen.value, blocked);
    assert_true(is_blocked(SIGUSR1) == blocked);
  }
  std::thread([&] {
    set_blocked(SIGUSR1, true);
    assert_true(seen.fiber.enter());
    assert_int_equal(seen.value, 1);
  }).join();
  assert_true(seen.fiber.enter());
  assert_int_equal(seen.value, 0);
}

UNIT_TEST(keeps_the_rounding_of_the_fiber) {
  std::fesetround(FE_UPWARD);
  Repeating seen([](Repeating& self) { self.value = std::fegetround(); });
  std::fesetround(FE_DOWNWARD);
  assert_true(seen.fiber.enter());
  assert_int_equal(seen.value, FE_UPWARD);
  assert_int_equal(std::fegetround(), FE_DOWNWARD);
  std::fesetround(FE_TONEAREST);
}

UNIT_TEST(an_exception_that_is_handled_moves_with_the_fiber) {
  Repeating throws([](Repeating& self) {
    try {
      throw std::runtime_error("in the fiber");
    } catch (const std::exception&) {
      Fiber::leave();
      assert_true(std::current_exception() != nullptr);
      ++self.value;
    }
  });
  for (int i = 0; i < 6; ++i) {
    assert_true(throws.fiber.enter());
    assert_true(std::current_exception() == nullptr);
  }
  assert_int_equal(throws.value, 3);
}

// A function of the program may need more than the whole stack of a fiber, may throw, and may come
// to a wait of slimpi's, where it cannot leave the fiber.
UNIT_TEST(a_function_runs_on_the_stack_of_the_thread) {
  Repeating outside([](Repeating& self) {
    try {
      slimpi::on_threads_stack([&] {
        volatile char room[3 << 20] = {};
        room[0] = 1;
        assert_true(Fiber::inside());
        slimpi::on_threads_stack([&] { self.value += room[0]; });
        Fiber::leave();
        self.value += 1;
        if (self.value >= 4) throw std::runtime_error("of the program");
      });
    } catch (const std::exception&) {
      self.value = -self.value;
    }
  });
  for (const int value : {2, -4, -2}) {
    assert_true(outside.fiber.enter());
    assert_int_equal(outside.value, value);
  }
  int outside_of_all = 0;
  slimpi::on_threads_stack([&] { ++outside_of_all; });
  assert_int_equal(outside_of_all, 1);
}

// A function that blocks runs in another thread, which also runs the next one. It counts as soon as
// it is handed over, so that threads which poll leave a core to a thread that has not begun.
UNIT_TEST(a_thread_makes_one_blocking_call_after_another) {
  static pid_t made_by[2];
  static std::atomic<bool> may_return;
  Repeating blocks([](Repeating& self) {
    slimpi::call_blocking([&] {
      while (!may_return) std::this_thread::yield();
      made_by[self.value % 2] = gettid();
    });
    ++self.value;
  });
  for (int call = 0; call < 2; ++call) {
    may_return = false;
    assert_true(blocks.fiber.enter());
    assert_int_equal(slimpi::g_blocking, 1);
    may_return = true;
    while (blocks.value == call) {
      slimpi::sleep_beside_blocking(std::chrono::milliseconds(100));
      assert_true(blocks.fiber.enter());
    }
    assert_int_equal(slimpi::g_blocking, 0);
  }
  assert_true(made_by[0] == made_by[1]);
  assert_true(made_by[0] != gettid());
}

}  // namespace
