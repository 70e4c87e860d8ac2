// SPDX-License-Identifier: BSD-3-Clause
// Runs several functions in one thread, one at a time. Who goes on is drawn by chance from a seed,
// so an interleaving can be repeated. A fiber runs until it calls pause or block.
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

  // What may happen besides the fibers, such as the arrival of a message. `count` tells how many
  // such events are possible now; `happen` makes the one with that index happen.
  struct Events {
    std::function<std::size_t()> count;
    std::function<void(std::size_t)> happen;
  };

  // Runs all fibers to their ends. False, with the reason in `why`: nothing can happen any more, or
  // more than `most_steps` steps were not enough. The fibers are then abandoned as they are.
  bool run(const Events& events, std::size_t most_steps, std::string* why);

  // For fibers: lets others run; and does not go on before `ready` returns true.
  void pause();
  void block(std::function<bool()> ready);

 private:
  struct Fiber;
  static void enter(unsigned high, unsigned low);
  void resume(Fiber& fiber);
  bool runnable(const Fiber& fiber) const;

  Chance& chance_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* current_ = nullptr;
  std::unique_ptr<Fiber> main_;
};

}  // namespace slimpi::test
