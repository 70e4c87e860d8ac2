// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/policy.h"

#include "config.h"

#include <string.h>

#include "tests/helper/base/unit_test.h"

using namespace slimpi;
using algorithm::make_decision;

namespace {

Config config_of(std::initializer_list<std::pair<const char*, const char*>> values,
                 Source source = Source::environment) {
  Config config;
  for (const auto& [name, value] : values)
    assert_string_equal(config.set(name, value, source).c_str(), "");
  return config;
}

UNIT_TEST(defaults_come_from_the_algorithm) {
  const auto nearest = make_decision(Config(), nullptr);
  assert_string_equal(nearest.plans.front().algorithm->name, "bytegrad");
  assert_false(nearest.plans.front().format.stochastic);
  const auto stochastic = make_decision(config_of({{"algorithm", "qsgd"}}), nullptr);
  assert_true(stochastic.plans.front().format.stochastic);
  assert_true(stochastic.plans.front().hierarchy == Hierarchy::flat);
  const Config forced = config_of({{"algorithm", "qsgd"}, {"rounding", "nearest"}});
  assert_false(make_decision(forced, nullptr).plans.front().format.stochastic);
}

UNIT_TEST(off_and_auto) {
  assert_true(make_decision(config_of({{"algorithm", "off"}}), nullptr).reason ==
              BypassReason::off);
  const auto choice = make_decision(config_of({{"algorithm", "auto"}}), nullptr);
  assert_true(choice.plans.size() > 1);
  for (const comm::Plan& plan : choice.plans) assert_true(plan.algorithm->same_bytes);
  const Config bounded = config_of({{"algorithm", "auto"}, {"max_error", "1e-2"}});
  for (const comm::Plan& plan : make_decision(bounded, nullptr).plans)
    assert_true(plan.algorithm->exact || plan.max_error > 0);
}

UNIT_TEST(an_info_key_wins_over_rules) {
  const Config config = config_of({{"algorithm", "bf16"}}, Source::info);
  Rule off;
  off.algorithm = "off";
  assert_true(make_decision(Config(), &off).reason == BypassReason::rule);
  const auto decision = make_decision(config, &off);
  assert_true(decision.take);
  assert_string_equal(decision.plans.front().algorithm->name, "bf16");
}

UNIT_TEST(bad_rows_name_file_line_and_word) {
  Rules rules;
  assert_string_equal(parse_rules("\n1 2 3\n", "r", rules).c_str(),
                      "r:2: a row is: min_size max_size communicator algorithm bits; off needs no "
                      "bits");
  rules.clear();
  assert_string_equal(parse_rules("* 1M * off\n* * * off *\n* * * off 4", "r", rules).c_str(), "");
  for (const Rule& rule : rules) assert_false(rule.bits.has_value());
  assert_int_equal(rules.size(), 3);
  assert_non_null(strstr(parse_rules("* * * fp16", "r", rules).c_str(), "r:1: a row is"));
  // Comments and a byte order mark as in configuration files.
  rules.clear();
  assert_string_equal(
      parse_rules("\xef\xbb\xbf* * a#b hook:/a#b.so * # c\n#d\n", "r", rules).c_str(), "");
  assert_int_equal(rules.size(), 1);
  assert_string_equal(rules[0].communicator.c_str(), "a#b");
  assert_string_equal(rules[0].algorithm.c_str(), "hook:/a#b.so");
  assert_non_null(strstr(parse_rules("* * * bytegrad 17", "r", rules).c_str(), "bits 17"));
  assert_non_null(strstr(parse_rules("* * * magic *", "r", rules).c_str(), "magic"));
  assert_non_null(strstr(parse_rules("2M 1M * off *", "r", rules).c_str(), "max_size"));
}

UNIT_TEST(what_cannot_run_is_refused) {
  assert_string_equal(algorithm::refuse(Config(), {}).c_str(), "");
#ifdef WITH_NCCL
  const char* const nccl = "";
#else
  const char* const nccl =
      "SLIMPI_INTRA=nccl is not in this build of slimpi; accepted: auto, shm, mpi";
#endif
  assert_string_equal(algorithm::refuse(config_of({{"intra", "nccl"}}), {}).c_str(), nccl);
  assert_non_null(strstr(
      algorithm::refuse(config_of({{"algorithm", "powersgd"}, {"max_error", "0.1"}}), {}).c_str(),
      "SLIMPI_MAX_ERROR cannot be combined with powersgd"));
}

// Half bits are refused for every algorithm but packed: as an option, and in rows of the rules with
// bits or without. The error names them where the user has them.
UNIT_TEST(half_bits_are_for_packed) {
  const auto refused = [](const char* algorithm, const char* bits, const char* rows) {
    Rules rules;
    assert_string_equal(parse_rules(rows, "r", rules).c_str(), "");
    Config config = config_of({{"algorithm", algorithm}});
    assert_string_equal(config.set("bits", bits, Source::file, "f:3: ").c_str(), "");
    const std::string text = algorithm::refuse(config, rules);
    return text.substr(0, text.find(" cannot be combined with "));
  };
  for (const char* algorithm : {"bytegrad", "qsgd", "fp16", "auto"})
    assert_string_equal(refused(algorithm, "2.5", "").c_str(), "f:3: bits=2.5");
  assert_string_equal(refused("packed", "2.5", "").c_str(), "");
  assert_string_equal(refused("off", "2.5", "").c_str(), "");
  assert_string_equal(refused("bytegrad", "2", "* * * packed 2.5").c_str(), "");
  assert_string_equal(refused("packed", "2.5", "* * * bytegrad *").c_str(),
                      "r:1: * * * bytegrad *: f:3: bits=2.5");
  assert_string_equal(refused("packed", "2", "* * * bytegrad 2.5").c_str(),
                      "r:1: * * * bytegrad 2.5: bits 2.5");
  const algorithm::Decision decision =
      algorithm::make_decision(config_of({{"algorithm", "packed"}, {"bits", "2.5"}}), nullptr);
  assert_int_equal(decision.plans.front().format.bits, 5);
  assert_string_equal(algorithm::describe(decision.plans.front()).c_str(),
                      "packed, 2.5 bits, sharded");
}

UNIT_TEST(results_have_files_of_their_own) {
  const auto refused = [](const char* report, const char* trace) {
    return algorithm::refuse(config_of({{"report", report}, {"trace", trace}}), {});
  };
  assert_string_equal(refused("out", "out").c_str(),
                      "SLIMPI_REPORT and SLIMPI_TRACE name the same file, out; give each a file of "
                      "its own");
  assert_non_null(
      strstr(algorithm::refuse(config_of({{"trace", "out"}, {"estimate", "out"}}), {}).c_str(),
             "SLIMPI_ESTIMATE and SLIMPI_TRACE"));
  assert_string_equal(refused("out", "out2").c_str(), "");
  assert_string_equal(refused("/dev/null", "/dev/null").c_str(), "");
  assert_string_equal(
      algorithm::refuse(config_of({{"report", "stderr"}, {"estimate", "stderr"}}), {}).c_str(), "");
}

}  // namespace
