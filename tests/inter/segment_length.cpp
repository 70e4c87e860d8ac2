// SPDX-License-Identifier: BSD-3-Clause
#include "inter/segment_length.h"

#include <algorithm>
#include <initializer_list>

#include "tests/helper/cmocka_cxx.h"

namespace {

using namespace slimpi;
using comm::SegmentClass;
using inter::Segments;
using inter::segments_for;

constexpr std::uint64_t kCounts[] = {1, 2047, 2049, 300'000, 16 << 20, std::uint64_t(1) << 33};
constexpr int kMembers[] = {2, 3, 4, 16, 64, 1000};

template <typename Check>
void for_all_formats(Check check) {
  kernels::Format format;
  for (const auto codec :
       {kernels::Codec::quantized, kernels::Codec::fp16, kernels::Codec::float32})
    for (const int bits : {1, 3, 8})
      for (const std::uint32_t bucket : {0u, 64u, 2048u}) {
        format.codec = codec;
        format.bits = std::uint8_t(bits);
        format.bucket = bucket;
        for (const std::uint64_t count : kCounts)
          for (const int group_size : kMembers)
            for (const SegmentClass segment_class :
                 {SegmentClass::small, SegmentClass::large, SegmentClass::longest})
              check(format, count, group_size, segment_class);
      }
}

// Ranks whose buffers lie on a GPU and ranks whose do not take part in one exchange.
void ranks_with_and_without_a_gpu_cut_alike(void**) {
  for_all_formats([](const kernels::Format& format, std::uint64_t count, int group_size,
                     SegmentClass segment_class) {
    const Segments host = segments_for({format, count, group_size, segment_class, false});
    const Segments staged = segments_for({format, count, group_size, segment_class, true});
    assert_int_equal(host.elements, staged.elements);
    assert_int_equal(host.longest, staged.longest);
    assert_int_equal(host.align, staged.align);
    assert_int_equal(host.group, staged.group);
    assert_int_equal(host.in_flight, staged.in_flight);
  });
}

void segments_are_whole_buckets_that_fit_their_messages(void**) {
  for_all_formats([](const kernels::Format& format, std::uint64_t count, int group_size,
                     SegmentClass segment_class) {
    const Segments one = segments_for({format, count, group_size, segment_class, false});
    assert_true(one.elements >= 1 && one.depth >= 1 && one.longest >= one.depth);
    assert_true(one.message >= inter::message_bytes(format, one.elements));
    assert_true(one.longest == 1 || one.elements % one.align == 0);
  });
}

// A buffer for every peer of the whole size is what would break first with many nodes.
void memory_is_bounded(void**) {
  kernels::Format format;
  format.codec = kernels::Codec::quantized;
  format.bits = 8;
  format.bucket = 2048;
  for (const std::uint64_t count : kCounts)
    for (const int group_size : {2, 4, 64})
      for (const SegmentClass segment_class :
           {SegmentClass::small, SegmentClass::large, SegmentClass::longest}) {
        const std::size_t encoded = kernels::encoded_bytes(format, count);
        const std::size_t floor = 16 << 20;
        const bool fine = segment_class == SegmentClass::small;
        // Else schedule_for() would take another schedule because of it.
        assert_true(segments_for({format, count, group_size, segment_class, true}).total <=
                    floor + encoded + (fine ? 0 : encoded / 2));
      }
}

// One kernel and one copy work on a group.
void groups_grow_and_shrink_and_miss_nothing(void**) {
  for (const int most : {1, 2, 16})
    for (const std::int64_t segments : {1, 2, 3, 4, 5, 11, 47, 48, 128, 1000}) {
      const inter::Groups groups(segments, most);
      std::int64_t before = 0, longest = 0;
      assert_int_equal(groups.first(0), 0);
      assert_int_equal(groups.first(groups.count()), segments);
      for (std::int64_t number = 0; number < groups.count(); ++number) {
        const std::int64_t length = groups.first(number + 1) - groups.first(number);
        assert_in_range(length, 1, most);
        assert_true(length <= std::max<std::int64_t>(1, 2 * before));
        if (length > std::max(1, most / 2))
          assert_true(2 * length <= segments - groups.first(number));
        longest = std::max(longest, length);
        before = length;
      }
      if (most > 1) assert_int_equal(longest == most, segments >= 3 * most - 1);
    }
}

// The groups of 64 MiB, with all buffers that they need; short vectors have none.
void a_gpu_gets_groups_where_they_fit(void**) {
  kernels::Format format;
  format.codec = kernels::Codec::quantized;
  format.bits = 8;
  format.bucket = 2048;
  const auto group = [&](std::uint64_t count, int group_size, SegmentClass segment_class) {
    return segments_for({format, count, group_size, segment_class, true}).group;
  };
  assert_int_equal(group(16 << 20, 2, SegmentClass::large), 16);
  assert_int_equal(group(16 << 20, 4, SegmentClass::large), 8);
  assert_int_equal(group(16 << 20, 2, SegmentClass::longest), 4);
  assert_int_equal(group(16 << 20, 2, SegmentClass::small), 1);
  assert_int_equal(group(100'000, 2, SegmentClass::large), 1);
}

// A device is asked for few long pieces, but for several, or nothing would overlap.
void coarse_segments_are_longer_where_several_are_left(void**) {
  kernels::Format format;
  format.codec = kernels::Codec::quantized;
  format.bits = 8;
  format.bucket = 2048;
  const auto segments = [&](std::uint64_t count, SegmentClass segment_class) {
    return segments_for({format, count, 2, segment_class, true});
  };
  const Segments fine = segments(16 << 20, SegmentClass::small),
                 coarse = segments(16 << 20, SegmentClass::large);
  assert_true(coarse.elements >= 3 * fine.elements);
  assert_true(coarse.in_flight >= 4 * coarse.message - 4096);
  const Segments longest = segments(16 << 20, SegmentClass::longest);
  assert_true(longest.elements >= 3 * coarse.elements);
  // The classes use the same memory, one after the other.
  assert_true(longest.total <= coarse.total + coarse.total / 8);
  assert_true(segments(200'000, SegmentClass::large).longest >= 4);
  assert_true(segments(200'000, SegmentClass::longest).longest >= 4);
  assert_int_equal(segments(20'000, SegmentClass::large).elements,
                   segments(20'000, SegmentClass::small).elements);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(ranks_with_and_without_a_gpu_cut_alike),
      cmocka_unit_test(segments_are_whole_buckets_that_fit_their_messages),
      cmocka_unit_test(memory_is_bounded),
      cmocka_unit_test(groups_grow_and_shrink_and_miss_nothing),
      cmocka_unit_test(a_gpu_gets_groups_where_they_fit),
      cmocka_unit_test(coarse_segments_are_longer_where_several_are_left),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
