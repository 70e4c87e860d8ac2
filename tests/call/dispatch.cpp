// SPDX-License-Identifier: BSD-3-Clause
// Which calls slimpi leaves to MPI before it looks at options and sizes, what MPI_Pcontrol's levels
// and info keys do; all with an MPI that has no processes.
#include "call/entry.h"
#include "call/runtime.h"
#include "tests/helper/cmocka_cxx.h"
#include "tests/helper/fake_mpi.h"

using namespace slimpi;
using call::Allreduce;
using call::Runtime;
using call::Word;

// What src/intercept defines.
int call::call_mpi_unstaged(const Allreduce&) {
  return MPI_SUCCESS;
}

namespace {

float g_in[1000], g_out[1000];

Allreduce floats(MPI_Comm comm = MPI_COMM_WORLD) {
  return {g_in, g_out, 1000, Word(MPI_FLOAT), Word(MPI_SUM), Word(comm)};
}

std::uint64_t passed(BypassReason reason) {
  Runtime* const runtime = Runtime::started();
  return runtime == nullptr ? 0 : runtime->statistics.counts().passed[std::size_t(reason)];
}

// The call is left to MPI, and counted once, for this reason.
void assert_left(const Allreduce& request, BypassReason reason) {
  const std::uint64_t before = passed(reason), calls = Runtime::get()->statistics.counts().calls;
  const call::Outcome outcome = call::dispatch(request);
  assert_false(outcome.done);
  assert_true(outcome.reason == reason);
  assert_int_equal(passed(reason), before + 1);
  assert_int_equal(Runtime::get()->statistics.counts().calls, calls + 1);
}

void nothing_starts_before_mpi_does(void**) {
  const call::Outcome outcome = call::dispatch(floats());
  assert_false(outcome.done);
  assert_false(outcome.reason.has_value());
  assert_null(Runtime::started());
  call::control(0);  // takes effect later
  test::fake_mpi().initialized = true;
  assert_left(floats(), BypassReason::off);
  call::control(1);
}

void other_types_and_operations_are_left(void**) {
  Allreduce request = floats();
  request.datatype = Word(MPI_DOUBLE);
  assert_left(request, BypassReason::datatype);
  request = floats();
  request.op = Word(MPI_MAX);
  assert_left(request, BypassReason::op);
}

// MPI reports errors of its own for these.
void invalid_arguments_are_left(void**) {
  for (const auto& break_it :
       {+[](Allreduce& r) { r.count = 0; }, +[](Allreduce& r) { r.count = -1; },
        +[](Allreduce& r) { r.out = nullptr; }, +[](Allreduce& r) { r.in = nullptr; },
        +[](Allreduce& r) { r.in = r.out; }, +[](Allreduce& r) { r.out = MPI_IN_PLACE; }}) {
    Allreduce request = floats();
    break_it(request);
    assert_left(request, BypassReason::small);
  }
}

void communicators_without_other_ranks_of_this_world_are_left(void**) {
  assert_left(floats(MPI_COMM_SELF), BypassReason::comm);
  assert_left(floats(test::kIntercommunicator), BypassReason::comm);
  assert_left(floats(MPI_COMM_NULL), BypassReason::comm);
  const call::Freeing freeing{Word(MPI_COMM_WORLD)};
  assert_left(floats(), BypassReason::comm);
}

// Its error handler has run: MPI must not see the handle a second time.
void an_invalid_communicator_is_passed_to_mpi_once(void**) {
  const call::Outcome outcome = call::dispatch(floats(test::kInvalidComm));
  assert_true(outcome.done);
  assert_int_equal(outcome.code, test::kErrorOfHandler);
}

void the_switch_turns_off_and_on(void**) {
  call::control(0);
  assert_left(floats(), BypassReason::off);
  call::control(7);  // not one of slimpi's levels
  assert_left(floats(), BypassReason::off);
  call::control(1);
  assert_left(floats(MPI_COMM_SELF), BypassReason::comm);
}

// Of calls whose communicator is not looked at, only those of this rank alone are known to stay.
void sums_of_one_rank_are_no_bytes_of_the_job(void**) {
  // MPI refuses a nonblocking call on a handle that is none, and so it is not counted.
  const auto left = [](MPI_Comm comm, bool valid = true) {
    const std::uint64_t before = Runtime::get()->statistics.counts().bytes_left_elsewhere;
    call::control(0);
    assert_left(floats(comm), BypassReason::off);
    call::control(1);
    if (valid) call::count_nonblocking(floats(comm));
    return Runtime::get()->statistics.counts().bytes_left_elsewhere - before;
  };
  assert_int_equal(left(MPI_COMM_SELF), 0);
  assert_int_equal(left(MPI_COMM_WORLD), 2 * sizeof g_in);
  assert_int_equal(left(MPI_COMM_NULL, false), 0);
  // Nothing asks MPI about it: its own call reports the error.
  assert_int_equal(left(test::kInvalidComm, false), sizeof g_in);
}

void an_mpi_that_makes_no_communicator_keeps_the_call(void**) {
  assert_left(floats(), BypassReason::failure);
  assert_left(floats(), BypassReason::failure);
}

void info_keys_set_options_of_one_communicator(void**) {
  const MPI_Info info = MPI_Info(1);
  test::fake_mpi().info = {{"SLIMPI_Bits", "4"}, {"other_bits", "2"}, {"slimpi_bucket", "512"}};
  assert_int_equal(call::take_info(Word(MPI_COMM_SELF), Word(info)), MPI_SUCCESS);
  const Config& set = Runtime::get()->find(MPI_COMM_SELF)->config();
  const Config& other = Runtime::get()->find(test::kIntercommunicator)->config();
  assert_true(set.bits == 4);
  assert_int_equal(set.bucket, 512);
  assert_true(other.bits == Config().bits);
  assert_int_equal(other.bucket, Config().bucket);
  test::fake_mpi().info.clear();
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(nothing_starts_before_mpi_does),
      cmocka_unit_test(other_types_and_operations_are_left),
      cmocka_unit_test(invalid_arguments_are_left),
      cmocka_unit_test(communicators_without_other_ranks_of_this_world_are_left),
      cmocka_unit_test(an_invalid_communicator_is_passed_to_mpi_once),
      cmocka_unit_test(the_switch_turns_off_and_on),
      cmocka_unit_test(sums_of_one_rank_are_no_bytes_of_the_job),
      cmocka_unit_test(an_mpi_that_makes_no_communicator_keeps_the_call),
      cmocka_unit_test(info_keys_set_options_of_one_communicator),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
