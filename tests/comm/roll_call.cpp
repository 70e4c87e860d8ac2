// SPDX-License-Identifier: BSD-3-Clause
// Tests which ranks a waiting rank asks, and whose answers it still lacks. MPI is a list of
// messages.
#include "comm/roll_call.h"

#include "comm/point_to_point.h"
#include "tests/helper/mpi/message_status.h"
#include "tests/helper/base/unit_test.h"

using namespace slimpi;
using comm::RollCall;

namespace {

constexpr int kRank = 2, kWords = 10;
int g_size;
std::vector<int> g_asked;                               // ranks, in order
std::optional<std::pair<int, std::uint32_t>> g_answer;  // from which rank, and in which call it is

std::optional<std::uint32_t> g_question;  // from rank 0, about a communicator
std::uint32_t g_sent[kWords];

int isend(const void* data, int count, mpi::Datatype, int to, int tag, mpi::Comm, mpi::Request*) {
  assert_int_equal(count, kWords);
  assert_int_equal(tag, int(comm::Tag::roll_call));
  std::memcpy(g_sent, data, sizeof g_sent);
  g_asked.push_back(to);
  return mpi::kSuccess;
}
int iprobe(int, int, mpi::Comm, int* found, mpi::MessageStatus* status) {
  *found = g_answer || g_question ? 1 : 0;
  if (g_question) test::fill(status, 0, int(comm::Tag::roll_call));
  if (g_answer) test::fill(status, g_answer->first, int(comm::Tag::roll_call));
  return mpi::kSuccess;
}
int irecv(void* data, int, mpi::Datatype, int, int, mpi::Comm, mpi::Request*) {
  if (g_question) {
    const std::uint32_t words[kWords] = {0, 1, *g_question};
    std::memcpy(data, words, sizeof words);
    g_question.reset();
    return mpi::kSuccess;
  }
  // An answer to the first question: its call and a count of 100.
  const std::uint32_t words[kWords] = {1, 1, 3, g_answer->second, 0, 0, 100};
  std::memcpy(data, words, sizeof words);
  g_answer.reset();
  return mpi::kSuccess;
}

mpi::Api fake_api() {
  mpi::Api api{};
  api.Comm_rank = [](mpi::Comm, int* rank) { return test::put(rank, kRank); };
  api.Comm_size = [](mpi::Comm, int* size) { return test::put(size, g_size); };
  api.Isend = isend;
  api.Iprobe = iprobe;
  api.Irecv = irecv;
  api.Wait = [](mpi::Request*, mpi::MessageStatus*) { return mpi::kSuccess; };
  api.Test = [](mpi::Request*, int* done, mpi::MessageStatus*) { return test::put(done, 1); };
  g_asked.clear();
  return api;
}

void answer(RollCall& roll_call, int from) {
  g_answer = {from, 9};
  roll_call.serve(mpi::abi.comm_world);
}

UNIT_TEST(asks_all_of_a_few) {
  const mpi::Api api = fake_api();
  RollCall roll_call(api);
  g_size = 4;
  assert_true(roll_call.ask(mpi::abi.comm_world, 3));
  assert_true(g_asked == (std::vector<int>{0, 1, 3}));
  for (const int from : {0, 3}) answer(roll_call, from);
  assert_true(roll_call.silent() == std::vector<int>{1});
  assert_int_equal(roll_call.answers()[3]->call, 9);
  assert_int_equal(roll_call.answers()[3]->count, 100);
  answer(roll_call, 1);
  assert_true(roll_call.silent().empty());
}

UNIT_TEST(asks_one_of_many) {
  const mpi::Api api = fake_api();
  RollCall roll_call(api);
  g_size = RollCall::kMostRanks + 1;
  assert_true(roll_call.ask(mpi::abi.comm_world, 200));
  assert_true(g_asked == std::vector<int>{200});
  assert_true(roll_call.silent() == std::vector<int>{200});
  answer(roll_call, 200);
  assert_true(roll_call.silent().empty());
}

UNIT_TEST(asks_nobody_of_many) {
  const mpi::Api api = fake_api();
  RollCall roll_call(api);
  g_size = RollCall::kMostRanks + 1;
  assert_false(roll_call.ask(mpi::abi.comm_world, -1));
  assert_true(g_asked.empty());
}

// The communicator of the program has the lowest number, so the answer tells of it last.
UNIT_TEST(says_in_mpi_finalize_which_call_was_the_last) {
  const mpi::Api api = fake_api();
  RollCall roll_call(api);
  for (std::uint32_t freed = 2; freed < 1000; ++freed) roll_call.end_calls(freed, 5);
  roll_call.end_calls(1, 7);
  roll_call.finalize();
  const auto ask_about = [&](std::uint32_t communicator) {
    g_question = communicator;
    roll_call.serve(mpi::abi.comm_world);
    return WaitStage(g_sent[4]);
  };
  assert_true(ask_about(1) == WaitStage::mpi_finalize);
  assert_int_equal(g_sent[2], 1);
  assert_int_equal(g_sent[3], 7);
  assert_true(ask_about(999) == WaitStage::mpi_finalize);
  assert_int_equal(g_sent[3], 5);
  // This rank has forgotten communicator 2, or never knew it, so it says nothing of it.
  assert_true(ask_about(2) == WaitStage::none);
}

}  // namespace
