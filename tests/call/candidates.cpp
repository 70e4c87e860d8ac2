// SPDX-License-Identifier: BSD-3-Clause
// Tests the decisions of call/candidates.cpp: which candidate of a call runs, what of it counts,
// and what is left to MPI. Calls and clock are the test's own; the MPI has no processes.
#include "call/candidates.h"

#include <map>
#include <set>

#include "call/entry.h"
#include "call/sum.h"
#include "comm/autotuner.h"
#include "tests/helper/mpi/fake_mpi.h"
#include "tests/helper/base/unit_test.h"

using namespace slimpi;
using call::Request;
using call::Runtime;
using call::Sum;
using call::Word;

namespace {

constexpr int kErrorOfMpi = 5, kErrorOfCall = 6;

// The time and the result of each way to do a call, and the ways that ran.
struct Script {
  std::map<std::string, std::uint64_t> nanoseconds;  // by algorithm, or "mpi"
  std::optional<BypassReason> fallback;              // of every plan
  Status plan = Status::ok;                          // of every plan
  std::uint64_t verifying = 0;                       // nanoseconds of SLIMPI_VERIFY, of every plan
  int mpi_code = mpi::kSuccess;
  std::vector<std::string> ran;
  int failures = 0;
};
Script g_script;
std::uint64_t g_now = 0;

void run(const std::string& way) {
  g_script.ran.push_back(way);
  g_now += g_script.nanoseconds[way];
}

}  // namespace

// The functions below stand in for the library's own.
int call::call_mpi_unstaged(const Request&) {
  run("mpi");
  return g_script.mpi_code;
}
int call::fail_call(Runtime&, comm::Communicator&, Status) {
  ++g_script.failures;
  return kErrorOfCall;
}
call::Logging call::report_failed_call(comm::Communicator&, Status) {
  return call::Logging::here;
}
Sum::Sum(Runtime& runtime, comm::Communicator& communicator, const comm::Plan& plan,
         const Request& request)
    : runtime_(runtime),
      communicator_(communicator),
      request_(request),
      type_(ElementType::float32),
      plan_(plan),
      call_{.communicator = communicator,
            .scratch = *scratch_,
            .plan = plan_,
            .in = static_cast<const float*>(request.in),
            .out = static_cast<float*>(request.out),
            .count = std::uint64_t(request.count),
            .location = {}},
      input_count_(call_.count),
      result_count_(call_.count),
      left_on_device_(false) {}
Sum::~Sum() = default;
comm::Verdict Sum::run_steps() {
  if (!g_script.fallback) ::run(plan_.algorithm->name);
  g_now += g_script.verifying;
  verify_nanoseconds_ += g_script.verifying;
  SLIMPI_TRY(g_script.plan);
  return g_script.fallback ? comm::Verdict(*g_script.fallback) : Status::ok;
}

