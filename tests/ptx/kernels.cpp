// SPDX-License-Identifier: BSD-3-Clause
// What nvcc made of the kernels gives the very bytes of the host's: src/device/cuda starts them on
// the fake driver, which interprets the files of PTX that FAKE_PTX names. Run by tests/ptx/run.sh.
// Inputs are new in each run; TEST_SEED repeats one.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "device/device.h"
#include "device/plugins.h"
#include "tests/helper/cmocka_cxx.h"
#include "tests/helper/gpu.h"
#include "tests/kernels/data.h"
#include "tests/ptx/cases.h"

using namespace slimpi;
using namespace slimpi::kernels;
using namespace slimpi::test;

namespace {

Side g_side;
std::uint64_t g_seed = 0, g_turn = 0;

// Each case has other inputs, and another alignment.
Case next_case(const Format& format, int kind, std::size_t count) {
  ++g_turn;
  return {format, kind, count, 4 * (g_turn % 4), mixed(g_seed + g_turn)};
}

std::vector<Format> formats() {
  std::vector<Format> all = {{Codec::float32}, {Codec::fp16}, {Codec::bf16}};
  for (const bool stochastic : {false, true}) {
    for (const int bits : {2, 4, 8, 16})
      for (const std::uint32_t bucket : {512u, 2048u, 0u})
        all.push_back(quantized(bits, bucket, stochastic));
    // The other widths, and any bucket.
    for (const int bits : {1, 3, 5, 6, 7, 9, 12, 15})
      for (const std::uint32_t longest : {500u, 2000u, 7000u})
        all.push_back(
            quantized(bits, 1 + std::uint32_t(mixed(g_seed + all.size()) % longest), stochastic));
  }
  for (const int half_bits : {2, 3, 5, 8, 13, 16, 19, 25, 32})
    for (const std::uint32_t tile : {1024u, 65536u}) all.push_back(packed(half_bits, tile));
  return all;
}

// Lengths at the ends of a bucket, and one of several buckets or tiles.
void codecs(void**) {
  for (const Format& format : formats()) {
    const std::size_t bucket = format.bucket == 0 ? 2048 : format.bucket;
    const std::size_t some = 3 * bucket + mixed(g_seed + g_turn) % 1000;
    for (const std::size_t count : {std::size_t(0), std::size_t(1), bucket - 1, bucket, bucket + 1,
                                    some < 9000 ? some : 9000})
      check_codec(g_side, next_case(format, int(g_turn % kCaseKinds), count));
  }
}

// All kinds of input, for each kernel: teams that are warps, that are blocks, and long buckets.
void ugly_values(void**) {
  for (int kind = 0; kind < kCaseKinds; ++kind)
    for (const std::uint32_t bucket : {512u, 2048u, 3000u})
      for (const bool stochastic : {false, true}) {
        const int bits = 1 + int(mixed(g_seed + g_turn) % kMostBits);
        check_codec(g_side, next_case(quantized(bits, bucket, stochastic), kind, 4500));
      }
}

// Sums of few and of many; the kinds 3 and 5 overflow on the way.
void long_sums(void**) {
  for (const Format& format :
       {quantized(8, 2048), quantized(3, 100, true), quantized(5, 500), quantized(2, 1000, true),
        quantized(4, 0), quantized(16, 2048), quantized(11, 500, true), Format{Codec::float32},
        Format{Codec::fp16}, Format{Codec::bf16}})
    for (const int kind : {0, 1, 3, 5})
      for (const unsigned addends : {1 + unsigned(g_turn % 6), unsigned(kMaxAddends)})
        check_long_sum(g_side, next_case(format, kind, 2500), addends);
}

// Every width, in buckets for warps and blocks and in long ones, of ordinary and of huge values.
void widths(void**) {
  for (int bits = 1; bits <= kMostBits; ++bits)
    for (const std::uint32_t bucket : {100u, 1000u, 3000u})
      for (const bool stochastic : {false, true})
        for (const int kind : {0, 3})
          check_codec(g_side, next_case(quantized(bits, bucket, stochastic), kind, 3100));
}

void elementwise(void**) {
  for (int kind = 0; kind < kCaseKinds; ++kind)
    for (const std::size_t count : {0, 1, 1023, 1025, 5003})
      check_elementwise(g_side, next_case({}, kind, count));
}

void low_rank(void**) {
  for (const int kind : {0, 1, 5})
    for (const std::size_t columns : {1, 37, 300})
      for (const int rank : {1, 5})
        check_low_rank(g_side, next_case({}, kind, 29 * columns - columns / 3), columns, rank);
}

// The last test.
void every_kernel_has_a_case(void**) {
  using Text = const char* (*)();
  using Number = size_t (*)(int);
  const char* const idle = ((Text)gpu_function("slimpi_fake_idle_kernels"))();
  assert_non_null(idle);
  if (*idle != 0) {
    print_error(
        "no case runs these kernels:\n%sCall the function of the kernel table that starts one in "
        "check_codec or check_elementwise of tests/ptx/cases.cpp, for the host and the GPU, and "
        "compare.\n",
        idle);
    fail();
  }
  const auto instructions = (Number)gpu_function("slimpi_fake_instructions");
  print_message("%zu of %zu instructions were executed\n", instructions(1), instructions(0));
  if (std::getenv("VERBOSE") != nullptr)
    std::fputs(((Text)gpu_function("slimpi_fake_missing_lines"))(), stdout);
}

int open(void**) {
  const char* const given = std::getenv("TEST_SEED");
  g_seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::uint64_t(std::time(nullptr));
  print_message("TEST_SEED=%llu\n", (unsigned long long)g_seed);
  device::load_plugins();
  void* const memory = gpu_take(GPU_DEVICE, 4);
  g_side.row = device::locate(memory).device;
  const Status status = g_side.row->open_stream(device::locate(memory), &g_side.stream);
  if (status != Status::ok) print_error("%s\n", failure_text().c_str());
  gpu_give_back(GPU_DEVICE, memory);
  return status != Status::ok || g_side.row == &device::host();
}

int close(void**) {
  g_side.row->close_stream(g_side.stream);
  return 0;
}

}  // namespace

int main() {
  if (const int skipped = gpu_open(); skipped != 0) return skipped;
  const CMUnitTest tests[] = {
      cmocka_unit_test(codecs),
      cmocka_unit_test(ugly_values),
      cmocka_unit_test(long_sums),
      cmocka_unit_test(widths),
      cmocka_unit_test(elementwise),
      cmocka_unit_test(low_rank),
      cmocka_unit_test(every_kernel_has_a_case),
  };
  return cmocka_run_group_tests(tests, open, close) != 0;
}
