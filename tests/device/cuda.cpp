// SPDX-License-Identifier: BSD-3-Clause
// The device row of GPU memory, on the fake driver for CUDA's driver; tests/device/fake_driver.sh
// runs it.
#include <cuda.h>
#include <dlfcn.h>
#include <linux/mempolicy.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "device/cuda/numa.h"
#include "device/device.h"
#include "device/plugins.h"
#include "tests/helper/devices/cuda_row.h"

using namespace slimpi;
using namespace slimpi::device;
using namespace slimpi::test;

namespace {

UNIT_TEST(a_process_without_the_driver_never_sees_the_part) {
  load_plugins();
  assert_int_equal(count(), 1);
  assert_null(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD));
}

UNIT_TEST(the_part_comes_with_the_driver) {
  assert_int_equal(gpu_open(), 0);
  load_plugins();
  assert_int_equal(count(), 2);
  assert_string_equal(row().name, "cuda");
  assert_true(row().staged);
}

UNIT_TEST(it_owns_what_only_the_gpu_may_touch) {
  for (const gpu_memory kind : {GPU_HOST, GPU_DEVICE, GPU_POOL, GPU_MANAGED, GPU_PINNED}) {
    auto* const memory = static_cast<char*>(gpu_take(kind, kBytes));
    const Device& expected = kind == GPU_HOST || kind == GPU_PINNED ? host() : row();
    assert_ptr_equal(locate(memory).device, &expected);
    assert_ptr_equal(locate(memory + kBytes - 1).device, &expected);
    gpu_give_back(kind, memory);
  }
  // A driver that the program has not initialized yet, or that is in trouble, knows no pointers.
  void* const memory = gpu_take(GPU_DEVICE, kBytes);
  tell_to_fail("cuPointerGetAttributes", CUDA_ERROR_NOT_INITIALIZED);
  assert_ptr_equal(locate(memory).device, &host());
  gpu_give_back(GPU_DEVICE, memory);
}

// An address that was freed may come back as memory of another kind.
UNIT_TEST(what_was_freed_is_asked_about_again) {
  void* const memory = gpu_take(GPU_DEVICE, kBytes);
  assert_ptr_equal(locate(memory).device, &row());
  gpu_give_back(GPU_DEVICE, memory);
  assert_ptr_equal(locate(memory).device, &host());
}