namespace {

float g_in[100000], g_out[100000];
const Request kRequest = {
    g_in, g_out, 100000, mpi::abi.type_float, mpi::abi.op_sum, mpi::abi.comm_world};
constexpr int kRounds = comm::Autotuner::kRounds;
constexpr int kWays = 4;  // MPI, bytegrad, packed, allreduce

// A communicator with SLIMPI_ALGORITHM=auto, and a script of its own.
struct Job {
  Job()
      : communicator(Runtime::get()->api, Runtime::get()->statistics, automatic(),
                     mpi::abi.comm_world) {
    g_script = {};
    g_script.nanoseconds = {{"mpi", 400}, {"bytegrad", 100}, {"packed", 200}, {"allreduce", 800}};
    test::fake_mpi().agrees = true;
    communicator.attachment<call::Decisions>().prepare(communicator.config(), {}, "");
    communicator.exchange().open(
        std::make_shared<comm::InternalComm>(Runtime::get()->api, mpi::abi.comm_world), 0, 1);
  }
  ~Job() { communicator.exchange().internal()->abandon(); }
  static Config automatic() {
    Config config;
    assert_string_equal(config.set("algorithm", "auto", Source::environment).c_str(), "");
    return config;
  }
  const algorithm::Decision& decision() {
    return communicator.attachment<call::Decisions>().find(std::uint64_t(kRequest.count) *
                                                           sizeof(float));
  }
  bool keep(call::Outcome outcome) {
    code = outcome.code;
    return outcome.done;
  }
  bool fastest() {
    return keep(call::run_fastest(*Runtime::get(), communicator, decision(), kRequest));
  }
  call::Outcome first_plan() {
    return call::run_plan(*Runtime::get(), communicator, decision().plans[0], kRequest);
  }
  comm::Communicator communicator;
  int code = -1;
};

std::uint64_t passed(BypassReason reason) {
  return Runtime::get()->statistics.counts().bypassed[std::size_t(reason)];
}

UNIT_TEST(each_candidate_is_tried_and_the_fastest_stays) {
  Job job;
  const std::uint64_t before = passed(BypassReason::automatic);
  for (int i = 0; i < kWays * kRounds; ++i) {
    assert_true(job.fastest());
    assert_int_equal(job.code, mpi::kSuccess);
  }
  assert_int_equal(std::set<std::string>(g_script.ran.begin(), g_script.ran.end()).size(), kWays);
  assert_int_equal(passed(BypassReason::automatic) - before, kRounds);  // the trials of MPI
  g_script.ran.clear();
  for (int i = 0; i < 20; ++i) assert_true(job.fastest());
  for (const std::string& way : g_script.ran) assert_string_equal(way.c_str(), "bytegrad");
  assert_int_equal(passed(BypassReason::automatic) - before, kRounds);
}

UNIT_TEST(where_mpi_is_fastest_it_stays) {
  Job job;
  g_script.nanoseconds["mpi"] = 10;
  for (int i = 0; i < kWays * kRounds; ++i) job.fastest();
  g_script.ran.clear();
  for (int i = 0; i < 20; ++i) assert_true(job.fastest());
  for (const std::string& way : g_script.ran) assert_string_equal(way.c_str(), "mpi");
}

// MPI's own sum has no such work, and no call has it without SLIMPI_VERIFY.
UNIT_TEST(the_time_of_verification_does_not_count) {
  Job job;
  g_script.verifying = 1000;
  for (int i = 0; i < kWays * kRounds; ++i) job.fastest();
  g_script.ran.clear();
  for (int i = 0; i < 20; ++i) assert_true(job.fastest());
  for (const std::string& way : g_script.ran) assert_string_equal(way.c_str(), "bytegrad");
}

// The ranks agreed on the fallback, so MPI does this call. It counts for the reason of the
// fallback.
UNIT_TEST(a_plan_that_falls_back_is_done_by_mpi) {
  Job job;
  const std::uint64_t before = passed(BypassReason::start);
  g_script.fallback = BypassReason::start;
  for (int i = 0; i < kWays; ++i) assert_true(job.fastest());
  assert_int_equal(g_script.ran.size(), kWays);  // MPI's own trial, and the plans
  assert_int_equal(passed(BypassReason::start) - before, kWays - 1);
  const call::Outcome outcome = job.first_plan();
  assert_false(outcome.done);
  assert_true(outcome.reason == BypassReason::start);
  assert_int_equal(g_script.ran.size(), kWays);  // the caller calls MPI
}

// Ranks that fail may have stopped at different points: MPI must not see the call.
UNIT_TEST(a_plan_that_fails_ends_the_call) {
  Job job;
  g_script.plan = Status::mpi;
  assert_true(job.keep(job.first_plan()));
  assert_int_equal(job.code, kErrorOfCall);
  assert_int_equal(g_script.failures, 1);
}

// The ways of the first calls of a job, in which MPI fails once, or never.
std::vector<std::string> ways_with_an_error_in(int failing) {
  Job job;
  for (int i = 0; i < kWays * kRounds; ++i) {
    g_script.mpi_code = i == failing ? kErrorOfMpi : mpi::kSuccess;
    const std::size_t before = g_script.ran.size();
    assert_true(job.fastest());
    const bool failed = i == failing && g_script.ran[before] == "mpi";
    assert_int_equal(job.code, failed ? kErrorOfMpi : mpi::kSuccess);
  }
  return g_script.ran;
}

// The failure may be one rank's own: the other ranks count the call, so this one does, too, or the
// ranks would run different candidates.
UNIT_TEST(an_error_of_mpi_counts_as_a_slow_trial) {
  const std::vector<std::string> without = ways_with_an_error_in(-1);
  for (int failing = 0; failing < kWays * kRounds; ++failing)
    assert_true(ways_with_an_error_in(failing) == without);
  Job job;
  g_script.mpi_code = kErrorOfMpi;
  g_script.nanoseconds["mpi"] = 1;
  for (int i = 0; i < kWays * kRounds; ++i) job.fastest();
  g_script.ran.clear();
  for (int i = 0; i < 20; ++i) assert_true(job.fastest());
  for (const std::string& way : g_script.ran) assert_string_equal(way.c_str(), "bytegrad");
}

// Sizes of two rows of the rules have the same number of bits, but other plans, so their times are
// kept apart.
UNIT_TEST(rows_of_the_rules_are_tuned_apart) {
  Job job;
  Rules rules;
  assert_string_equal(parse_rules("64K 80K * auto 8\n* * * auto 2\n", "r", rules).c_str(), "");
  auto& calls = job.communicator.attachment<call::Decisions>();
  calls.prepare(job.communicator.config(), rules, "");
  const auto autotuner_of = [&](std::uint64_t floats) {
    comm::Autotuner* found = nullptr;
    assert_true(job.communicator.attachment<comm::Autotuners>().find_or_make_together(
                    job.communicator, calls.find(4 * floats).number, 15, kWays, &found) ==
                Status::ok);
    return found;
  };
  assert_non_null(autotuner_of(17000));
  assert_ptr_equal(autotuner_of(17000), autotuner_of(18000));
  assert_non_null(autotuner_of(30000));
  assert_ptr_not_equal(autotuner_of(17000), autotuner_of(30000));
}

UNIT_TEST(ranks_that_cannot_agree_on_times_fail) {
  Job job;
  assert_true(job.fastest());  // all ranks make the autotuner
  test::fake_mpi().agrees = false;
  for (int i = 1; i < kWays * kRounds; ++i) assert_true(job.fastest());
  assert_int_equal(g_script.failures, 1);
  assert_int_equal(job.code, kErrorOfCall);
}

int prepare(void**) {
  test::fake_mpi().initialized = true;
  call::candidate_clock = [] { return g_now; };
  return 0;
}
GROUP_FIXTURES(prepare, nullptr);

}  // namespace
