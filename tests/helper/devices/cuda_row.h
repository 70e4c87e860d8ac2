// SPDX-License-Identifier: BSD-3-Clause
// Shared by the tests of the device row for CUDA, which run on the fake driver.
#pragma once
#include <cuda.h>

#include <cstring>

#include "base/status.h"
#include "device/device.h"
#include "tests/helper/devices/fake_driver.h"
#include "tests/helper/devices/gpu.h"
#include "tests/helper/base/unit_test.h"

namespace slimpi::test {

using namespace slimpi::device;

constexpr std::size_t kBytes = 4096;
inline char g_here[kBytes], g_back[kBytes];

// Returns one of the fake driver's own functions, once the driver is loaded.
template <typename Function>
Function* fake_driver(const char* name) {
  auto* const found = reinterpret_cast<Function*>(gpu_function(name));
  assert_non_null(reinterpret_cast<void*>(found));
  return found;
}
#define FAKE(name) fake_driver<decltype(name)>(#name)

inline void tell_to_fail(const char* function, int result, int calls = 0, bool lost = false) {
  FAKE(slimpi_fake_fail)(function, result, calls, lost);
}

inline const Device& row() {
  return at(0);
}

inline void assert_ok(Status status) {
  if (status != Status::ok) print_error("%s\n", failure_text().c_str());
  assert_int_equal(int(status), int(Status::ok));
}

inline void assert_fails(Status status, Status expected, const char* text) {
  assert_int_equal(int(status), int(expected));
  if (strstr(failure_text().c_str(), text) == nullptr)
    print_error("'%s' does not say '%s'\n", failure_text().c_str(), text);
  assert_non_null(strstr(failure_text().c_str(), text));
}

inline void wait(Stream* stream) {
  std::uint64_t event = 0;
  assert_ok(row().record(stream, &event));
  bool reached = false;
  for (int polls = 0; !reached; ++polls) {
    assert_in_range(polls, 0, 1000);
    assert_ok(row().query(stream, event, &reached));
  }
}

// Makes the row copy to, from, and within memory close to `like`.
inline void use(const void* like) {
  Stream* stream = nullptr;
  void *memory = nullptr, *staging = nullptr;
  assert_ok(row().open_stream(locate(like), &stream));
  assert_ok(row().allocate(locate(like), kBytes, Place::device, &memory));
  assert_ok(row().allocate(locate(like), kBytes, Place::staging, &staging));
  assert_ptr_equal(locate(staging).device, &host());
  assert_int_equal(reinterpret_cast<std::uintptr_t>(memory) % 256, 0);
  for (std::size_t i = 0; i < kBytes; ++i) g_here[i] = char(i * 7);
  assert_ok(row().copy(memory, g_here, kBytes, stream));
  assert_ok(row().copy(staging, memory, kBytes, stream));
  wait(stream);
  assert_memory_equal(staging, g_here, kBytes);
  row().close_stream(stream);
  row().release(staging, Place::staging);
  row().release(memory, Place::device);
}

}  // namespace slimpi::test
