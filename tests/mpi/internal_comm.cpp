// SPDX-License-Identifier: BSD-3-Clause
// Tests the exchange in which all ranks agree to make slimpi's internal communicator. MPI's
// functions are replaced by functions of this file, which record their arguments and supply the
// words of the other ranks.
#include "mpi/internal_comm.h"

#include "base/status.h"
#include "tests/helper/mpi/message_status.h"
#include "tests/helper/base/unit_test.h"

using namespace slimpi;

namespace {

constexpr int kRank = 1, kSize = 3;
int g_refusal;                        // of rank 2
std::vector<int> g_sent, g_received;  // counts, by rank
bool g_made;

// Supplies the words of ranks 0 and 2: their number, and in the low four bits why they refuse.
int ialltoallv(const void*, const int* sends, const int*, mpi::Datatype, void* data,
               const int* receives, const int* places, mpi::Datatype, mpi::Comm, mpi::Request*) {
  g_sent.assign(sends, sends + kSize);
  g_received.assign(receives, receives + kSize);
  int* const words = static_cast<int*>(data);
  words[places[0]] = 70 << 4;
  words[places[2]] = 90 << 4 | g_refusal;
  return mpi::kSuccess;
}

mpi::Api fake_api() {
  mpi::Api api{};
  api.Query_thread = [](int* level) { return test::put(level, 0); };
  api.Comm_group = [](mpi::Comm, mpi::Group* g) { return test::put(g, mpi::Group(7)); };
  api.Comm_rank = [](mpi::Comm, int* rank) { return test::put(rank, kRank); };
  api.Comm_size = [](mpi::Comm, int* size) { return test::put(size, kSize); };
  api.Comm_create = [](mpi::Comm, mpi::Group, mpi::Comm* made) {
    g_made = true;
    return test::put(made, mpi::abi.comm_self);
  };
  api.Comm_get_errhandler = [](mpi::Comm, mpi::Errhandler* handler) {
    return test::put(handler, mpi::abi.errors_return);
  };
  api.Comm_set_errhandler = [](mpi::Comm, mpi::Errhandler) { return mpi::kSuccess; };
  api.Errhandler_free = [](mpi::Errhandler*) { return mpi::kSuccess; };
  api.Group_free = [](mpi::Group*) { return mpi::kSuccess; };
  api.Ialltoallv = ialltoallv;
  return api;
}

Status make(int refusal, int* number) {
  const mpi::Api api = fake_api();
  g_refusal = refusal;
  g_made = false;
  const mpi::WaitFor wait = [](const mpi::Poll&, std::span<const int> arrivals, bool) {
    assert_int_equal(arrivals.size(), kSize);
    for (const int word : arrivals) assert_true(word >= 0);
    return Status::ok;
  };
  mpi::Comm made = mpi::abi.comm_null;
  mpi::Refusal why{};
  const Status status =
      mpi::make_internal(api, mpi::abi.comm_world, wait, false, &made, number, &why);
  assert_true((made != mpi::abi.comm_null) == (status == Status::ok));
  return status;
}

// MPI may need memory for a message from a rank to itself. If it had none, the rank would wait for
// itself.
UNIT_TEST(nothing_goes_to_itself) {
  int number = 0;
  assert_true(make(0, &number) == Status::ok);
  assert_int_equal(number, 90);
  for (int rank = 0; rank < kSize; ++rank) {
    assert_int_equal(g_sent[std::size_t(rank)], rank == kRank ? 0 : 1);
    assert_int_equal(g_received[std::size_t(rank)], rank == kRank ? 0 : 1);
  }
}

// Two communicators may have the same number, but then another rank proposed the number.
UNIT_TEST(the_rank_of_the_number_is_known) {
  const mpi::Api api = fake_api();
  g_refusal = 0;
  for (const int number : {5, 90, 91}) {
    const mpi::FirstExchange::Owner exchange = mpi::FirstExchange::make();
    assert_true(exchange->begin(api, mpi::abi.comm_world, number, mpi::Refusal::none) ==
                Status::ok);
    assert_int_equal(exchange->number(), std::max(number, 90));
    assert_int_equal(exchange->proposer(), number < 90 ? 2 : kRank);
  }
}

UNIT_TEST(one_refusal_counts_for_all) {
  int number = 0;
  assert_true(make(2, &number) == Status::unsupported);
  assert_false(g_made);
  assert_string_equal(failure_text().c_str(),
                      "MPI has almost no free context ids for communicators left");
  assert_true(make(3, &number) == Status::disagreement);
  assert_false(g_made);
  assert_true(make(4, &number) == Status::disagreement);
  assert_non_null(strstr(failure_text().c_str(), "SLIMPI_TYPES differs between the ranks"));
  // The ranks are in different calls if another collective of the program arrives. This is an
  // error, and no refusal.
  assert_true(make(15, &number) == Status::disagreement);
  assert_string_equal(failure_text().c_str(),
                      "the ranks of a communicator are in different calls: all ranks must make the "
                      "same collective calls in the same order");
}

// A communicator that failed is made again for a program that survives failures, until slimpi has
// lost too many context ids.
UNIT_TEST(a_failed_communicator_gives_its_place_back) {
  int number = 0;
  mpi::forget_internal();
  for (int i = 0; i < mpi::kMostServed; ++i) assert_true(make(0, &number) == Status::ok);
  for (int lost = 0; lost < mpi::kMostLost; ++lost) {
    assert_true(make(0, &number) == Status::unsupported);
    mpi::lose_internal();
    assert_true(make(0, &number) == Status::ok);
  }
  mpi::lose_internal();
  assert_true(make(0, &number) == Status::unsupported);
}

}  // namespace
