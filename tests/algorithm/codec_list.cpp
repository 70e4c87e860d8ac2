// SPDX-License-Identifier: BSD-3-Clause
// Tests which codec follows a codec whose error was too large.
#include "algorithm/codec_choice.h"

#include "tests/helper/base/unit_test.h"

using slimpi::algorithm::codec_at;
using slimpi::algorithm::kUncompressed;
using slimpi::algorithm::next_codec;

namespace {

constexpr int kEightBits = 7, kFifteenBits = 14, kSixteenBits = 15, kHalf = 16;

UNIT_TEST(a_quantizer_with_enough_levels_follows) {
  // Twice as many levels, and a margin, are two bits more.
  assert_int_equal(next_codec(0, 1.01, 1e-2, 1), 1);
  assert_int_equal(next_codec(3, 2, 1e-2, 1), 5);
  for (int index = 0; index < kSixteenBits; ++index)
    for (double excess = 1.01; excess < 1e5; excess *= 1.3) {
      const int finer = next_codec(index, excess, 1e-2, 1);
      assert_true(finer > index);
      if (finer >= kHalf) continue;
      assert_true(double((1 << (finer + 1)) - 1) >= excess * double((1 << (index + 1)) - 1));
    }
}

UNIT_TEST(after_sixteen_bits_comes_fp16) {
  assert_int_equal(next_codec(kEightBits, 1.2, 1e-2, 1), kEightBits + 1);
  assert_int_equal(next_codec(kEightBits, 100, 1e-3, 1), kFifteenBits);
  assert_int_equal(next_codec(kFifteenBits, 1.2, 1e-2, 1), kSixteenBits);
  assert_int_equal(next_codec(kSixteenBits, 1.2, 1e-2, 1), kHalf);
  assert_int_equal(next_codec(2, 4000, 1.3e-4, 1), kSixteenBits);
  assert_true(codec_at({}, kHalf).codec == slimpi::kernels::Codec::fp16);
}

// An error of 0.7 times the result is about 0.7 times the exact sum, too. If the error is as large
// as the result, nothing is known about the exact sum.
UNIT_TEST(a_large_error_is_larger_than_it_seems) {
  assert_int_equal(next_codec(4, 7.5, 1e-3, 1), kEightBits);
  assert_int_equal(next_codec(4, 7.5, 1e-1, 1), kEightBits + 1);
  assert_int_equal(next_codec(4, 12, 1e-1, 1), kHalf);
}

UNIT_TEST(after_fp16_comes_the_exact_codec) {
  assert_int_equal(next_codec(kHalf, 1.2, 1e-2, 1), kUncompressed);
}

UNIT_TEST(fp16_is_not_tried_where_its_rounding_is_too_large) {
  assert_int_equal(next_codec(kSixteenBits, 1.2, 1e-4, 1), kUncompressed);
  assert_int_equal(next_codec(kSixteenBits, 1.2, 2e-4, 1), kHalf);
}

UNIT_TEST(fp16_is_not_tried_for_sums_that_it_cannot_hold) {
  assert_int_equal(next_codec(kSixteenBits, 1.2, 1e-2, 65472), kHalf);
  assert_int_equal(next_codec(kSixteenBits, 1.2, 1e-2, 65504), kUncompressed);
  assert_int_equal(next_codec(0, 1.01, 1e-2, 1e30), 1);  // quantizers hold all sums
}

// After an error within the bound, the next codec is the coarsest one that the error leaves room
// for, with a margin.
UNIT_TEST(the_next_codec_follows_from_the_error) {
  assert_int_equal(next_codec(kEightBits, 0, 1e-2, 1), 0);
  assert_int_equal(next_codec(kEightBits, 0.99, 1e-2, 1), kEightBits);
  assert_int_equal(next_codec(kEightBits, 0.45, 1e-2, 1), 6);
  assert_int_equal(next_codec(kSixteenBits, 0.99, 1e-5, 1), kSixteenBits);
  assert_int_equal(next_codec(kHalf, 0.1, 1e-2, 1), kSixteenBits);
  assert_int_equal(next_codec(kUncompressed, 0, 1e-2, 1), kHalf);
  assert_int_equal(next_codec(kUncompressed, 0, 1e-5, 1), kSixteenBits);
  assert_int_equal(next_codec(kUncompressed, 0, 1e-2, 1e30), kSixteenBits);
}

UNIT_TEST(the_first_codec_is_for_normal_values) {
  using slimpi::algorithm::codec_for_normal_values;
  assert_int_equal(codec_for_normal_values(1e-1), 4);
  assert_int_equal(codec_for_normal_values(1e-2), kEightBits);
  assert_int_equal(codec_for_normal_values(1e-3), 11);
  assert_int_equal(codec_for_normal_values(1.3e-4), kFifteenBits);
  assert_int_equal(codec_for_normal_values(5e-5), kSixteenBits);
  assert_int_equal(codec_for_normal_values(1e-5), kUncompressed);
}

}  // namespace
