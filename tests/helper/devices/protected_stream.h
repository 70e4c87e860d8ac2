// SPDX-License-Identifier: BSD-3-Clause
// A stream of the protected device: a queue of work that is done late, one piece for each query.
// While one stream is queried, other streams do nothing or run ahead of it, by chance; only events
// order them.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>

#include "device/device.h"

namespace slimpi::test {

class ProtectedStream {
 public:
  static device::Stream* open();
  static void close(device::Stream* stream);           // does the work that is still queued
  static ProtectedStream& of(device::Stream* stream);  // ends the program if it is not open
  static void run_all();                               // does the queued work of all streams
  static unsigned long queued();                       // pieces of work that were ever queued

  // Loses the device after `transfers` more pieces of work were queued. Then no stream does
  // anything.
  static void lose(unsigned long transfers);
  static void repair();
  static bool lost();

  void queue(std::function<void()> work);
  // Queues work that may have to wait: it is called until it returns true, and delays the work
  // after it.
  void queue_until(std::function<bool()> work);
  std::uint64_t record();

  // Does one piece of work, unless the event has been reached, and possibly work of other streams.
  // Returns whether the event has been reached.
  bool query(std::uint64_t event);
  void run_until(std::uint64_t event);
  // Does as much of the work before the event as can be done now. Returns whether the event is
  // reached.
  bool try_until(std::uint64_t event);

 private:
  bool run_one();  // false if the work must wait
  void run_others();

  std::deque<std::function<bool()>> work_;
  std::uint64_t marks_ = 0, reached_ = 0;
  std::uint64_t asked_ = 0;  // event that is polled
  bool ahead_ = false;       // whether other streams run ahead while it is polled
  bool running_ = false;
};

}  // namespace slimpi::test
