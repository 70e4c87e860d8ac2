// SPDX-License-Identifier: BSD-3-Clause
// Tests which calls slimpi leaves to MPI before it looks at options and sizes, and what the levels
// of MPI_Pcontrol and info keys do. The MPI of the tests has no processes.
#include <setjmp.h>

#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include "call/communicator_attribute.h"
#include "call/control.h"
#include "call/entry.h"
#include "call/held_sum.h"
#include "call/queue.h"
#include "call/runtime.h"
#include "tests/helper/mpi/fake_mpi.h"
#include "tests/helper/base/unit_test.h"

using namespace slimpi;
using call::Request;
using call::Runtime;
using call::Word;

// The function that src/intercept defines in the library.
int call::call_mpi_unstaged(const Request&) {
  return mpi::kSuccess;
}

namespace {

float g_in[1000], g_out[1000];

void* const g_in_place = reinterpret_cast<void*>(mpi::abi.in_place.word);

Request floats(mpi::Comm comm = mpi::abi.comm_world) {
  return {g_in, g_out, 1000, mpi::abi.type_float, mpi::abi.op_sum, comm};
}

std::uint64_t passed(BypassReason reason) {
  Runtime* const runtime = Runtime::started();
  return runtime == nullptr ? 0 : runtime->statistics.counts().bypassed[std::size_t(reason)];
}

// Checks that the call is left to MPI, and counted once, for this reason.
void assert_left(Request request, BypassReason reason) {
  const std::uint64_t before = passed(reason), calls = Runtime::get()->statistics.counts().calls;
  const call::Outcome outcome = call::dispatch(request);
  assert_false(outcome.done);
  assert_true(outcome.reason == reason);
  assert_int_equal(passed(reason), before + 1);
  assert_int_equal(Runtime::get()->statistics.counts().calls, calls + 1);
}

UNIT_TEST(nothing_starts_before_mpi_does) {
  Request request = floats();
  const call::Outcome outcome = call::dispatch(request);
  assert_false(outcome.done);
  assert_false(outcome.reason.has_value());
  assert_null(Runtime::started());
  call::control(0);  // takes effect later
  test::fake_mpi().initialized = true;
  assert_left(floats(), BypassReason::off);
  call::control(1);
}

UNIT_TEST(other_types_and_operations_are_left) {
  Request request = floats();
  request = floats(mpi::abi.comm_self);  // elsewhere this rank tells the others
  request.datatype = mpi::abi.type_double;
  assert_left(request, BypassReason::datatype);
  request = floats();
  request.op = mpi::abi.op_max;
  assert_left(request, BypassReason::op);
}

// MPI reports its own errors of invalid arguments.
UNIT_TEST(invalid_arguments_are_left) {
  for (const auto& break_it :
       {+[](Request& r) { r.count = 0; }, +[](Request& r) { r.count = -1; },
        +[](Request& r) { r.out = nullptr; }, +[](Request& r) { r.in = nullptr; },
        +[](Request& r) { r.in = r.out; }, +[](Request& r) { r.out = g_in_place; }}) {
    Request request = floats();
    break_it(request);
    assert_left(request, BypassReason::small);
  }
}

UNIT_TEST(communicators_without_other_ranks_of_this_world_are_left) {
  assert_left(floats(mpi::abi.comm_self), BypassReason::comm);
  assert_left(floats(mpi::Comm(test::kIntercommunicator)), BypassReason::comm);
  assert_left(floats(mpi::abi.comm_null), BypassReason::comm);
  const call::Freeing freeing{mpi::abi.comm_world};
  assert_left(floats(), BypassReason::comm);
}

// slimpi calls MPI once, and the error handler runs: MPI must not see the handle a second time.
UNIT_TEST(an_invalid_communicator_is_passed_to_mpi_once) {
  Request request = floats(mpi::Comm(test::kInvalidComm));
  const call::Outcome outcome = call::dispatch(request);
  assert_true(outcome.done);
  assert_int_equal(outcome.code, test::kErrorOfHandler);
}

// Returns whether another thread can enter the fibers.
bool others_can_enter() {
  std::packaged_task<void()> enter([] { const call::HoldFibers held; });
  const auto entered = enter.get_future();
  std::thread(std::move(enter)).detach();
  return entered.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
}

// The program's error handler may wait for a sum of another thread, or leave the call by longjmp.
UNIT_TEST(an_error_handler_runs_without_a_lock) {
  static jmp_buf back;
  static Request request = floats(mpi::Comm(test::kInvalidComm));
  test::fake_mpi().error_handler = [] {
    assert_true(others_can_enter());
    longjmp(back, 1);
  };
  if (setjmp(back) == 0) {
    mpi::Request handle = mpi::abi.request_null;
    (void)call::begin_nonblocking(request, &handle);
    fail();
  }
  test::fake_mpi().error_handler = nullptr;
  assert_true(others_can_enter());
}

// MPI may call the error handler when slimpi makes an error code. The handler leaves the call.
UNIT_TEST(an_error_handler_leaves_no_call_behind) {
  static jmp_buf back;
  Runtime& runtime = *Runtime::get();
  const auto& communicator = *runtime.communicators.find_or_follow(mpi::abi.comm_world);
  test::fake_mpi().error_handler = [] { longjmp(back, 1); };
  if (setjmp(back) == 0) {
    const ActiveCall active(communicator.subject(1000));
    (void)runtime.errors.raise(communicator.user(), Status::internal);
    fail();
  }
  test::fake_mpi().error_handler = nullptr;
  assert_null(ActiveCall::current());
}

// A persistent sum whose request MPI completes at once.
class StartedSum final : public call::HeldSum {
 public:
  StartedSum(Runtime& its_runtime, comm::Communicator& on, const algorithm::Decision& its_decision)
      : HeldSum(its_runtime, on, on, floats(), &its_decision) {}
  void started() override {
    bypass = BypassReason::off;
    call::begin_sum(*this);
  }
  int completions = 0;

