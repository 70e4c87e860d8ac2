// SPDX-License-Identifier: BSD-3-Clause
// A stream of the guarded device: a queue of work that is done as late as possible.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>

#include "device/device.h"

namespace slimpi::test {

class GuardedStream {
 public:
  static device::Stream* open();
  static void close(device::Stream* stream);         // does what is still queued
  static GuardedStream& of(device::Stream* stream);  // dies if it is not an open one
  static void run_all();                             // does everything queued on any stream
  static unsigned long queued();                     // pieces of work, ever

  // The device is lost when `pieces` more pieces of work were queued: no stream does anything then.
  static void lose(unsigned long pieces);
  static void repair();
  static bool lost();

  void queue(std::function<void()> work);
  std::uint64_t mark();

  // Does one piece of work, unless the mark has been reached. Has it now?
  bool poll(std::uint64_t mark);
  void run_until(std::uint64_t mark);

 private:
  void run_one();

  std::deque<std::function<void()>> work_;
  std::uint64_t marks_ = 0, reached_ = 0;
  bool running_ = false;
};

}  // namespace slimpi::test
