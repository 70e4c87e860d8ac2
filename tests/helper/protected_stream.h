// SPDX-License-Identifier: BSD-3-Clause
// A stream of the protected device: a queue of work that is done late, a piece at each question
// about it. By chance other streams do nothing while one is asked for, or run ahead of it: only
// what they wait for orders them.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>

#include "device/device.h"

namespace slimpi::test {

class ProtectedStream {
 public:
  static device::Stream* open();
  static void close(device::Stream* stream);           // does what is still queued
  static ProtectedStream& of(device::Stream* stream);  // dies if it is not an open one
  static void run_all();                               // does everything queued on any stream
  static unsigned long queued();                       // pieces of work, ever

  // The device is lost when `pieces` more pieces of work were queued: no stream does anything then.
  static void lose(unsigned long transfers);
  static void repair();
  static bool lost();

  void queue(std::function<void()> work);
  // Queues work that waits: it is done once it returns true, and holds up the work behind it.
  void queue_until(std::function<bool()> work);
  std::uint64_t record();

  // Does one piece of work, unless the mark has been reached, and maybe pieces of other streams.
  // Returns whether the mark is reached now.
  bool query(std::uint64_t event);
  void run_until(std::uint64_t event);
  // Does the work before the mark that can be done now. Returns whether the mark is reached.
  bool try_until(std::uint64_t event);

 private:
  bool run_one();  // false: it waits
  void run_others();

  std::deque<std::function<bool()>> work_;
  std::uint64_t marks_ = 0, reached_ = 0;
  std::uint64_t asked_ = 0;  // the mark that is polled
  bool ahead_ = false;       // and whether other streams run ahead meanwhile
  bool running_ = false;
};

}  // namespace slimpi::test
