// SPDX-License-Identifier: BSD-3-Clause
// The device row of GPU memory where the program's GPU fails, is reset, or is being captured, on
// the fake driver; tests/device/fake_driver.sh runs it.
#include "device/cuda/stream.h"
#include "device/plugins.h"
#include "tests/helper/devices/cuda_row.h"

using namespace slimpi;
using namespace slimpi::device;
using namespace slimpi::test;

namespace {

int open(void**) {
  const int skipped = gpu_open();
  if (skipped == 0) load_plugins();
  return skipped;
}

// Drivers load a kernel when it is first used, and wait for the GPU then, unless they are asked to
// load it before.
UNIT_TEST(kernels_are_loaded_with_the_first_memory) {
  void *const like = gpu_take(GPU_DEVICE, kBytes), *memory = nullptr;
  Stream* stream = nullptr;
  assert_ok(row().open_stream(locate(like), &stream));
  assert_ok(row().allocate(locate(like), kBytes, Place::device, &memory));
  assert_int_equal(FAKE(slimpi_fake_calls)("cuFuncLoad"),
                   FAKE(slimpi_fake_calls)("cuModuleGetFunction"));
  row().kernels()->fill(static_cast<float*>(memory), 1, 8, stream);
  wait(stream);
  row().release(memory, Place::device);
  row().close_stream(stream);
  gpu_give_back(GPU_DEVICE, like);
}

// The program's kernels may fill the GPU for long; slimpi's are short, and the program waits for
// them.
UNIT_TEST(streams_come_before_the_programs) {
  void* const like = gpu_take(GPU_DEVICE, kBytes);
  Stream* stream = nullptr;
  const unsigned long before = FAKE(slimpi_fake_calls)("cuStreamCreate");
  assert_ok(row().open_stream(locate(like), &stream));
  assert_int_equal(FAKE(slimpi_fake_calls)("cuStreamCreate"), before);
  assert_int_equal(FAKE(slimpi_fake_priority)(), -5);
  row().close_stream(stream);
  // This driver knows no priorities of streams.
  tell_to_fail("cuStreamCreateWithPriority", CUDA_ERROR_NOT_SUPPORTED);
  assert_ok(row().open_stream(locate(like), &stream));
  row().close_stream(stream);
  tell_to_fail(nullptr, 0);
  gpu_give_back(GPU_DEVICE, like);
}

// One failure spoils a stream for good, and can be seen without waiting for anything.
UNIT_TEST(a_stream_says_whether_it_failed) {
  Stream* stream = nullptr;
  void* const memory = gpu_take(GPU_DEVICE, kBytes);
  assert_ok(row().open_stream(locate(memory), &stream));
  bool reached = false;
  assert_ok(row().query(stream, 0, &reached));
  assert_true(reached);
  tell_to_fail("cuMemcpyAsync", CUDA_ERROR_UNKNOWN);
  assert_fails(row().copy(memory, g_here, kBytes, stream), Status::device, "(999)");
  assert_fails(row().query(stream, 0, &reached), Status::device, "(999)");
  row().close_stream(stream);
  gpu_give_back(GPU_DEVICE, memory);
}

// The fake driver captures as while torch.cuda.graph of another thread is open.
UNIT_TEST(a_capture_of_the_program_goes_on) {
  void* const memory = gpu_take(GPU_DEVICE, kBytes);
  FAKE(slimpi_fake_capture)(1);
  use(memory);
  assert_false(FAKE(slimpi_fake_capture_ended)());
  FAKE(slimpi_fake_capture)(0);
  gpu_give_back(GPU_DEVICE, memory);
}

// The program queues work on its default stream, and then captures a stream that waits for the
// default stream. slimpi's work must come behind the program's all the same. The second time the
// capture begins after slimpi has asked for it: the driver then refuses the event.
UNIT_TEST(work_from_before_a_capture_is_awaited) {
  auto* const queue =
      reinterpret_cast<CUresult (*)(CUdeviceptr, CUdeviceptr, std::size_t, CUstream)>(
          gpu_function("cuMemcpyAsync"));
  for (const bool late : {false, true})
    for (int round = 0; round < 20; ++round) {
      Stream* stream = nullptr;
      void *const memory = gpu_take(GPU_DEVICE, kBytes), *values = nullptr, *result = nullptr;
      const Location at = locate(memory);
      assert_ok(row().open_stream(at, &stream));
      assert_ok(row().allocate(at, kBytes, Place::staging, &values));
      assert_ok(row().allocate(at, kBytes, Place::staging, &result));
      std::memset(values, round + 1, kBytes);
      std::memset(result, 0, kBytes);
      assert_int_equal(queue(reinterpret_cast<CUdeviceptr>(memory),
                             reinterpret_cast<CUdeviceptr>(values), kBytes, nullptr),
                       CUDA_SUCCESS);
      if (late)
        tell_to_fail("cuEventRecord", CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
      else
        FAKE(slimpi_fake_capture)(2);
      assert_ok(row().copy(result, memory, kBytes, stream));
      wait(stream);
      assert_memory_equal(result, values, kBytes);
      if (!late) assert_false(FAKE(slimpi_fake_capture_ended)());
      FAKE(slimpi_fake_capture)(0);
      row().close_stream(stream);
      row().release(values, Place::staging);
      row().release(result, Place::staging);
      gpu_give_back(GPU_DEVICE, memory);
    }
}

// The GPU is reset as by cudaDeviceReset(). The fake driver dies if a handle from before is used.
UNIT_TEST(a_gpu_that_was_reset_is_a_new_one) {
  Stream* stream = nullptr;
  auto* memory = static_cast<float*>(gpu_take(GPU_DEVICE, kBytes));
  void* scratch = nullptr;
  const Location before = locate(memory);
  assert_ok(row().open_stream(before, &stream));
  assert_ok(row().allocate(before, kBytes, Place::staging, &scratch));
  assert_ok(row().pin(before, g_back, kBytes));
  row().kernels()->fill(memory, 1, 10, stream);
  wait(stream);
  auto* const reset = reinterpret_cast<int (*)(int)>(gpu_function("cuDevicePrimaryCtxReset_v2"));
  assert_int_equal(reset(0), 0);
  row().close_stream(stream);
  row().release(scratch, Place::staging);
  row().unpin(g_back);
  memory = static_cast<float*>(gpu_take(GPU_DEVICE, kBytes));
  assert_false(locate(memory) == before);
  assert_true(locate(memory) == locate(memory + 1));
  assert_ok(row().pin(locate(memory), g_back, kBytes));
  row().unpin(g_back);
  assert_int_equal(FAKE(slimpi_fake_registered)(), 0);
  assert_ok(row().open_stream(locate(memory), &stream));
  row().kernels()->fill(memory, 2, 10, stream);
  float value = 0;
  assert_ok(row().copy(&value, memory, sizeof value, stream));
  wait(stream);
  assert_true(value == 2);
  row().close_stream(stream);
  gpu_give_back(GPU_DEVICE, memory);
}

GROUP_FIXTURES(open, nullptr);

}  // namespace
