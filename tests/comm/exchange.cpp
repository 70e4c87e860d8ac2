// SPDX-License-Identifier: BSD-3-Clause
// Tests ranks that pass different counts to one call: their messages have different tags, and the
// words of their agreements have one form and tell the counts. A report of a failure ends the call
// that it names, and memory of messages that MPI has not completed is left to MPI. MPI is functions
// that record their arguments, and this test makes the words of other ranks.
#include "comm/exchange.h"

#include <deque>
#include <set>

#include "observe/activity.h"
#include "tests/helper/mpi/message_status.h"
#include "tests/helper/base/unit_test.h"

using namespace slimpi;
using comm::Tag;

namespace {

constexpr int kRank = 1, kSize = 4;
int g_highest;                       // MPI_TAG_UB; negative: not known
int g_tag;                           // of the last message
int g_words;                         // of the last message of an agreement
std::vector<std::uint64_t> g_other;  // what the others contribute
std::string g_report;                // of a failure, as it was sent last
struct Report {
  int from;
  std::string text;
};
std::deque<Report> g_arrived;
std::size_t g_probed;  // the message of g_arrived that was probed last

int get_attr(mpi::Comm, int key, void* value, int* found) {
  assert_int_equal(key, mpi::abi.tag_ub);
  *found = g_highest >= 0 ? 1 : 0;
  *static_cast<int**>(value) = &g_highest;
  return mpi::kSuccess;
}
int isend(const void* data, int bytes, mpi::Datatype, int, int tag, mpi::Comm, mpi::Request*) {
  g_tag = tag;
  if (tag == int(Tag::failure)) g_report.assign(static_cast<const char*>(data), std::size_t(bytes));
  return mpi::kSuccess;
}
// The first message of another rank holds its words; the words of its later messages are 0.
int irecv(void* data, int count, mpi::Datatype type, int, int tag, mpi::Comm, mpi::Request*) {
  if (type == mpi::abi.type_uint64_t) {
    g_words = count;
    auto* const words = static_cast<std::uint64_t*>(data);
    std::fill_n(words, count, 0);
    std::copy(g_other.begin(), g_other.end(), words);
    return mpi::kSuccess;
  }
  g_tag = tag;
  if (tag != int(Tag::failure)) return mpi::kSuccess;
  const std::string text = g_arrived[g_probed].text;
  std::memcpy(data, text.data(), text.size());
  g_arrived.erase(g_arrived.begin() + std::ptrdiff_t(g_probed));
  return mpi::kSuccess;
}
int iprobe(int from, int, mpi::Comm, int* found, mpi::MessageStatus* status) {
  g_probed = 0;
  while (g_probed < g_arrived.size() && from != mpi::abi.any_source &&
         g_arrived[g_probed].from != from)
    ++g_probed;
  *found = g_probed < g_arrived.size() ? 1 : 0;
  if (*found != 0) test::fill(status, g_arrived[g_probed].from, int(Tag::failure));
  return mpi::kSuccess;
}
struct Fixture {
  explicit Fixture(int highest) : exchange(api, *statistics) {
    api.Comm_get_attr = get_attr;
    api.Comm_rank = [](mpi::Comm, int* rank) { return test::put(rank, kRank); };
    api.Comm_size = [](mpi::Comm, int* size) { return test::put(size, kSize); };
    api.Iprobe = iprobe;
    api.Wait = [](mpi::Request*, mpi::MessageStatus*) { return mpi::kSuccess; };
    api.Request_free = [](mpi::Request*) { return mpi::kSuccess; };
    api.Isend = isend;
    api.Irecv = irecv;
    g_highest = highest;
    g_other.clear();
    g_arrived.clear();
    internal = std::make_shared<comm::InternalComm>(api, mpi::abi.comm_world);
    exchange.open(internal, 0, 1);
  }
  ~Fixture() { internal->abandon(); }
  mpi::Api api{};
  std::unique_ptr<Statistics> statistics = std::make_unique<Statistics>();
  std::shared_ptr<comm::InternalComm> internal;
  comm::Exchange exchange;
};

ActiveCall::Subject call_of(std::uint64_t count) {
  return {3, "gradients", kRank, kSize, 7, count};
}

int sent_tag(comm::Exchange& exchange, std::uint64_t count, Tag tag) {
  const ActiveCall call(call_of(count));
  std::uint32_t word = 0;
  mpi::Request request = mpi::abi.request_null;
  assert_true(exchange.receive(0, tag, &word, sizeof word, request) == Status::ok);
  const int received = g_tag;
  assert_true(exchange.send(0, tag, &word, sizeof word, request) == Status::ok);
  assert_int_equal(g_tag, received);
  return g_tag;
}

// MPICH's usual highest tag, and the lowest that an MPI may have.
UNIT_TEST(tags_tell_the_count) {
  for (const int highest : {(1 << 28) - 1, 32767, -1}) {
    Fixture fixture(highest);
    std::set<int> tags;
    int asked = 0;
    for (std::uint64_t count = 1 << 10; count <= 1 << 24; count *= 2)
      for (const std::uint64_t more : {0, 1, 1000})
        for (const Tag tag : {Tag::reduce_scatter, Tag::intra_all_gather}) {
          const int found = sent_tag(fixture.exchange, count + more, tag);
          assert_in_range(found, 0, highest < 0 ? 32767 : highest);
          assert_true(found % comm::kTags == int(tag));
          assert_int_equal(found, sent_tag(fixture.exchange, count + more, tag));
          tags.insert(found);
          ++asked;
        }
    if (highest > 32767) assert_int_equal(tags.size(), asked);
    assert_true(int(tags.size()) > asked * 9 / 10);
  }
}

UNIT_TEST(agreements_have_one_form) {
  Fixture fixture(32767);
  const ActiveCall call(call_of(500));
  std::uint64_t one[] = {7}, many[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  assert_true(fixture.exchange.all_max(one) == Status::ok);
  assert_int_equal(one[0], 7);
  const int words = g_words;
  assert_true(fixture.exchange.all_max(many) == Status::ok);
  assert_int_equal(g_words, words);
  assert_true(fixture.exchange.all_min(many) == Status::ok);
  assert_int_equal(g_words, words);
  for (std::uint64_t i = 0; i < 11; ++i) assert_int_equal(many[i], i + 1);
  // The word of another rank with this count, and how many words it has, each with its complement;
  // then two values.
  const std::uint64_t other = std::uint64_t(500) << 24 | 3;
  g_other = {other, ~other, 2, ~std::uint64_t(2), ~std::uint64_t(4), ~std::uint64_t(9)};
  std::uint64_t values[] = {5, 6};
  assert_true(fixture.exchange.all_min(values) == Status::ok);
  assert_int_equal(values[0], 4);
  assert_int_equal(values[1], 6);
}

UNIT_TEST(another_count_is_named) {
  for (const std::uint64_t theirs : {400, 600}) {
    Fixture fixture(32767);
    const ActiveCall call(call_of(500));
    const std::uint64_t other = theirs << 24 | 3;
    g_other = {other, ~other};
    std::uint64_t values[] = {5};
    assert_true(fixture.exchange.all_max(values) == Status::disagreement);
    assert_int_equal(values[0], 5);
    assert_string_equal(
        failure_text().c_str(),
        ("rank 3 passes " + std::to_string(theirs) +
         " floats in call 7 on gradients (communicator 3, rank 1 of 4), 500 floats; "
         "all ranks must pass the same count")
            .c_str());
  }
}

// Returns the report of `rank` when it fails in its call number `call`. The other ranks have failed
// before, so it waits for no rank.
Report report_of(int rank, int call) {
  Fixture fixture(32767);
  for (int i = 0; i < call; ++i) fixture.exchange.begin_call();
  for (int other = 0; other < kSize; ++other)
    if (other != kRank) g_arrived.push_back({other, std::string(256, '\0')});
  (void)(fail)(Status::device, "call " + std::to_string(call));
  fixture.exchange.report_failure(Status::device);
  return {rank, g_report};
}

UNIT_TEST(one_flag_is_agreed) {
  Fixture fixture(32767);
  const ActiveCall call(call_of(500));
  bool flag = true;
  assert_true(fixture.exchange.all_true(&flag) == Status::ok);
  assert_true(flag);
  g_other = {0, 0, 0, 0, ~std::uint64_t(0)};  // another rank's false
  assert_true(fixture.exchange.all_true(&flag) == Status::ok);
  assert_false(flag);
  // A rank that reports a failure gives no answer, whatever this rank said.
  g_other = {std::uint64_t(600) << 24, ~(std::uint64_t(600) << 24)};
  flag = true;
  assert_true(fixture.exchange.all_true(&flag) == Status::disagreement);
  assert_false(flag);
}

UNIT_TEST(a_request_is_of_its_last_message) {
  Fixture fixture(32767);
  std::uint32_t word = 0;
  mpi::Request request = mpi::abi.request_null;
  assert_int_equal(fixture.exchange.peer_of(request), -1);
  const auto is_of = [&](int peer, WaitStage stage) {
    assert_int_equal(fixture.exchange.peer_of(request), peer);
    assert_true(fixture.exchange.stage_of(request) == stage);
  };
  assert_true(fixture.exchange.send(0, Tag::peers, &word, 4, request) == Status::ok);
  is_of(0, WaitStage::neighbor_exchange);
  assert_true(fixture.exchange.receive(2, Tag::all_gather, &word, 4, request) == Status::ok);
  is_of(2, WaitStage::all_gather);
  assert_true(fixture.exchange.send(3, Tag::intra_all_gather, &word, 4, request) == Status::ok);
  is_of(3, WaitStage::node_all_gather);
}

// A rank that has completed a call may fail in the next one before others have completed it.
UNIT_TEST(a_report_ends_its_call) {
  const Report later = report_of(2, 2);
  Fixture fixture(32767);
  comm::Exchange& exchange = fixture.exchange;
  exchange.begin_call();
  g_arrived = {later};
  for (int i = 0; i < 3; ++i) assert_true(exchange.check() == Status::ok);
  assert_false(exchange.failure_reported());
  exchange.begin_call();
  assert_true(exchange.failure_reported());
  assert_true(exchange.check() == Status::device);
  assert_string_equal(failure_text().c_str(), "rank 2 failed: call 2");
}

UNIT_TEST(a_report_of_an_earlier_call_comes_first) {
  const Report later = report_of(2, 2), now = report_of(3, 1);
  Fixture fixture(32767);
  fixture.exchange.begin_call();
  g_arrived = {later, now};
  assert_true(fixture.exchange.check() == Status::ok);
  assert_true(fixture.exchange.check() == Status::device);
  assert_string_equal(failure_text().c_str(), "rank 3 failed: call 1");
}

// A persistent sum completes by a message of the rank to itself.
UNIT_TEST(a_failed_call_leaves_messages_of_this_rank) {
  Fixture fixture(32767);
  fixture.exchange.begin_call();
  for (int rank : {kRank, 0, 2, 3}) g_arrived.push_back({rank, std::string(256, '\0')});
  (void)(fail)(Status::device, "no kernel");
  fixture.exchange.report_failure(Status::device);
  assert_int_equal(g_arrived.size(), 1);
  assert_int_equal(g_arrived.front().from, kRank);
}

// The other ranks end every channel when they get this rank's report.
UNIT_TEST(a_failure_of_this_rank_ends_its_other_channels) {
  Fixture fixture(32767);
  comm::Exchange other(fixture.api, *fixture.statistics);
  other.open(fixture.internal, 1, 2);
  other.begin_call();
  fixture.exchange.begin_call();
  assert_true(other.check() == Status::ok);
  for (int rank = 0; rank < kSize; ++rank)
    if (rank != kRank) g_arrived.push_back({rank, std::string(256, '\0')});
  (void)(fail)(Status::device, "no kernel");
  fixture.exchange.report_failure(Status::device);
  assert_true(other.check() == Status::device);
  assert_string_equal(failure_text().c_str(), "no kernel");
  assert_true(fixture.exchange.check() == Status::ok);
}

// A peer that has stopped in the middle of a message completes neither its sends nor its receives.
UNIT_TEST(memory_of_an_incomplete_message_is_left) {
  static bool completes;
  static int freed;
  for (const bool sends : {false, true})
    for (const bool complete : {false, true}) {
      Fixture fixture(32767);
      completes = complete;
      freed = 0;
      fixture.api.Cancel = [](mpi::Request*) { return mpi::kSuccess; };  // MPI has matched it
      fixture.api.Test = [](mpi::Request* request, int* done, mpi::MessageStatus*) {
        *done = completes ? 1 : 0;
        if (completes) *request = mpi::abi.request_null;
        return mpi::kSuccess;
      };
      fixture.api.Request_free = [](mpi::Request* request) {
        if (*request == mpi::Request(7)) ++freed;
        *request = mpi::abi.request_null;
        return mpi::kSuccess;
      };
      std::uint32_t word = 0;
      mpi::Request request = mpi::abi.request_null;
      comm::Exchange& exchange = fixture.exchange;
      assert_true((sends ? exchange.send(0, Tag::peers, &word, 4, request)
                         : exchange.receive(0, Tag::peers, &word, 4, request)) == Status::ok);
      request = mpi::Request(7);
      for (const Status status : {Status::absent, Status::ok}) {
        (void)(fail)(Status::absent, "no rank 0");
        assert_true(exchange.settle(status, {&request, 1}) == status);
        assert_true(request == mpi::abi.request_null);
        assert_int_equal(freed, complete ? 0 : 1);
        assert_true(exchange.memory_left() == !complete);
      }
    }
}

}  // namespace
