// SPDX-License-Identifier: BSD-3-Clause
// Runs several functions in one thread, one at a time. A seed or a Chooser decides which one
// continues, so an interleaving can be repeated. A fiber runs until it calls pause or block.
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
    // Returns the number of one of so many steps, or kStop: then run() ends.
    virtual std::size_t choose(std::size_t steps) = 0;
  };
  static constexpr std::size_t kStop = ~std::size_t(0);

  // Sets the chooser. Without a chooser, steps are drawn by chance.
  void set_chooser(Chooser* chooser) { chooser_ = chooser; }

  // Runs all fibers to their ends. False, with the reason in `why`: nothing can happen any more, or
  // more than `most_steps` steps were not enough, or the chooser has stopped. The fibers are then
  // abandoned as they are.
  bool run(const Events& events, std::size_t most_steps, std::string* why);

  // Enters each fiber until it ends, after run() returned false. Nothing may make a fiber wait
  // then.
  void finish();

  // Returns how often each fiber was entered and whether it has ended, which is its position in its
  // code.
  std::vector<std::size_t> positions() const;

  // A fiber calls pause to let other fibers run, and block to wait until `ready` returns true.
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