 private:
  void complete() override { ++completions; }
};

// MPI calls the error handler in MPI_Start, and the handler leaves it. Nothing waits for the sum,
// and the program can start it again.
UNIT_TEST(a_start_that_was_left_can_be_repeated) {
  static jmp_buf back;
  Runtime& runtime = *Runtime::get();
  auto& communicator = *runtime.communicators.find_or_follow(mpi::abi.comm_world);
  const algorithm::Decision decision;
  const auto sum = std::make_shared<StartedSum>(runtime, communicator, decision);
  call::HeldRequests::Entry entry{sum};
  std::byte handle[8];
  sum->handle = mpi::Request(17);
  mpi::write(handle, sum->handle);
  call::HeldRequests::instance().add(entry);
  if (setjmp(back) == 0) {
    (void)call::start_requests(1, handle, [](int, void*) -> int { longjmp(back, 1); });
    fail();
  }
  sum->set_in_flight(true);  // as if another sum ran
  call::wait_for_sums(communicator);
  const auto start = [](int, void*) { return mpi::kSuccess; };
  assert_int_equal(call::start_requests(1, handle, start), mpi::kSuccess);
  assert_int_equal(sum->completions, 1);
  assert_int_equal(call::start_requests(1, handle, start), mpi::kSuccess);
  assert_int_equal(sum->completions, 2);
  (void)call::HeldRequests::instance().take(*sum);
  call::end_helper();
}

UNIT_TEST(the_switch_turns_off_and_on) {
  call::control(0);
  assert_left(floats(), BypassReason::off);
  call::control(7);  // not one of slimpi's levels
  assert_left(floats(), BypassReason::off);
  call::control(1);
  assert_left(floats(mpi::abi.comm_self), BypassReason::comm);
}

// While slimpi is off, it does not ask MPI about communicators. Then only MPI_COMM_SELF and
// MPI_COMM_NULL are known to send nothing to other ranks.
UNIT_TEST(sums_of_one_rank_are_no_bytes_of_the_job) {
  const auto left = [](mpi::Comm comm) {
    const std::uint64_t before = Runtime::get()->statistics.counts().bytes_bypassed_elsewhere;
    call::control(0);
    assert_left(floats(comm), BypassReason::off);
    call::control(1);
    return Runtime::get()->statistics.counts().bytes_bypassed_elsewhere - before;
  };
  assert_int_equal(left(mpi::abi.comm_self), 0);
  assert_int_equal(left(mpi::abi.comm_world), 2 * sizeof g_in);
  assert_int_equal(left(mpi::abi.comm_null), 0);
  // slimpi does not ask MPI about an invalid communicator: MPI's own call reports the error.
  assert_int_equal(left(mpi::Comm(test::kInvalidComm)), 2 * sizeof g_in);
}

UNIT_TEST(an_mpi_that_makes_no_communicator_keeps_the_call) {
  assert_left(floats(), BypassReason::failure);
  assert_left(floats(), BypassReason::failure);
}

UNIT_TEST(info_keys_set_options_of_one_communicator) {
  const mpi::Info info = mpi::Info(1);
  test::fake_mpi().info = {{"SLIMPI_Bits", "4"}, {"other_bits", "2"}, {"slimpi_bucket", "512"}};
  assert_int_equal(call::take_info(mpi::abi.comm_self, info), mpi::kSuccess);
  const Config& set = Runtime::get()->communicators.find_or_follow(mpi::abi.comm_self)->config();
  const Config& other =
      Runtime::get()->communicators.find_or_follow(mpi::Comm(test::kIntercommunicator))->config();
  assert_true(set.bits == 4);
  assert_int_equal(set.bucket, 512);
  assert_true(other.bits == Config().bits);
  assert_int_equal(other.bucket, Config().bucket);
  test::fake_mpi().info.clear();
}

}  // namespace
