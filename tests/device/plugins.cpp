// SPDX-License-Identifier: BSD-3-Clause
// Loading a part on demand, with the protected device for a part; and that this device catches what
// it is there to catch.
#include "device/plugins.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "device/device.h"
#include "kernels/cpu/cpu.h"
#include "tests/helper/devices/protected_device.h"
#include "tests/helper/base/unit_test.h"
#include "tests/kernels/data.h"

using namespace slimpi;
using namespace slimpi::device;
using namespace slimpi::test;

namespace {

constexpr std::size_t kCount = 3000;
float g_values[kCount], g_back[kCount];

// The test loads the library itself, so that it can look before the library is loaded.
void* g_library = nullptr;
decltype(&slimpi_protected_allocate) g_allocate;
decltype(&slimpi_protected_free) g_free;
decltype(&slimpi_protected_write) g_write;
decltype(&slimpi_protected_read) g_read;
decltype(&slimpi_protected_used) g_used;
decltype(&slimpi_protected_limit) g_limit;
decltype(&slimpi_protected_work) g_work;

template <typename Function>
void find(const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(g_library, name));
  assert_non_null(reinterpret_cast<void*>(function));
}

void load_library() {
  g_library = dlopen("libslimpi_protected.so", RTLD_NOW | RTLD_GLOBAL);
  if (g_library == nullptr) print_error("%s\n", dlerror());
  assert_non_null(g_library);
  find("slimpi_protected_allocate", g_allocate);
  find("slimpi_protected_free", g_free);
  find("slimpi_protected_write", g_write);
  find("slimpi_protected_read", g_read);
  find("slimpi_protected_used", g_used);
  find("slimpi_protected_limit", g_limit);
  find("slimpi_protected_work", g_work);
}

