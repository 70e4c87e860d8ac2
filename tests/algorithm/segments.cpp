// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/segments.h"

#include <initializer_list>

#include "tests/helper/cmocka_cxx.h"

namespace {

using namespace slimpi;
using algorithm::Segments;
using algorithm::segments_for;

constexpr std::uint64_t kCounts[] = {1, 2047, 2049, 300'000, 16 << 20, std::uint64_t(1) << 33};
constexpr int kMembers[] = {2, 3, 4, 16, 64, 1000};

template <typename Check>
void for_all_formats(Check check) {
  kernels::Format format;
  for (const auto coding :
       {kernels::Coding::quantized, kernels::Coding::fp16, kernels::Coding::float32})
    for (const int bits : {1, 3, 8})
      for (const std::uint32_t bucket : {0u, 64u, 2048u}) {
        format.coding = coding;
        format.bits = std::uint8_t(bits);
        format.bucket = bucket;
        for (const std::uint64_t count : kCounts)
          for (const int members : kMembers) check(format, count, members);
      }
}

// Ranks whose buffers lie on a GPU and ranks whose do not take part in one exchange.
void ranks_with_and_without_a_gpu_cut_alike(void**) {
  for_all_formats([](const kernels::Format& format, std::uint64_t count, int members) {
    const Segments host = segments_for(format, count, members, false);
    const Segments staged = segments_for(format, count, members, true);
    assert_int_equal(host.elements, staged.elements);
    assert_int_equal(host.longest, staged.longest);
    assert_int_equal(host.align, staged.align);
  });
}

void segments_are_whole_buckets_that_fit_their_messages(void**) {
  for_all_formats([](const kernels::Format& format, std::uint64_t count, int members) {
    const Segments one = segments_for(format, count, members, false);
    assert_true(one.elements >= 1 && one.slots >= 1 && one.longest >= one.slots);
    assert_true(one.message >= algorithm::message_bytes(format, one.elements));
    assert_true(one.longest == 1 || one.elements % one.align == 0);
  });
}

// A buffer for every peer of the whole size is what would break first with many nodes.
void memory_is_bounded(void**) {
  kernels::Format format;
  format.coding = kernels::Coding::quantized;
  format.bits = 8;
  format.bucket = 2048;
  for (const std::uint64_t count : kCounts)
    for (const int members : {2, 4, 64})
      assert_true(segments_for(format, count, members, false).total <=
                  (16 << 20) + kernels::encoded_bytes(format, count));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(ranks_with_and_without_a_gpu_cut_alike),
      cmocka_unit_test(segments_are_whole_buckets_that_fit_their_messages),
      cmocka_unit_test(memory_is_bounded),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
