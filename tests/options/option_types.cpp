// SPDX-License-Identifier: BSD-3-Clause
// Every kind of option value: what it takes, what it refuses, and that a refusal changes nothing.
#include "options/option_types.h"

#include "tests/helper/base/unit_test.h"

using namespace slimpi;

namespace {

constexpr std::uint64_t kUntouched = 77;

void takes(const auto& parser, const char* text, std::uint64_t expected) {
  std::uint64_t value = kUntouched;
  if (!parser.parse(text, value)) fail_msg("'%s' was refused", text);
  if (value != expected)
    fail_msg("'%s' gave %llu, not %llu", text, (unsigned long long)value,
             (unsigned long long)expected);
}

void refuses(const auto& parser, const char* text, auto untouched) {
  auto value = untouched;
  if (parser.parse(text, value)) fail_msg("'%s' was accepted", text);
  if (!(value == untouched)) fail_msg("'%s' was refused but changed the value", text);
}

UNIT_TEST(integers) {
  const Integer bits{1, 8};
  takes(bits, "1", 1);
  takes(bits, "8", 8);
  takes(bits, " 4\t", 4);
  takes(bits, "007", 7);
  for (const char* bad : {"0", "9", "-1", "+4", "4.0", "4e0", "0x4", "4K", "four", "", " ", "4 4",
                          "18446744073709551616", "4\n5"})
    refuses(bits, bad, kUntouched);
  assert_string_equal(bits.accepted().c_str(), "1 to 8");

  int narrow = 0;
  assert_true(bits.parse("3", narrow));
  assert_int_equal(narrow, 3);

  const Integer seed{0, INT64_MAX};
  takes(seed, "0", 0);
  takes(seed, "9223372036854775807", std::uint64_t(INT64_MAX));
  refuses(seed, "9223372036854775808", kUntouched);
  assert_string_equal(seed.accepted().c_str(), "0 or more, below 2^63");
}

UNIT_TEST(sizes) {
  const Size any{0, UINT64_MAX};
  takes(any, "0", 0);
  takes(any, "65536", 65536);
  for (const char* text : {"64K", "64k", "64KB", "64kb", "64KiB", "64kib", "64 K", " 64K "})
    takes(any, text, 65536);
  takes(any, "100B", 100);
  takes(any, "3M", 3u << 20);
  takes(any, "3MiB", 3u << 20);
  takes(any, "2G", std::uint64_t(2) << 30);
  takes(any, "18446744073709551615", UINT64_MAX);
  takes(any, "17179869183G", std::uint64_t(17179869183) << 30);
  for (const char* bad : {"", " ", "K", "KB", "B", "iB", "64iB", "1T", "-1", "1.5M", "1e6", "64KK",
                          "64BK", "K64", "18446744073709551616", "17179869184G", "64K 64K"})
    refuses(any, bad, kUntouched);
  assert_string_equal(any.accepted().c_str(), "0 or more (K, M, G allowed)");

  const Size bucket{64, 1 << 20, true};
  takes(bucket, "0", 0);
  takes(bucket, "64", 64);
  takes(bucket, "1M", 1 << 20);
  refuses(bucket, "63", kUntouched);
  refuses(bucket, "1", kUntouched);
  refuses(bucket, "1048577", kUntouched);
  refuses(bucket, "2M", kUntouched);
  assert_string_equal(bucket.accepted().c_str(), "0, or 64 to 1M (K, M, G allowed)");
}

UNIT_TEST(booleans) {
  const Boolean parser;
  for (const char* yes : {"1", "y", "yes", "true", "on", "Y", "YES", "True", "ON", " on "}) {
    bool value = false;
    if (!parser.parse(yes, value) || !value) fail_msg("'%s' is not true", yes);
  }
  for (const char* no : {"0", "n", "no", "false", "off", "N", "No", "FALSE", "Off"}) {
    bool value = true;
    if (!parser.parse(no, value) || value) fail_msg("'%s' is not false", no);
  }
  for (const char* bad : {"", " ", "2", "-1", "t", "f", "enable", "yes no", "auto", "01"}) {
    refuses(parser, bad, true);
    refuses(parser, bad, false);
  }
}

UNIT_TEST(fractions) {
  const Fraction parser;
  for (const auto& [text, expected] :
       {std::pair{"1e-3", 1e-3}, {"0.5", 0.5}, {" .25 ", 0.25}, {"1E-300", 1e-300}}) {
    double value = 0;
    if (!parser.parse(text, value) || value != expected) fail_msg("'%s' was misread", text);
  }
  for (const char* bad : {"", "0", "1", "1.0", "-0.1", "2", "nan", "inf", "1e-400", "0,1", "1e-3x",
                          "1e-3 1e-3", "1%", "0.0"})
    refuses(parser, bad, 0.75);
}

UNIT_TEST(bits) {
  const HalfBits parser{1, 16};
  for (const auto& [text, expected] : {std::pair{"1", 1.0},
                                       {"2.5", 2.5},
                                       {" 16 ", 16.0},
                                       {"8.00", 8.0},
                                       {"2.50", 2.5},
                                       {"15.5", 15.5}}) {
    double value = 0;
    assert_true(parser.parse(text, value));
    assert_true(value == expected);
  }
  assert_string_equal(parser.text(2.5).c_str(), "2.5");
  assert_string_equal(parser.text(8).c_str(), "8");
  for (const char* bad : {"", "0", "0.5", "16.5", "17", "2.25", "2.", ".5", "2,5", "-1"})
    refuses(parser, bad, 7.0);
}

UNIT_TEST(algorithms) {
  const AlgorithmName parser;
  for (const char* name :
       {"bytegrad", "qsgd", "fp16", "bf16", "powersgd", "batched_powersgd", "decentralized",
        "low_precision_decentralized", "allreduce", "auto", "off", "hook:/opt/my/Codec.so"}) {
    std::string value;
    if (!parser.parse(name, value) || value != name) fail_msg("'%s' was misread", name);
  }
  std::string value;
  assert_true(parser.parse(" QSGD ", value));
  assert_string_equal(value.c_str(), "qsgd");
  for (const char* bad : {"", "byte", "bytegrad2", "hook", "hook:", "hook:relative.so", "none"})
    refuses(parser, bad, std::string("before"));
  assert_non_null(strstr(parser.accepted().c_str(), "bytegrad, qsgd, packed, fp16"));
  assert_non_null(strstr(parser.accepted().c_str(), "hook:/ABSOLUTE/PATH.so"));
}

UNIT_TEST(shapes) {
  const Shapes parser;
  std::vector<Shape> value;
  assert_true(parser.parse("589824=768x768", value));
  assert_true((value == std::vector<Shape>{{589824, 768, 768}}));
  assert_true(parser.parse(" 12 = 3 x 4 , 10=10X1,7=1x7", value));
  assert_true((value == std::vector<Shape>{{12, 3, 4}, {10, 10, 1}, {7, 1, 7}}));
  const std::vector<Shape> before{{6, 2, 3}};
  for (const std::string& bad : test::split(
           "|,|12=3x4,|,12=3x4|12=3x4,,6=2x3|12|12=|12=3|12=3x|12=x4|12=3x5|12=3x4x1|3x4=12|3x4|"
           "0=0x5|0=5x0|-12=-3x4|12=3*4|12=3x4,12=4x3|1=4294967296x4294967296|"
           "0=4294967296x4294967296"))
    refuses(parser, bad.c_str(), before);
}

enum class Fruit { apple, pear };

UNIT_TEST(choices) {
  const Choice<Fruit> parser{{"apple", "pear"}};
  Fruit value = Fruit::apple;
  assert_true(parser.parse(" Pear", value));
  assert_true(value == Fruit::pear);
  for (const char* bad : {"", "pea", "pears", "apple pear", "0"}) refuses(parser, bad, Fruit::pear);
  assert_string_equal(parser.accepted().c_str(), "apple, pear");
}

UNIT_TEST(text) {
  const Text parser{"a file"};
  std::string value;
  assert_true(parser.parse("  /a path/with spaces #and more ", value));
  assert_string_equal(value.c_str(), "/a path/with spaces #and more");
  refuses(parser, "", std::string("before"));
  refuses(parser, " \t", std::string("before"));
}

UNIT_TEST(maybe) {
  const Maybe<Integer> parser{{1, 8}};
  std::optional<std::int64_t> value;
  assert_true(parser.parse("5", value));
  assert_true(value == 5);
  refuses(parser, "9", std::optional<std::int64_t>(5));
  refuses(parser, "9", std::optional<std::int64_t>());
  for (const char* empty : {"", " ", "\t"}) {
    value = 5;
    assert_true(parser.parse(empty, value));
    assert_false(value.has_value());
  }
}

UNIT_TEST(types) {
  const TypeNames parser{};
  ElementTypes value;
  for (const char* list :
       {"float", "float,double", "float,float16,bfloat16", "float,double,float16,bfloat16"}) {
    assert_true(parser.parse(list, value));
    assert_string_equal(parser.text(value).c_str(), list);
  }
  assert_true(parser.parse("BFloat16, float", value));
  assert_string_equal(parser.text(value).c_str(), "float,bfloat16");
  for (const char* bad : {"", "double", "float16", "float,", "float,half", "float float16"})
    assert_false(parser.parse(bad, value));
  assert_string_equal(parser.text(value).c_str(), "float,bfloat16");
  assert_string_equal(parser.accepted().c_str(),
                      "float, then any of double, float16, bfloat16, such as float,double");
}

// A program may set any locale; names must not depend on it.
UNIT_TEST(lower_case_is_ascii) {
  assert_string_equal(lower_case(" MiXed_I\r\n").c_str(), "mixed_i");
  assert_string_equal(lower_case("\xc4\xd6").c_str(), "\xc4\xd6");
  assert_string_equal(lower_case("").c_str(), "");
}

}  // namespace