// Whether `action` ends the process with this signal.
bool dies(int signal, auto action) {
  const pid_t child = fork();
  if (child == 0) {
    ::signal(SIGSEGV, SIG_DFL);  // CMocka's own handlers would go on with the next test
    ::signal(SIGABRT, SIG_DFL);
    if (freopen("/dev/null", "w", stderr) == nullptr) _exit(3);
    action();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

float* device_copy(const float* from, std::size_t count) {
  auto* memory = (float*)g_allocate(count * sizeof(float));
  g_write(memory, from, count * sizeof(float));
  return memory;
}

UNIT_TEST(parts_come_with_what_they_are_for) {
  load_plugins();
  assert_int_equal(count(), 1);
  load_library();
  void* memory = g_allocate(100);
  never_use_gpus();  // the program's own device is none
  load_plugins();
  assert_int_equal(count(), 2);
  assert_string_equal(at(0).name, "protected");
  assert_ptr_equal(locate(memory).device, &at(0));
  assert_ptr_equal(locate((char*)memory + 99).device, &at(0));
  assert_ptr_equal(locate(&memory).device, &host());
  load_plugins();
  assert_int_equal(count(), 2);
  g_free(memory);
}

UNIT_TEST(the_program_cannot_touch_device_memory) {
  volatile auto* memory = (char*)g_allocate(100);
  assert_true(dies(SIGSEGV, [&] { (void)memory[0]; }));
  assert_true(dies(SIGSEGV, [&] { memory[99] = 1; }));
  g_free((void*)memory);
}

UNIT_TEST(work_comes_late_and_in_order) {
  const Device& row = at(0);
  for (std::size_t i = 0; i < kCount; ++i) g_values[i] = bell(1, i);
  float* memory = device_copy(g_values, kCount);
  void* staging = nullptr;
  Stream *stream = nullptr, *other = nullptr;
  assert_int_equal(int(row.allocate(locate(memory), sizeof g_values, Place::staging, &staging)), 0);
  assert_ptr_equal(locate(staging).device, &host());
  assert_int_equal(int(row.open_stream(locate(memory), &stream)), 0);
  assert_int_equal(int(row.open_stream(locate(memory), &other)), 0);
  // A kernel doubles the values on one stream. Another stream waits for it and copies them out.
  std::uint64_t doubled = 0, out = 0;
  row.kernels()->combine(1, memory, 1, memory, kCount, memory, stream);
  assert_int_equal(int(row.record(stream, &doubled)), 0);
  assert_int_equal(int(row.wait_event(other, stream, doubled)), 0);
  assert_int_equal(int(row.copy(staging, memory, sizeof g_values, other)), 0);
  assert_int_equal(int(row.record(other, &out)), 0);
  assert_true(((unsigned char*)staging)[0] == 0xdb);
  g_read(g_back, memory, sizeof g_back);
  assert_memory_equal(g_back, g_values, sizeof g_back);
  int polls = 0;
  for (bool reached = false; !reached; ++polls) {
    assert_in_range(polls, 0, 10);
    assert_int_equal(int(row.query(other, out, &reached)), 0);
    assert_int_equal(reached, ((float*)staging)[0] == 2 * g_values[0] && polls >= 2);
  }
  bool reached = false;
  assert_int_equal(int(row.query(stream, doubled, &reached)), 0);
  assert_true(reached);
  row.close_stream(other);
  row.close_stream(stream);
  row.release(staging, Place::staging);
  g_free(memory);
}

UNIT_TEST(kernels_are_the_host_s) {
  const Device& row = at(0);
  const kernels::Format format = quantized(5, 100);
  const std::size_t bytes = kernels::encoded_bytes(format, kCount);
  static std::byte expected[4 * kCount], coded[4 * kCount];
  kernels::cpu_kernels(CpuPath::automatic)
      ->encode(format, {1, 2, 3, 4}, g_values, nullptr, kCount, expected, nullptr);
  float* memory = device_copy(g_values, kCount);
  auto* out = (std::byte*)g_allocate(bytes);
  Stream* stream = nullptr;
  assert_int_equal(int(row.open_stream(locate(memory), &stream)), 0);
  row.kernels()->encode(format, {1, 2, 3, 4}, memory, nullptr, kCount, out, stream);
  row.close_stream(stream);  // does what is queued
  g_read(coded, out, bytes);
  assert_memory_equal(coded, expected, bytes);
  g_free(out);
  g_free(memory);
}

UNIT_TEST(misuse_dies) {
  const Device& row = at(0);
  float* memory = device_copy(g_values, kCount);
  Stream* stream = nullptr;
  assert_int_equal(int(row.open_stream(locate(memory), &stream)), 0);
  const float* inputs[] = {memory, g_values};
  assert_true(dies(SIGABRT, [&] { row.kernels()->sum(inputs, 2, kCount, memory, stream); }));
  assert_true(dies(SIGABRT, [&] { row.kernels()->sum(inputs, 1, kCount, memory, nullptr); }));
  bool reached = false;
  assert_true(dies(SIGABRT, [&] { (void)row.query(stream, 1, &reached); }));
  assert_true(dies(SIGABRT, [&] {
    (void)row.copy(g_back, memory, sizeof g_back + 4, stream);
    row.close_stream(stream);
  }));
  row.close_stream(stream);
  g_free(memory);
}

UNIT_TEST(memory_can_run_out) {
  const Device& row = at(0);
  void *memory = g_allocate(1000), *more = nullptr;
  assert_int_equal(g_used(), 1000);
  g_limit(2000);
  assert_int_equal(int(row.allocate(locate(memory), 1001, Place::staging, &more)),
                   int(Status::no_memory));
  assert_non_null(strstr(failure_text().c_str(), "1001 bytes"));
  assert_int_equal(int(row.allocate(locate(memory), 1001, Place::device, &more)),
                   int(Status::no_memory));
  assert_int_equal(int(row.allocate(locate(memory), 1000, Place::device, &more)), int(Status::ok));
  row.release(more, Place::device);
  g_limit(SIZE_MAX);
  g_free(memory);
  assert_int_equal(g_used(), 0);
  assert_true(g_work() > 0);
}

// Looking again is cheap enough for every call; many threads may do it.
UNIT_TEST(looking_again_changes_nothing) {
  std::thread threads[4];
  for (std::thread& thread : threads)
    thread = std::thread([] {
      for (int i = 0; i < 1000; ++i) load_plugins();
    });
  for (std::thread& thread : threads) thread.join();
  assert_int_equal(count(), 2);
}

}  // namespace
