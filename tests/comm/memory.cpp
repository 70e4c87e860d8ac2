// SPDX-License-Identifier: BSD-3-Clause
// Tests Memory where the C++ heap has no memory left: no block of a device is lost.
#include "comm/memory.h"

#include <cstdlib>
#include <new>

#include "tests/helper/base/unit_test.h"

using namespace slimpi;

namespace {
bool g_heap_is_full = false;
int g_blocks = 0;  // of the device, in use
}  // namespace

// Not inlined: the compiler would warn of free() for memory of another operator.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const memory = g_heap_is_full ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace {

device::Device counting_device() {
  device::Device row = device::host();
  row.allocate = [](const device::Location& at, std::size_t bytes, device::Place place,
                    void** memory) {
    ++g_blocks;
    return device::host().allocate(at, bytes, place, memory);
  };
  row.release = [](void* memory, device::Place place) {
    --g_blocks;
    device::host().release(memory, place);
  };
  return row;
}

UNIT_TEST(a_full_heap_loses_no_block) {
  static const device::Device row = counting_device();
  const auto statistics = std::make_unique<Statistics>();
  {
    comm::Memory memory;
    for (int ordinal = 0; ordinal < 9; ++ordinal) {
      const device::Location at(row, ordinal);
      g_heap_is_full = true;
      try {
        assert_true(memory.reserve(at, device::Place::device, 100, *statistics) == Status::ok);
      } catch (const std::bad_alloc&) {
        assert_int_equal(g_blocks, ordinal);
      }
      g_heap_is_full = false;
      assert_true(memory.reserve(at, device::Place::device, 100, *statistics) == Status::ok);
      assert_int_equal(g_blocks, ordinal + 1);
    }
  }
  assert_int_equal(g_blocks, 0);
}

}  // namespace
