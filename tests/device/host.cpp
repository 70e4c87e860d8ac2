// SPDX-License-Identifier: BSD-3-Clause
// Tests the device row of host memory, and the table of rows.

#include <sys/mman.h>

#include "base/status.h"
#include "device/device.h"
#include "kernels/cpu/cpu.h"
#include "tests/helper/base/unit_test.h"

using namespace slimpi;
using namespace slimpi::device;

namespace {

UNIT_TEST(memory_is_aligned_and_usable) {
  for (const std::size_t bytes : {std::size_t(0), std::size_t(1), std::size_t(1000),
                                  std::size_t(4) << 20, (std::size_t(4) << 20) + 1}) {
    void* memory = nullptr;
    assert_int_equal(int(host().allocate({}, bytes, Place::device, &memory)), int(Status::ok));
    assert_int_equal(reinterpret_cast<std::uintptr_t>(memory) % 256, 0);
    memset(memory, 1, bytes);
    host().release(memory, Place::device);
  }
}

UNIT_TEST(too_much_memory_is_a_status) {
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 300, SIZE_MAX / 2}) {
    void* memory = &memory;
    assert_int_equal(int(host().allocate({}, bytes, Place::staging, &memory)),
                     int(Status::no_memory));
    assert_ptr_equal(memory, &memory);
    assert_non_null(strstr(failure_text().c_str(), std::to_string(bytes).c_str()));
  }
}

UNIT_TEST(work_is_done_when_it_is_queued) {
  Stream* stream = nullptr;
  assert_int_equal(int(host().open_stream({}, &stream)), int(Status::ok));
  const int from = 7;
  int to = 0;
  assert_int_equal(int(host().copy(&to, &from, sizeof to, stream)), int(Status::ok));
  assert_int_equal(to, 7);
  std::uint64_t event = 0;
  bool reached = false;
  assert_int_equal(int(host().record(stream, &event)), int(Status::ok));
  assert_int_equal(event, 1);
  assert_int_equal(int(host().query(stream, event, &reached)), int(Status::ok));
  assert_true(reached);
  assert_int_equal(int(host().wait_event(stream, nullptr, event)), int(Status::ok));
  host().close_stream(stream);
}

// A copy is right wherever it begins and ends, and changes no byte around it.
UNIT_TEST(a_copy_to_memory_is_a_copy) {
  constexpr std::size_t kGuard = 128, kMost = 1000;
  assert_non_null(host().copy_nontemporal);
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 127, 128, 129, 191, 200, 512, 999, 1000})
    for (const std::size_t to : {0, 1, 4, 31, 60, 63})
      for (const std::size_t from : {0, 3, 16, 60}) {
        alignas(64) unsigned char in[kMost + kGuard];
        alignas(64) unsigned char out[kMost + 3 * kGuard];
        for (std::size_t i = 0; i < sizeof in; ++i) in[i] = (unsigned char)(i * 7 + bytes + to);
        memset(out, 0x5A, sizeof out);
        unsigned char* const begin = out + kGuard + to;
        assert_int_equal(int(host().copy_nontemporal(begin, in + from, bytes, nullptr)),
                         int(Status::ok));
        assert_memory_equal(begin, in + from, bytes);
        for (unsigned char* at = out; at < out + sizeof out; ++at)
          if (at < begin || at >= begin + bytes) assert_int_equal(*at, 0x5A);
        assert_int_equal(int(host().copy_nontemporal(begin, begin, bytes, nullptr)),
                         int(Status::ok));
        assert_memory_equal(begin, in + from, bytes);
      }
}

UNIT_TEST(the_kernels_are_the_best_that_run_here) {
  assert_ptr_equal(host().kernels(), kernels::cpu_kernels(CpuPath::automatic));
}

// Mapped, as a device's memory is: nobody is asked about static data. Never accessed.
char* const g_first = static_cast<char*>(
    mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
char* const g_second = g_first + 4096;

Device row_for(const char* name, bool (*locate)(const void*, Location*)) {
  Device row = host();
  row.name = name;
  row.locate = locate;
  return row;
}

UNIT_TEST(rows_are_asked_before_the_host) {
  int here = 0;
  assert_int_equal(count(), 1);
  assert_ptr_equal(locate(&here).device, &host());
  static const Device first =
      row_for("first", [](const void* p, Location*) { return p == g_first; });
  static const Device second =
      row_for("second", [](const void* p, Location*) { return p == g_second || p == g_first + 1; });
  assert_int_equal(int(add(first)), int(Status::ok));
  assert_int_equal(int(add(second)), int(Status::ok));
  assert_int_equal(int(add(first)), int(Status::ok));  // is there already
  assert_int_equal(count(), 3);
  assert_ptr_equal(&at(0), &second);
  assert_ptr_equal(&at(1), &first);
  assert_ptr_equal(&at(2), &host());
  assert_true(g_first != MAP_FAILED);
  assert_ptr_equal(locate(g_first).device, &first);
  assert_ptr_equal(locate(g_second).device, &second);
  assert_ptr_equal(locate(g_first + 1).device, &second);
  assert_ptr_equal(locate(&here).device, &host());
  assert_ptr_equal(locate(nullptr).device, &host());
}

UNIT_TEST(a_full_table_is_a_status) {
  static Device more[32];
  int refused = 0;
  for (Device& row : more) {
    row = row_for("more", [](const void*, Location*) { return false; });
    if (add(row) != Status::ok) ++refused;
  }
  assert_int_not_equal(refused, 0);
  assert_int_equal(count(), 3 + 32 - refused);
  assert_ptr_equal(&at(count() - 1), &host());
}

}  // namespace
