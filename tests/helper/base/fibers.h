// SPDX-License-Identifier: BSD-3-Clause
// Runs several functions in one thread, one at a time. Because a seed or a Chooser decides which of
// them continues, an interleaving can be repeated. A fiber runs until it calls pause or block.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/helper/base/chance.h"

namespace slimpi::test {

class Fibers {
 public:
  explicit Fibers(Chance& chance);
  ~Fibers();

  // Adds a fiber, which only run() enters.
  void add(std::function<void()> body);

  // Events that can happen beside the fibers, such as the arrival of a message. `count` returns how
  // many events are possible now; `happen` makes the event with an index happen.
  struct Events {
    std::function<std::size_t()> count;
    std::function<void(std::size_t)> happen;
  };

  // Chooses each step of an interleaving.
  class Chooser {
   public:
    virtual ~Chooser() = default;
    // Returns the number of one of `steps` steps, or kStop, which ends run().
    virtual std::size_t choose(std::size_t steps) = 0;
  };
  static constexpr std::size_t kStop = ~std::size_t(0);

  // Sets the chooser. Without a chooser, steps are drawn by chance.
  void set_chooser(Chooser* chooser) { chooser_ = chooser; }

  // Runs all fibers to their ends and returns true. Returns false and a reason in `why` if nothing
  // can happen any more, if more than `most_steps` steps would be needed, or if the chooser has
  // stopped. The fibers then stay where they are.
  bool run(const Events& events, std::size_t most_steps, std::string* why);

  // Enters each fiber until it ends, after run() has returned false. By then nothing may make a
  // fiber wait.
  void finish();

  // Returns, for each fiber, how often it was entered and whether it has ended. Together these say
  // where in its code the fiber is.
  std::vector<std::size_t> positions() const;

  // Called by a fiber: pause lets other fibers run, and block waits until `ready` returns true.
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
