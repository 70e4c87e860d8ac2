// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/schedule.h"

#include <string>

#include "tests/helper/cmocka_cxx.h"

namespace {

using namespace slimpi;
using algorithm::Grain;
using algorithm::schedule_for;

kernels::Format eight_bits() {
  kernels::Format format;
  format.coding = kernels::Coding::quantized;
  format.bits = 8;
  format.bucket = 2048;
  return format;
}

std::string chosen(std::uint64_t count, int members) {
  return schedule_for(eight_bits(), count, members, Grain::fine).name;
}

void few_nodes_and_large_buffers_go_the_direct_way(void**) {
  for (const int members : {2, 3, 4, 8, 16})
    for (const std::uint64_t count : {0, 1, 16'384, 16 << 20})
      assert_string_equal(chosen(count, members).c_str(), "direct");
  assert_string_equal(chosen(256 << 20, 1000).c_str(), "direct");
}

void many_nodes_and_small_buffers_save_messages(void**) {
  for (const int members : {500, 1000, 100'000})
    for (const std::uint64_t count : {16'384, 65'536})
      assert_string_equal(chosen(count, members).c_str(), "relayed");
}

// With a place for every peer, 100,000 nodes would take 600 MB for 64 MiB of floats.
void memory_counts(void**) {
  const kernels::Format format = eight_bits();
  assert_string_equal(chosen(16 << 20, 100'000).c_str(), "relayed");
  const auto need = algorithm::exchange_need(format, 16 << 20, 100'000, Grain::fine, false);
  const auto direct = algorithm::schedules()[0].need(format, 16 << 20, 100'000, Grain::fine, false);
  assert_true(need.bytes < direct.bytes / 2);
  for (const int members : {2, 16, 1000}) {
    const std::size_t encoded = kernels::encoded_bytes(format, 16 << 20);
    assert_true(algorithm::exchange_need(format, 16 << 20, members, Grain::coarse, true).bytes <
                encoded + encoded / 2 + (16 << 20));
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(few_nodes_and_large_buffers_go_the_direct_way),
      cmocka_unit_test(many_nodes_and_small_buffers_save_messages),
      cmocka_unit_test(memory_counts),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
