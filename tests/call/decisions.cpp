// SPDX-License-Identifier: BSD-3-Clause
#include "call/candidates.h"

#include <string_view>
#include <tuple>

#include "call/entry.h"
#include "tests/helper/base/unit_test.h"

using namespace slimpi;

// The function that src/intercept defines in the library.
int call::call_mpi_unstaged(const Request&) {
  return mpi::kSuccess;
}

namespace {

// The decision for sums of `count` floats on the communicator called `name`, with default options.
algorithm::Decision decision(const Rules& rules, const char* name, std::uint64_t count) {
  call::Decisions calls;
  calls.prepare(Config(), rules, name);
  return calls.find(count * sizeof(float));
}

UNIT_TEST(small_calls_pass_at_the_exact_size) {
  assert_false(decision({}, "", 16383).take);
  assert_true(decision({}, "", 16383).reason == BypassReason::small);
  assert_true(decision({}, "", 16384).take);
}

UNIT_TEST(the_first_rule_that_holds_decides) {
  Rules rules;
  assert_string_equal(parse_rules("# a comment\n"
                                  "* * loss off *\n"
                                  "1M 4M * fp16 *\n"
                                  "4M * pipeline* bytegrad 2\n",
                                  "rules", rules)
                          .c_str(),
                      "");
  assert_true(decision(rules, "loss", 1 << 20).reason == BypassReason::rule);
  assert_string_equal(decision(rules, "x", 1 << 18).plans.front().algorithm->name, "fp16");
  assert_string_equal(decision(rules, "x", 1 << 20).plans.front().algorithm->name, "fp16");
  assert_int_equal(decision(rules, "pipeline 3", 1 << 21).plans.front().format.bits, 2);
  assert_int_equal(decision(rules, "x", 1 << 21).plans.front().format.bits, 8);
}

// A collective that the algorithm lacks, or that SLIMPI_CALLS does not name, is left to MPI.
UNIT_TEST(each_collective_has_its_decision) {
  for (const auto& [option, value, allreduce, reduce_scatter] :
       {std::tuple{"bits", "8", true, true},
        {"algorithm", "auto", true, true},
        {"algorithm", "powersgd", true, false},
        {"algorithm", "decentralized", true, false},
        {"max_error", "0.1", true, false},
        {"calls", "allreduce", true, false},
        {"calls", "reduce_scatter", false, true}}) {
    Config config;
    assert_string_equal(config.set(option, value, Source::environment).c_str(), "");
    call::Decisions calls;
    calls.prepare(config, {}, "");
    const auto taken = [&](Collective collective) {
      const algorithm::Decision& decision = calls.find(1 << 20, ElementType::float32, collective);
      assert_true(decision.take || decision.reason == BypassReason::function);
      return decision.take;
    };
    assert_int_equal(taken(Collective::allreduce), allreduce);
    assert_int_equal(taken(Collective::reduce_scatter), reduce_scatter);
  }
}

// With SLIMPI_MAX_ERROR a reduce-scatter has one plan, of 32 bits: plain MPI is tried beside it,
// and no plan sends 16-bit floats in 32 bits.
UNIT_TEST(what_auto_tries_depends_on_the_call) {
  Config config;
  assert_string_equal(config.set("algorithm", "auto", Source::environment).c_str(), "");
  const auto tries = [&](ElementType type, Collective collective) {
    call::Decisions calls;
    calls.prepare(config, {}, "");
    const algorithm::Decision& decision = calls.find(1 << 20, type, collective);
    assert_int_equal(decision.automatic, decision.take);
    std::string names;
    for (const char* const name : decision.candidates) names += std::string(" ") + name;
    return decision.take ? names : to_string(decision.reason);
  };
  using enum Collective;
  assert_string_equal(tries(ElementType::float32, reduce_scatter).c_str(),
                      " mpi bytegrad packed allreduce");
  assert_string_equal(tries(ElementType::bfloat16, allreduce).c_str(), " mpi bytegrad packed");
  assert_string_equal(config.set("max_error", "1e-2", Source::environment).c_str(), "");
  assert_string_equal(tries(ElementType::float32, allreduce).c_str(), " mpi bytegrad allreduce");
  assert_string_equal(tries(ElementType::float32, reduce_scatter).c_str(), " mpi allreduce");
  assert_string_equal(tries(ElementType::float64, reduce_scatter).c_str(), " mpi allreduce");
  assert_string_equal(tries(ElementType::float16, allreduce).c_str(), " mpi bytegrad");
  assert_string_equal(tries(ElementType::float16, reduce_scatter).c_str(), "datatype");
}

// After a change of options and rules, nothing of the earlier decisions is left.
UNIT_TEST(prepared_again_it_forgets) {
  Rules rules;
  assert_string_equal(parse_rules("* * * off *", "rules", rules).c_str(), "");
  call::Decisions calls;
  calls.prepare(Config(), rules, "");
  assert_false(calls.find(1 << 20).take);
  calls.prepare(Config(), {}, "");
  assert_true(calls.find(1 << 20).take);
}

// 16-bit floats are taken only where they would be sent in fewer bits.
UNIT_TEST(what_does_not_become_shorter_is_left) {
  for (const auto& [option, value, takes] : {std::tuple{"bits", "8", true},
                                             {"algorithm", "auto", true},
                                             {"algorithm", "powersgd", true},
                                             {"algorithm", "fp16", false},
                                             {"algorithm", "decentralized", false},
                                             {"algorithm", "allreduce", false},
                                             {"max_error", "0.05", true},
                                             {"max_error", "1e-4", true},
                                             {"max_error", "1e-5", false},
                                             {"bits", "15", true},
                                             {"bits", "16", false},
                                             {"algorithm", "off", false}}) {
    Config config;
    assert_string_equal(config.set(option, value, Source::environment).c_str(), "");
    call::Decisions calls;
    calls.prepare(config, {}, "");
    const algorithm::Decision& decision = calls.find(1 << 20, ElementType::float16);
    assert_int_equal(decision.take, takes);
    const bool off = std::string_view(value) == "off";
    if (!takes) assert_true(decision.reason == (off ? BypassReason::off : BypassReason::datatype));
    assert_int_equal(calls.find(1 << 20, ElementType::float64).take, !off);
    assert_int_equal(calls.find(1 << 20).take, !off);
  }
}

}  // namespace
