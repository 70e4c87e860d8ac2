// SPDX-License-Identifier: BSD-3-Clause
// What must work where no memory can be allocated: what a rank does before the ranks agree, and
// while it handles a failure.
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/log.h"
#include "base/status.h"
#include "call/autotuner_log.h"
#include "comm/exchange.h"
#include "tests/helper/cmocka_cxx.h"
#include "tests/helper/message_status.h"

using namespace slimpi;

namespace {

constexpr int kAll = -1;
int g_left = kAll;  // allocations that succeed from now on

// While this object lives, all allocations after the first `left` ones fail.
struct NoMemory {
  explicit NoMemory(int left = 0) { g_left = left; }
  ~NoMemory() { g_left = kAll; }
};

}  // namespace

void* operator new(std::size_t bytes) {
  if (g_left == 0) throw std::bad_alloc();
  if (g_left > 0) --g_left;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return g_left == 0 ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace {

void a_line_of_the_log_needs_none(void**) {
  set_log(LogLevel::warn, 0);
  (void)(fail)(Status::no_memory, "no memory for a text that is too long for a short string");
  const NoMemory none;
  log_once(LogLevel::warn, "a warning of a test, which is too long for a short string");
  log_failure_once(LogLevel::warn, "a failure of a test, which is too long for a short string");
}

void a_choice_that_was_not_recorded_is_recorded_later(void**) {
  static constexpr const char* candidates[] = {"mpi", "in the node"};
  bool failed = true;
  for (int left = 0; failed; ++left) {
    call::AutoChoices choices;
    {
      const NoMemory some(left);
      try {
        choices.add(candidates, 1 << 20, 1, 7);
        failed = false;
      } catch (const std::bad_alloc&) {
      }
    }
    choices.add(candidates, 1 << 20, 1, 7);
    const std::vector<AutoChoice> rows = choices.rows();
    assert_int_equal(rows.size(), 1);
    assert_int_equal(rows[0].candidates.size(), 2);
    assert_int_equal(rows[0].candidates[1].calls, failed ? 1 : 2);
  }
}

// Rank 1 of three. Reports of the others arrive, rank 2's with a text.
int g_arrived;
int comm_size(mpi::Comm, int* size) {
  *size = 3;
  return mpi::kSuccess;
}
int comm_rank(mpi::Comm, int* rank) {
  *rank = 1;
  return mpi::kSuccess;
}
int get_attr(mpi::Comm, int, void*, int* found) {
  *found = 0;
  return mpi::kSuccess;
}
int isend(const void*, int, mpi::Datatype, int, int, mpi::Comm, mpi::Request* request) {
  *request = mpi::abi.request_null;
  return mpi::kSuccess;
}
int iprobe(int, int, mpi::Comm, int* found, mpi::MessageStatus* status) {
  *found = g_arrived < 2 ? 1 : 0;
  test::fill(status, g_arrived == 0 ? 2 : 0, int(comm::Tag::failure));
  return mpi::kSuccess;
}
int irecv(void* data, int bytes, mpi::Datatype, int, int, mpi::Comm, mpi::Request* request) {
  std::memset(data, 0, std::size_t(bytes));
  const std::uint64_t call = 1;
  std::memcpy(data, &call, sizeof call);
  const auto status = std::uint32_t(Status::device);
  std::memcpy(static_cast<char*>(data) + sizeof call, &status, sizeof status);
  std::strcpy(static_cast<char*>(data) + sizeof call + sizeof status,
              "a GPU that has a name which is too long for a short string");
  *request = mpi::abi.request_null;
  ++g_arrived;
  return mpi::kSuccess;
}
int wait(mpi::Request*, mpi::MessageStatus*) {
  return mpi::kSuccess;
}
int request_free(mpi::Request*) {
  return mpi::kSuccess;
}

struct Ranks {
  Ranks() : exchange(api, statistics) {
    api.Comm_get_attr = get_attr;
    api.Comm_rank = comm_rank;
    api.Comm_size = comm_size;
    api.Iprobe = iprobe;
    api.Irecv = irecv;
    api.Isend = isend;
    api.Wait = wait;
    api.Request_free = request_free;
    g_arrived = 0;
    exchange.set_comm(mpi::abi.comm_world, 1);
    exchange.begin_call();
  }
  mpi::Api api{};
  Statistics statistics;
  comm::Exchange exchange;
};

void a_report_of_another_rank_arrives(void**) {
  Ranks ranks;
  const NoMemory none;
  assert_true(ranks.exchange.check() == Status::device);
  char text[200];
  copy_failure_text(text);
  assert_string_equal(text,
                      "rank 2 failed: a GPU that has a name which is too long for a short string");
}

// Ends when both others have reported, not when the patience ends.
void a_failed_call_is_settled(void**) {
  Ranks ranks;
  const NoMemory none;
  assert_true(ranks.exchange.settle(Status::no_memory, {}) == Status::no_memory);
  assert_int_equal(g_arrived, 2);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_line_of_the_log_needs_none),
      cmocka_unit_test(a_choice_that_was_not_recorded_is_recorded_later),
      cmocka_unit_test(a_report_of_another_rank_arrives),
      cmocka_unit_test(a_failed_call_is_settled),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
