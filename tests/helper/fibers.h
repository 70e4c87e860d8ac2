// SPDX-License-Identifier: BSD-3-Clause
// Runs several functions in one thread, one at a time. Who goes on is drawn by chance from a seed,
// or chosen by a Chooser, so an interleaving can be repeated. A fiber runs until it calls pause or
// block.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/helper/chance.h"

namespace slimpi::test {

class Fibers {
 public:
  explicit Fibers(Chance& chance);
  ~Fibers();

  // Adds a fiber. It runs only in run().
  void add(std::function<void()> body);

  // Events that may happen besides the fibers, such as the arrival of a message. `count` returns
  // how many events are possible now; `happen` makes the event with that index happen.
  struct Events {
    std::function<std::size_t()> count;
    std::function<void(std::size_t)> happen;
  };

  // Chooses each step of an interleaving.
  class Chooser {
   public:
    virtual ~Chooser() = default;
    // One of so many steps, or kStop: this interleaving is not followed any further.
    virtual std::size_t choose(std::size_t steps) = 0;
  };
  static constexpr std::size_t kStop = ~std::size_t(0);

  // Without one, steps are drawn by chance.
  void set_chooser(Chooser* chooser) { chooser_ = chooser; }

  // Runs all fibers to their ends. False, with the reason in `why`: nothing can happen any more, or
  // more than `most_steps` steps were not enough, or the chooser has stopped. The fibers are then
  // abandoned as they are.
  bool run(const Events& events, std::size_t most_steps, std::string* why);

  // After run() was false: enters each fiber until it ends. Nothing may make one wait any more.
  void finish();

  // How often each fiber was entered so far, and whether it has ended: its position in its code.
  std::vector<std::size_t> positions() const;

  // For fibers: lets others run; and does not go on before `ready` returns true.
  void pause();
  void block(std::function<bool()> ready);

 private:
  struct Fiber;
  static void enter(unsigned high, unsigned low);
  void resume(Fiber& fiber);
  bool runnable(const Fiber& fiber) const;

  Chance& chance_;
  Chooser* chooser_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* current_ = nullptr;
  std::unique_ptr<Fiber> main_;
};

}  // namespace slimpi::test
