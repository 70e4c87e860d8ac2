// SPDX-License-Identifier: BSD-3-Clause
// Whom a rank that waits asks, and whose answers it still lacks. MPI is a list of messages.
#include "comm/roll_call.h"

#include <cstring>

#include "comm/point_to_point.h"
#include "tests/helper/cmocka_cxx.h"
#include "tests/helper/message_status.h"

using namespace slimpi;
using comm::RollCall;

namespace {

constexpr int kRank = 2, kWords = 8;
int g_size;
std::vector<int> g_asked;                               // ranks, in order
std::optional<std::pair<int, std::uint32_t>> g_answer;  // from which rank, and in which call it is

int comm_rank(mpi::Comm, int* rank) {
  *rank = kRank;
  return mpi::kSuccess;
}
int comm_size(mpi::Comm, int* size) {
  *size = g_size;
  return mpi::kSuccess;
}
int isend(const void*, int count, mpi::Datatype, int to, int tag, mpi::Comm, mpi::Request*) {
  assert_int_equal(count, kWords);
  assert_int_equal(tag, int(comm::Tag::roll_call));
  g_asked.push_back(to);
  return mpi::kSuccess;
}
int iprobe(int, int, mpi::Comm, int* found, mpi::MessageStatus* status) {
  *found = g_answer ? 1 : 0;
  if (g_answer) test::fill(status, g_answer->first, int(comm::Tag::roll_call));
  return mpi::kSuccess;
}
int irecv(void* data, int, mpi::Datatype, int, int, mpi::Comm, mpi::Request*) {
  // An answer to the first question: its call and a count of 100.
  const std::uint32_t words[kWords] = {1, 1, 3, g_answer->second, 0, 0, 100, 0};
  std::memcpy(data, words, sizeof words);
  g_answer.reset();
  return mpi::kSuccess;
}
int wait_for(mpi::Request*, mpi::MessageStatus*) {
  return mpi::kSuccess;
}
int test_for(mpi::Request*, int* done, mpi::MessageStatus*) {
  *done = 1;
  return mpi::kSuccess;
}

mpi::Api fake_api() {
  mpi::Api api{};
  api.Comm_rank = comm_rank;
  api.Comm_size = comm_size;
  api.Isend = isend;
  api.Iprobe = iprobe;
  api.Irecv = irecv;
  api.Wait = wait_for;
  api.Test = test_for;
  g_asked.clear();
  return api;
}

void answer(RollCall& roll_call, int from) {
  g_answer = {from, 9};
  roll_call.serve(mpi::abi.comm_world);
}

void asks_all_of_a_few(void**) {
  const mpi::Api api = fake_api();
  RollCall roll_call(api);
  g_size = 4;
  bool asked = false;
  roll_call.ask(mpi::abi.comm_world, 3, &asked);
  assert_true(asked);
  assert_true(g_asked == (std::vector<int>{0, 1, 3}));
  for (const int from : {0, 3}) answer(roll_call, from);
  assert_false(roll_call.complete());
  assert_true(roll_call.is_silent(1));
  assert_false(roll_call.is_silent(kRank));
  assert_int_equal(roll_call.answers()[3]->call, 9);
  assert_int_equal(roll_call.answers()[3]->count, 100);
  answer(roll_call, 1);
  assert_true(roll_call.complete());
}

void asks_one_of_many(void**) {
  const mpi::Api api = fake_api();
  RollCall roll_call(api);
  g_size = RollCall::kMostRanks + 1;
  bool asked = false;
  roll_call.ask(mpi::abi.comm_world, 200, &asked);
  assert_true(asked);
  assert_true(g_asked == std::vector<int>{200});
  assert_true(roll_call.is_silent(200));
  assert_false(roll_call.is_silent(199));
  assert_false(roll_call.complete());
  answer(roll_call, 200);
  assert_true(roll_call.complete());
}

void asks_nobody_of_many(void**) {
  const mpi::Api api = fake_api();
  RollCall roll_call(api);
  g_size = RollCall::kMostRanks + 1;
  bool asked = true;
  roll_call.ask(mpi::abi.comm_world, -1, &asked);
  assert_false(asked);
  assert_true(g_asked.empty());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(asks_all_of_a_few),
      cmocka_unit_test(asks_one_of_many),
      cmocka_unit_test(asks_nobody_of_many),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