// A driver that refuses slimpi's kernels, such as one older than they are, can still copy memory.
UNIT_TEST(a_driver_that_refuses_the_kernels) {
  tell_to_fail("cuModuleLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU, 0, true);
  void *const like = gpu_take(GPU_DEVICE, kBytes), *memory = nullptr;
  assert_fails(row().allocate(locate(like), kBytes, Place::device, &memory), Status::device,
               "loading slimpi's kernels onto the GPU: CUDA_ERROR_OF_A_TEST (209)");
  Stream* stream = nullptr;
  assert_ok(row().open_stream(locate(like), &stream));
  assert_ok(row().allocate(locate(like), kBytes, Place::staging, &memory));
  memset(memory, 5, kBytes);
  memset(g_back, 0, kBytes);
  assert_ok(row().copy(like, memory, kBytes, stream));
  assert_ok(row().copy(g_back, like, kBytes, stream));
  wait(stream);
  assert_memory_equal(g_back, memory, kBytes);
  row().release(memory, Place::staging);
  row().close_stream(stream);
  gpu_give_back(GPU_DEVICE, like);
  tell_to_fail(nullptr, 0);
}

UNIT_TEST(the_caller_s_context_is_as_it_was) {
  void* const mine = gpu_current();
  assert_non_null(mine);
  for (const gpu_memory kind : {GPU_DEVICE, GPU_POOL, GPU_MANAGED}) {
    void* const memory = gpu_take(kind, kBytes);
    use(memory);
    assert_ptr_equal(gpu_current(), mine);
    gpu_set_current(nullptr);
    use(memory);
    assert_null(gpu_current());
    gpu_set_current(mine);
    // The thread has never used CUDA.
    std::thread([memory] { use(memory); }).join();
    gpu_give_back(kind, memory);
  }
  // The first GPU's context is held twice: by the program, and by slimpi for memory without a
  // context.
  assert_int_equal(FAKE(slimpi_fake_contexts)(0), 2);
  assert_int_equal(FAKE(slimpi_fake_contexts)(1), 0);
}

UNIT_TEST(each_gpu_has_its_own_streams) {
  gpu_use_second();
  auto* const first = static_cast<float*>(gpu_take(GPU_DEVICE, kBytes));
  auto* const second = static_cast<float*>(gpu_take(GPU_SECOND, kBytes));
  assert_int_equal(locate(first).ordinal, 0);
  assert_int_equal(locate(second).ordinal, 1);
  assert_int_equal(locate(g_here).ordinal, 0);
  use(second);
  Stream *stream = nullptr, *other = nullptr;
  assert_ok(row().open_stream(locate(first), &stream));
  assert_ok(row().open_stream(locate(second), &other));
  constexpr std::size_t kFloats = kBytes / sizeof(float);
  static float values[kFloats];
  row().kernels()->fill(first, 1, kFloats, stream);
  row().kernels()->fill(second, 2, kFloats, other);
  wait(stream);
  row().kernels()->combine(0.5f, second, 1, second, kFloats, second, other);
  assert_ok(row().copy(values, second, kBytes, other));
  wait(other);
  for (const float value : values) assert_true(value == 3);
  assert_ok(row().copy(first, second, kBytes, stream));  // from GPU to GPU
  assert_ok(row().copy(values, first, kBytes, stream));
  wait(stream);
  for (const float value : values) assert_true(value == 3);
  row().close_stream(stream);
  row().close_stream(other);
  gpu_give_back(GPU_DEVICE, first);
  gpu_give_back(GPU_SECOND, second);
}

UNIT_TEST(work_waits_for_the_program_s_own) {
  Stream* stream = nullptr;
  char* const from = static_cast<char*>(gpu_take(GPU_DEVICE, kBytes));
  char* const to = static_cast<char*>(gpu_take(GPU_DEVICE, kBytes));
  assert_ok(row().open_stream(locate(to), &stream));
  // slimpi's stream waits for the program's work at each use, not only at the first one.
  for (int turn = 0; turn < 3; ++turn) {
    memset(g_here, 'a' + turn, kBytes);
    gpu_copy(from, GPU_DEVICE, g_here, GPU_HOST, kBytes);
    gpu_queue_copy(to, from, kBytes);
    assert_ok(row().copy(g_back, to, kBytes, stream));
    wait(stream);
    assert_memory_equal(g_back, g_here, kBytes);
  }
  row().close_stream(stream);
  gpu_give_back(GPU_DEVICE, from);
  gpu_give_back(GPU_DEVICE, to);
}

UNIT_TEST(streams_wait_for_each_other) {
  Stream *first = nullptr, *second = nullptr;
  void* const memory = gpu_take(GPU_DEVICE, kBytes);
  auto* const here = static_cast<char*>(gpu_take(GPU_PINNED, kBytes));
  auto* const back = static_cast<char*>(gpu_take(GPU_PINNED, kBytes));
  assert_ok(row().open_stream(locate(memory), &first));
  assert_ok(row().open_stream(locate(memory), &second));
  memset(here, 42, kBytes);
  memset(back, 0, kBytes);
  std::uint64_t written = 0, read = 0;
  assert_ok(row().copy(memory, here, kBytes, first));
  assert_ok(row().record(first, &written));
  assert_ok(row().wait_event(second, first, written));
  assert_ok(row().copy(back, memory, kBytes, second));
  assert_ok(row().record(second, &read));
  assert_int_equal(back[0], 0);  // nothing has run yet
  bool reached = false;
  for (int polls = 0; !reached; ++polls) {
    assert_in_range(polls, 0, 100);
    assert_ok(row().query(second, read, &reached));
    assert_true(!reached || back[kBytes - 1] == 42);
  }
  row().close_stream(first);
  row().close_stream(second);
  gpu_give_back(GPU_PINNED, here);
  gpu_give_back(GPU_PINNED, back);
  gpu_give_back(GPU_DEVICE, memory);
}

// Host memory that the program has mapped can be pinned for asynchronous copies.
UNIT_TEST(host_memory_can_be_pinned) {
  Stream* stream = nullptr;
  void* const memory = gpu_take(GPU_DEVICE, kBytes);
  const Location location = locate(memory);
  assert_ok(row().open_stream(location, &stream));
  memset(g_back, 0, kBytes);
  memset(g_here, 7, kBytes);
  const unsigned long before = FAKE(slimpi_fake_pageable)();
  assert_ok(row().copy(memory, g_here, kBytes, stream));
  assert_int_equal(FAKE(slimpi_fake_pageable)(), before + 1);
  for (int turn = 0; turn < 2; ++turn) assert_ok(row().pin(location, g_back, kBytes));
  assert_int_equal(FAKE(slimpi_fake_registered)(), kBytes);
  assert_ptr_equal(locate(g_back).device, &host());
  assert_ok(row().copy(g_back, memory, kBytes, stream));
  assert_int_equal(g_back[0], 0);  // nothing has run yet
  wait(stream);
  assert_memory_equal(g_back, g_here, kBytes);
  assert_int_equal(FAKE(slimpi_fake_pageable)(), before + 1);
  for (int turn = 0; turn < 2; ++turn) row().unpin(g_back);
  assert_int_equal(FAKE(slimpi_fake_registered)(), 0);
  tell_to_fail("cuMemHostRegister_v2", CUDA_ERROR_NOT_SUPPORTED);
  assert_fails(row().pin(location, g_back, kBytes), Status::device, "pinning host memory");
  row().close_stream(stream);
  gpu_give_back(GPU_DEVICE, memory);
}

// The marks are more than a stream has events.
UNIT_TEST(marks_count_up_and_are_reached_in_order) {
  Stream* stream = nullptr;
  void* const memory = gpu_take(GPU_DEVICE, kBytes);
  assert_ok(row().open_stream(locate(memory), &stream));
  constexpr std::uint64_t kMarks = 200;
  for (std::uint64_t i = 1; i <= kMarks; ++i) {
    std::uint64_t event = 0;
    assert_ok(row().copy(memory, g_here, 4 * i, stream));
    assert_ok(row().record(stream, &event));
    assert_int_equal(event, i);
  }
  for (const std::uint64_t event : {std::uint64_t(1), std::uint64_t(70), kMarks - 1, kMarks}) {
    bool reached = false;
    for (int polls = 0; !reached; ++polls) {
      assert_in_range(polls, 0, 1000);
      assert_ok(row().query(stream, event, &reached));
    }
  }
  row().close_stream(stream);
  gpu_give_back(GPU_DEVICE, memory);
}

UNIT_TEST(errors_have_cuda_s_words_in_them) {
  void *const memory = gpu_take(GPU_DEVICE, kBytes), *more = nullptr;
  tell_to_fail("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY);
  assert_fails(row().allocate(locate(memory), 123, Place::device, &more), Status::no_memory,
               "123 bytes of GPU memory: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
  tell_to_fail("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  assert_fails(row().allocate(locate(memory), 123, Place::staging, &more), Status::no_memory,
               "123 bytes of pinned memory");
  // Wherever opening a stream fails, nothing of it stays.
  const auto streams = FAKE(slimpi_fake_streams);
  const auto events = FAKE(slimpi_fake_events);
  const int old_streams = streams(), old_events = events();
  const size_t old_memory = FAKE(slimpi_fake_memory)();
  Stream* stream = nullptr;
  for (const char* function : {"cuStreamCreate", "cuEventCreate", "cuMemAlloc_v2"}) {
    tell_to_fail(function, CUDA_ERROR_UNKNOWN);
    assert_fails(row().open_stream(locate(memory), &stream), Status::device,
                 "CUDA_ERROR_OF_A_TEST (999)");
    assert_int_equal(streams(), old_streams);
    assert_int_equal(events(), old_events);
    assert_int_equal(FAKE(slimpi_fake_memory)(), old_memory);
  }
  gpu_give_back(GPU_DEVICE, memory);
}

// The launch of a kernel returns no error. Every later call on its stream reports the failure.
UNIT_TEST(a_launch_that_fails_shows_later) {
  Stream* stream = nullptr;
  auto* const memory = static_cast<float*>(gpu_take(GPU_DEVICE, kBytes));
  assert_ok(row().open_stream(locate(memory), &stream));
  tell_to_fail("cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  row().kernels()->fill(memory, 1, 10, stream);
  std::uint64_t event = 0;
  for (int turn = 0; turn < 2; ++turn) {
    assert_fails(row().record(stream, &event), Status::device, "launching a kernel");
    assert_fails(row().copy(memory, g_here, 4, stream), Status::device, "(701)");
  }
  row().close_stream(stream);
  gpu_give_back(GPU_DEVICE, memory);
}

UNIT_TEST(a_lost_gpu_is_an_error_and_no_more) {
  Stream* stream = nullptr;
  void *const memory = gpu_take(GPU_DEVICE, kBytes), *more = nullptr;
  assert_ok(row().open_stream(locate(memory), &stream));
  assert_ok(row().allocate(locate(memory), kBytes, Place::device, &more));
  std::uint64_t event = 0;
  bool reached = false;
  assert_ok(row().copy(memory, g_here, kBytes, stream));
  assert_ok(row().record(stream, &event));
  tell_to_fail("cuEventQuery", CUDA_ERROR_ECC_UNCORRECTABLE, 0, true);
  assert_fails(row().query(stream, event, &reached), Status::device, "work on the GPU");
  assert_false(reached);
  tell_to_fail(nullptr, 0);
  row().close_stream(stream);
  row().release(more, Place::device);
  gpu_give_back(GPU_DEVICE, memory);
}

// The file system says which NUMA node a GPU belongs to, and staging memory is asked for there.
UNIT_TEST(staging_memory_comes_from_the_gpu_s_node) {
  char root[] = "/tmp/slimpi-numa.XXXXXX";
  assert_non_null(mkdtemp(root));
  const std::string device = std::string(root) + "/0000:3b:00.0";
  assert_int_equal(mkdir(device.c_str(), 0700), 0);
  std::ofstream(device + "/numa_node") << "3\n";
  assert_int_equal(cuda::numa_node_of("0000:3B:00.0", root), 3);
  assert_int_equal(cuda::numa_node_of("0000:3C:00.0", root), -1);
  unlink((device + "/numa_node").c_str());
  rmdir(device.c_str());
  rmdir(root);

  const auto policy = [] {
    int found = -1;
    syscall(SYS_get_mempolicy, &found, nullptr, 0, nullptr, 0);
    return found;
  };
  const int before = policy();
  if (before < 0) skip();  // a kernel without NUMA, or a container that hides it
  {
    const cuda::Preferred preferred(0);
    assert_int_equal(policy(), MPOL_PREFERRED);
    const cuda::Preferred unknown(-1), absurd(100000);
    assert_int_equal(policy(), MPOL_PREFERRED);
  }
  assert_int_equal(policy(), before);
}

// Each mapping of a buffer has an allocation number of its own. Pages that are mapped anew at the
// same address are another allocation.
UNIT_TEST(virtual_memory_is_the_gpu_s) {
  for (int turn = 0; turn < 2; ++turn) {
    auto* const memory = static_cast<char*>(gpu_take(GPU_VIRTUAL, 3 * kBytes));
    for (const std::size_t at : {std::size_t(0), kBytes, 3 * kBytes - 1}) {
      assert_ptr_equal(locate(memory + at).device, &row());
      assert_true(locate(memory + at) == locate(memory));
    }
    use(memory);
    Stream* stream = nullptr;
    assert_ok(row().open_stream(locate(memory), &stream));
    constexpr std::size_t kFloats = 3 * kBytes / sizeof(float);
    static float values[kFloats];
    row().kernels()->fill(reinterpret_cast<float*>(memory), 3, kFloats, stream);
    assert_ok(row().copy(values, memory, sizeof values, stream));
    wait(stream);
    for (const float value : values) assert_true(value == 3);
    row().close_stream(stream);
    gpu_give_back(GPU_VIRTUAL, memory);
    assert_ptr_equal(locate(memory).device, &host());
  }
}

UNIT_TEST(nothing_is_left_behind) {
  assert_int_equal(FAKE(slimpi_fake_memory)(), 0);
  assert_int_equal(FAKE(slimpi_fake_streams)(), 0);
  assert_int_equal(FAKE(slimpi_fake_events)(), 0);
}

// Within a call of the program the driver is asked once for each of two buffers.
UNIT_TEST(a_call_asks_once) {
  void *const memory = gpu_take(GPU_DEVICE, kBytes), *const other = gpu_take(GPU_MANAGED, kBytes);
  for (int call = 0; call < 2; ++call) {
    begin_call();
    (void)locate(g_here);
    (void)locate(memory);
    tell_to_fail("cuPointerGetAttributes", CUDA_ERROR_NOT_INITIALIZED, 0, true);
    assert_ptr_equal(locate(memory).device, &row());
    assert_ptr_equal(locate(g_here).device, &host());
    tell_to_fail(nullptr, 0);
    assert_ptr_equal(locate(other).device, &row());
    assert_ptr_equal(locate(other).context, locate(memory).context);
  }
  gpu_give_back(GPU_MANAGED, other);
  gpu_give_back(GPU_DEVICE, memory);
}

}  // namespace
