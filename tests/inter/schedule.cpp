// SPDX-License-Identifier: BSD-3-Clause
#include "inter/schedule.h"

#include <string>

#include "tests/helper/cmocka_cxx.h"

namespace {

using namespace slimpi;
using comm::SegmentClass;
using inter::schedule_for;

kernels::Format eight_bits() {
  kernels::Format format;
  format.codec = kernels::Codec::quantized;
  format.bits = 8;
  format.bucket = 2048;
  return format;
}

std::string chosen(std::uint64_t count, int group_size) {
  return schedule_for(eight_bits(), count, group_size, SegmentClass::small).name;
}

void few_nodes_and_large_buffers_go_by_pairwise_exchange(void**) {
  for (const int group_size : {2, 3, 4, 8, 16})
    for (const std::uint64_t count : {0, 1, 16'384, 16 << 20})
      assert_string_equal(chosen(count, group_size).c_str(), "pairwise");
  assert_string_equal(chosen(256 << 20, 1000).c_str(), "pairwise");
}

void many_nodes_and_small_buffers_save_messages(void**) {
  for (const int group_size : {500, 1000, 100'000})
    for (const std::uint64_t count : {16'384, 65'536})
      assert_string_equal(chosen(count, group_size).c_str(), "bruck");
}

// With a place for every peer, 100,000 nodes would take 600 MB for 64 MiB of floats.
void memory_counts(void**) {
  const kernels::Format format = eight_bits();
  assert_string_equal(chosen(16 << 20, 100'000).c_str(), "bruck");
  const auto need = inter::exchange_need(format, 16 << 20, 100'000, SegmentClass::small, false);
  const auto device_path =
      inter::schedules()[0].need(format, 16 << 20, 100'000, SegmentClass::small, false);
  assert_true(need.bytes < device_path.bytes / 2);
  for (const int group_size : {2, 16, 1000}) {
    const std::size_t encoded = kernels::encoded_bytes(format, 16 << 20);
    assert_true(
        inter::exchange_need(format, 16 << 20, group_size, SegmentClass::large, true).bytes <
        encoded + encoded / 2 + (16 << 20));
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(few_nodes_and_large_buffers_go_by_pairwise_exchange),
      cmocka_unit_test(many_nodes_and_small_buffers_save_messages),
      cmocka_unit_test(memory_counts),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
