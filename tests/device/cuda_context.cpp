// SPDX-License-Identifier: BSD-3-Clause
// The device row of GPU memory where the program's GPU fails, is reset, or is being captured, on
// the fake driver; tests/device/fake_driver.sh runs it.
#include "device/cuda/stream.h"
#include "device/plugins.h"
#include "tests/helper/cuda_row.h"

using namespace slimpi;
using namespace slimpi::device;
using namespace slimpi::test;

namespace {

// One failure spoils a stream for good, and can be seen without waiting for anything.
void a_stream_says_whether_it_failed(void**) {
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

// A stream near `memory`, and the calls of functions of the driver.
Stream* open_near(const void* memory) {
  Stream* stream = nullptr;
  assert_ok(row().open_stream(locate(memory), &stream));
  return stream;
}
unsigned long calls(const char* function = nullptr) {
  return FAKE(slimpi_fake_calls)(function);
}

// Polls until the event is reached, and returns how often.
int poll(Stream* stream, std::uint64_t event) {
  bool reached = false;
  int polls = 0;
  for (; !reached; ++polls) {
    assert_in_range(polls, 0, 10000);
    assert_ok(row().query(stream, event, &reached));
  }
  return polls;
}

void a_poll_is_a_load(void**) {
  void* const memory = gpu_take(GPU_DEVICE, kBytes);
  auto* const back = static_cast<char*>(gpu_take(GPU_PINNED, kBytes));
  Stream* const stream = open_near(memory);
  memset(g_here, 42, kBytes);
  memset(back, 0, kBytes);
  assert_ok(row().copy(memory, g_here, kBytes, stream));
  assert_ok(row().copy(back, memory, kBytes, stream));
  std::uint64_t event = 0;
  const unsigned long events = calls("cuEventRecord");
  assert_ok(row().record_for_poll(stream, &event));
  assert_int_equal(calls("cuEventRecord"), events);
  const unsigned long before = calls();
  bool reached = false;
  for (unsigned polls = 1; polls < cuda::kPollsToAsk; ++polls) {
    assert_ok(row().query(stream, event, &reached));
    assert_false(reached);
  }
  assert_int_equal(calls(), before);
  poll(stream, event);
  assert_int_equal(back[kBytes - 1], 42);
  // Another stream cannot wait for it.
  Stream* const other = open_near(memory);
  assert_fails(row().wait_event(other, stream, event), Status::device, "only polled");
  row().close_stream(other);
  row().close_stream(stream);
  gpu_give_back(GPU_PINNED, back);
  gpu_give_back(GPU_DEVICE, memory);
}

// Events of both kinds on one stream, past 2^32 of them, of which the word has the low bits.
void numbers_may_wrap_around(void**) {
  void *const memory = gpu_take(GPU_DEVICE, kBytes), *const pinned = gpu_take(GPU_PINNED, kBytes);
  Stream* const stream = open_near(memory);
  cuda::CudaStream& inside = cuda::CudaStream::of(stream);
  constexpr std::uint64_t kBefore = (std::uint64_t(1) << 32) - 5;
  inside.recorded = inside.reached = inside.written = kBefore;
  *inside.word = std::uint32_t(kBefore);
  std::uint64_t events[10];
  for (std::uint64_t& event : events) {
    assert_ok(row().copy(memory, pinned, kBytes, stream));
    const bool polled = &event - events != 3;
    assert_ok(polled ? row().record_for_poll(stream, &event) : row().record(stream, &event));
    assert_int_equal(event, kBefore + 1 + std::uint64_t(&event - events));
    bool reached = true;
    assert_ok(row().query(stream, event, &reached));
    assert_false(reached);
  }
  // As if the stream were so far: a number before 2^32, and one behind it.
  for (const int last : {2, 6}) {
    *inside.word = std::uint32_t(events[last]);
    bool reached = false;
    assert_ok(row().query(stream, events[last], &reached));
    assert_true(reached);
    assert_ok(row().query(stream, events[last + 2], &reached));
    assert_false(reached);
  }
  std::uint64_t passed = events[6];
  for (const std::uint64_t event : events) {
    poll(stream, event);
    assert_true(inside.reached >= event && inside.reached <= events[9] && inside.reached >= passed);
    passed = inside.reached;
  }
  row().close_stream(stream);
  gpu_give_back(GPU_PINNED, pinned);
  gpu_give_back(GPU_DEVICE, memory);
}

// A stream that has failed writes no number any more.
void a_stream_that_fails_ends_the_polls(void**) {
  void* const memory = gpu_take(GPU_DEVICE, kBytes);
  Stream* const stream = open_near(memory);
  std::uint64_t event = 0;
  assert_ok(row().copy(memory, g_here, kBytes, stream));
  assert_ok(row().record_for_poll(stream, &event));
  tell_to_fail("cuStreamQuery", CUDA_ERROR_ECC_UNCORRECTABLE, 0, true);
  Status status = Status::ok;
  bool reached = false;
  for (int polls = 0; status == Status::ok; ++polls) {
    assert_in_range(polls, 0, 1000);
    status = row().query(stream, event, &reached);
  }
  assert_fails(status, Status::device, "work on the GPU");
  assert_false(reached);
  tell_to_fail(nullptr, 0);
  row().close_stream(stream);
  gpu_give_back(GPU_DEVICE, memory);
}

// Then all events are CUDA events: for good, or while another thread captures.
void a_driver_may_refuse_to_write(void**) {
  void* const memory = gpu_take(GPU_DEVICE, kBytes);
  std::uint64_t event = 0;
  const struct {
    const char* function;
    CUresult result;
    unsigned long tries;  // of three events
  } kCases[] = {{"cuStreamWriteValue32_v2", CUDA_ERROR_NOT_SUPPORTED, 1},
                {"cuStreamWriteValue32_v2", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 3},
                {"cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY, 0}};
  for (const auto& one : kCases) {
    tell_to_fail(one.function, one.result);
    Stream* const stream = open_near(memory);
    const unsigned long tries = calls("cuStreamWriteValue32_v2");
    for (int turn = 0; turn < 3; ++turn) {
      assert_ok(row().copy(memory, g_here, kBytes, stream));
      assert_ok(row().record_for_poll(stream, &event));
      poll(stream, event);
    }
    assert_int_equal(calls("cuStreamWriteValue32_v2") - tries, one.tries);
    row().close_stream(stream);
  }
  gpu_give_back(GPU_DEVICE, memory);
}

// As while torch.cuda.graph of another thread is open.
void a_capture_of_the_program_goes_on(void**) {
  void* const memory = gpu_take(GPU_DEVICE, kBytes);
  FAKE(slimpi_fake_capture)(1);
  use(memory);
  assert_false(FAKE(slimpi_fake_capture_ended)());
  FAKE(slimpi_fake_capture)(0);
  gpu_give_back(GPU_DEVICE, memory);
}

// As by cudaDeviceReset(). The driver dies of handles from before.
void a_gpu_that_was_reset_is_a_new_one(void**) {
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

int open(void**) {
  const int skipped = gpu_open();
  if (skipped == 0) load_plugins();
  return skipped;
}

// Drivers load a kernel when it is first used, and wait for the GPU then, unless they are asked to
// load it before.
void kernels_are_loaded_with_the_first_memory(void**) {
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
void streams_come_before_the_programs(void**) {
  void* const like = gpu_take(GPU_DEVICE, kBytes);
  Stream* stream = nullptr;
  const unsigned long before = FAKE(slimpi_fake_calls)("cuStreamCreate");
  assert_ok(row().open_stream(locate(like), &stream));
  assert_int_equal(FAKE(slimpi_fake_calls)("cuStreamCreate"), before);
  assert_int_equal(FAKE(slimpi_fake_priority)(), -5);
  row().close_stream(stream);
  // A driver that knows no priorities.
  tell_to_fail("cuStreamCreateWithPriority", CUDA_ERROR_NOT_SUPPORTED);
  assert_ok(row().open_stream(locate(like), &stream));
  row().close_stream(stream);
  tell_to_fail(nullptr, 0);
  gpu_give_back(GPU_DEVICE, like);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(kernels_are_loaded_with_the_first_memory),
      cmocka_unit_test(streams_come_before_the_programs),
      cmocka_unit_test(a_stream_says_whether_it_failed),
      cmocka_unit_test(a_poll_is_a_load),
      cmocka_unit_test(numbers_may_wrap_around),
      cmocka_unit_test(a_stream_that_fails_ends_the_polls),
      cmocka_unit_test(a_driver_may_refuse_to_write),
      cmocka_unit_test(a_capture_of_the_program_goes_on),
      cmocka_unit_test(a_gpu_that_was_reset_is_a_new_one),
  };
  return cmocka_run_group_tests(tests, open, nullptr) != 0;
}
