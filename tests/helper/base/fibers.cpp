// SPDX-License-Identifier: BSD-3-Clause
#include "tests/helper/base/fibers.h"

#include <ucontext.h>

#include <cstdint>
#include <string>

namespace slimpi::test {

namespace {
constexpr std::size_t kStackBytes = 256 << 10;

// With more fibers than this, each step enters about half of the fibers that can continue.
constexpr std::size_t kFew = 32;
}  // namespace

struct Fibers::Fiber {
  ucontext_t context{};
  std::unique_ptr<std::byte[]> stack;
  std::function<void()> body;
  std::function<bool()> ready;  // empty if the fiber can continue
  std::size_t entered = 0;
  bool ended = false;
};

Fibers::Fibers(Chance& chance) : chance_(chance), main_(std::make_unique<Fiber>()) {}
Fibers::~Fibers() = default;

// The function of a fiber's context. makecontext passes only ints, so the pointer comes in two
// parts.
void Fibers::enter(unsigned high, unsigned low) {
  auto* const fibers = reinterpret_cast<Fibers*>(std::uintptr_t(high) << 32 | std::uintptr_t(low));
  Fiber& self = *fibers->current_;
  self.body();
  self.ended = true;
  swapcontext(&self.context, &fibers->main_->context);
}

void Fibers::add(std::function<void()> body) {
  auto fiber = std::make_unique<Fiber>();
  fiber->stack.reset(new std::byte[kStackBytes]);
  fiber->body = std::move(body);
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack.get();
  fiber->context.uc_stack.ss_size = kStackBytes;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&fiber->context, reinterpret_cast<void (*)()>(&Fibers::enter), 2,
              unsigned(self >> 32), unsigned(self));
  fibers_.push_back(std::move(fiber));
}

void Fibers::resume(Fiber& fiber) {
  current_ = &fiber;
  ++fiber.entered;
  swapcontext(&main_->context, &fiber.context);
  current_ = nullptr;
}

void Fibers::pause() {
  block({});
}

void Fibers::block(std::function<bool()> ready) {
  Fiber& self = *current_;
  self.ready = std::move(ready);
  swapcontext(&self.context, &main_->context);
}

void Fibers::finish() {
  for (const auto& fiber : fibers_)
    while (!fiber->ended) resume(*fiber);
}

std::vector<std::size_t> Fibers::positions() const {
  std::vector<std::size_t> positions;
  for (const auto& fiber : fibers_)
    positions.push_back(2 * fiber->entered + (fiber->ended ? 1 : 0));
  return positions;
}

bool Fibers::runnable(const Fiber& fiber) const {
  return !fiber.ended && (!fiber.ready || fiber.ready());
}

bool Fibers::run(const Events& events, std::size_t most_steps, std::string* why) {
  // How the next step is chosen. fair: all steps are equally likely. The other ways try extremes:
  // events before any fiber, events after all fibers, and one fiber after all others.
  enum class Order { fair, events_first, events_last, one_last };
  const Order order = chance_.of(
      {Order::fair, Order::fair, Order::events_first, Order::events_last, Order::one_last});
  const std::size_t last = chance_.below(fibers_.size());
  std::vector<std::size_t> able;
  for (std::size_t steps = 0; steps < most_steps; ++steps) {
    able.clear();
    bool all_ended = true;
    for (std::size_t i = 0; i < fibers_.size(); ++i) {
      all_ended = all_ended && fibers_[i]->ended;
      if (runnable(*fibers_[i])) able.push_back(i);
    }
    if (all_ended) return true;
    std::size_t possible = events.count();
    if (able.empty() && possible == 0) {
      *why = "deadlock: no rank can go on";
      return false;
    }
    if (chooser_ != nullptr) {
      const std::size_t chosen = chooser_->choose(able.size() + possible);
      if (chosen == kStop) {
        *why = "stopped";
        return false;
      }
      if (chosen < able.size())
        resume(*fibers_[able[chosen]]);
      else
        events.happen(chosen - able.size());
      continue;
    }
    if (fibers_.size() > kFew) {
      for (const std::size_t one : able)
        if (chance_.one_in(2)) resume(*fibers_[one]);
      possible = events.count();
      for (std::size_t left = possible == 0 ? 0 : 1 + chance_.below(possible); left != 0; --left)
        events.happen(--possible);
      continue;
    }
    if (order == Order::one_last && able.size() + possible > 1) std::erase(able, last);
    if (order == Order::events_first && possible != 0) able.clear();
    if (order == Order::events_last && !able.empty()) possible = 0;
    const std::size_t drawn = chance_.below(able.size() + possible);
    if (drawn < able.size())
      resume(*fibers_[able[drawn]]);
    else
      events.happen(drawn - able.size());
  }
  *why = "no end after " + std::to_string(most_steps) + " steps";
  return false;
}

}  // namespace slimpi::test
