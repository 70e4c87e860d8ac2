// SPDX-License-Identifier: BSD-3-Clause
#include "inter/segment_length.h"

#include <initializer_list>

#include "tests/helper/base/unit_test.h"
#include "tests/kernels/data.h"

namespace {

using namespace slimpi;
using comm::SegmentClass;
using inter::Segments;
using inter::segments_for;

constexpr std::uint64_t kCounts[] = {1, 2047, 2049, 300'000, 16 << 20, std::uint64_t(1) << 33};
constexpr int kMembers[] = {2, 3, 4, 16, 64, 1000};

void for_all_formats(auto check) {
  kernels::Format format;
  for (const auto codec :
       {kernels::Codec::quantized, kernels::Codec::fp16, kernels::Codec::float32})
    for (const int bits : {1, 3, 8, 16})
      for (const std::uint32_t bucket : {0u, 64u, 2048u}) {
        format.codec = codec;
        format.bits = std::uint8_t(bits);
        format.bucket = bucket;
        for (const std::uint64_t count : kCounts)
          for (const int group_size : kMembers)
            for (const SegmentClass segment_class : {SegmentClass::small, SegmentClass::large})
              check(format, count, group_size, segment_class);
      }
}

// Segments are the same with and without a GPU, because ranks of both kinds take part in one
// exchange.
UNIT_TEST(ranks_with_and_without_a_gpu_cut_alike) {
  for_all_formats([](const kernels::Format& format, std::uint64_t count, int group_size,
                     SegmentClass segment_class) {
    const Segments host = segments_for({format, count, group_size, segment_class, false});
    const Segments staged = segments_for({format, count, group_size, segment_class, true});
    assert_int_equal(host.elements, staged.elements);
    assert_int_equal(host.per_longest_chunk, staged.per_longest_chunk);
    assert_int_equal(host.align, staged.align);
    assert_int_equal(host.most_in_flight, staged.most_in_flight);
  });
}

UNIT_TEST(segments_are_whole_buckets_that_fit_their_messages) {
  for_all_formats([](const kernels::Format& format, std::uint64_t count, int group_size,
                     SegmentClass segment_class) {
    const Segments one = segments_for({format, count, group_size, segment_class, false});
    assert_true(one.elements >= 1 && one.depth >= 1 && one.per_longest_chunk >= one.depth);
    assert_true(one.message >= inter::message_bytes(format, one.elements));
    assert_true(one.per_longest_chunk == 1 || one.elements % one.align == 0);
  });
}

// The memory is bounded: buffers for all peers, each of the whole size, would not fit with many
// nodes.
UNIT_TEST(memory_is_bounded) {
  const kernels::Format format = test::quantized(8, 2048);
  for (const std::uint64_t count : kCounts)
    for (const int group_size : {2, 4, 64})
      for (const SegmentClass segment_class : {SegmentClass::small, SegmentClass::large})
        assert_true(segments_for({format, count, group_size, segment_class, true}).total <=
                    (16 << 20) + kernels::encoded_bytes(format, count));
}

// With many nodes a message costs more than its bytes, so a chunk has only as many segments as the
// limit of memory demands.
UNIT_TEST(few_segments_are_as_long_as_memory_allows) {
  const kernels::Format format{kernels::Codec::quantized};  // 8 bits: a bucket takes 520 bytes
  const auto segments = [&](int group_size, std::uint64_t buckets) {
    return segments_for({format, 512 * buckets, group_size, SegmentClass::small, true});
  };
  assert_int_equal(segments(1024, 8192).per_longest_chunk, 1);
  assert_true(segments(1024, 8192).total < 16 << 20);
  assert_int_equal(segments(256, 8192).per_longest_chunk, 1);
  assert_int_equal(segments(64, 8192).per_longest_chunk, 4);  // of 16 KiB
  assert_int_equal(segments(256, 256 * 33).elements, 17 * 512);
  // A chunk that is too long for one segment has as many segments as the pipeline is deep, or more.
  assert_int_equal(segments(256, 256 * 48).per_longest_chunk, 8);
}

// Segments of a device are few and long, but at least several, or nothing would overlap.
UNIT_TEST(coarse_segments_are_longer_where_several_are_left) {
  const kernels::Format format = test::quantized(8, 2048);
  const auto segments = [&](std::uint64_t count, SegmentClass segment_class) {
    return segments_for({format, count, 2, segment_class, true});
  };
  const Segments fine = segments(16 << 20, SegmentClass::small),
                 coarse = segments(16 << 20, SegmentClass::large);
  assert_true(coarse.elements >= 3 * fine.elements);
  assert_true(coarse.most_in_flight >= 3 * coarse.message);
  assert_true(segments(600'000, SegmentClass::large).per_longest_chunk >= 4);
  // A short chunk has two segments, because each segment costs a wait for the device.
  assert_int_equal(segments(80 * 2048, SegmentClass::large).per_longest_chunk, 2);
  assert_int_equal(segments(20'000, SegmentClass::large).elements,
                   segments(20'000, SegmentClass::small).elements);
}

}  // namespace
