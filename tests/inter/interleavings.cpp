// SPDX-License-Identifier: BSD-3-Clause
// Every interleaving of the schedules between nodes and of the agreement, for few ranks and
// segments, with the code that ships. A step is one operation of one rank, with the arithmetic
// before it, or the transfer of one message. In each interleaving
//
//   1. no rank deadlocks,
//   2. each message is received once and waited for,
//   3. result, residual and totals of all ranks have the bytes of a direct computation, in which
//      each element is added once,
//   4. no rank writes a buffer whose message is under way.
//
// all: depth first, from the start for each branch, and no further where the hash of a state is
// known. reduced: partial-order reduction. A step of a rank that keeps 4 commutes with all steps of
// others, so one order of them stands for all, except that a rank may read a buffer before its
// message has arrived. So each message is transferred as late as possible, as early as possible,
// and in turn with the ranks. Each planted fault must be found in both ways.
#include <map>
#include <memory>
#include <unordered_set>

// Before CMocka, which has a macro of the name of a function in base/status.h.
#include "comm/exchange.h"
#include "comm/waiter.h"
#include "tests/helper/base/fibers.h"
#include "tests/inter/run.h"

#include "tests/helper/base/unit_test.h"

namespace {

using namespace slimpi;
using test::Case;
using test::Fault;
using test::Interleaving;
using test::Planted;

struct Explored {
  std::size_t states = 0, runs = 0;
  std::string failure;
};

// Runs the ranks in one interleaving. Returns "" or the first fault.
using Run = std::function<std::string(const Interleaving&)>;

// Explores all interleavings; ends at the first failure.
Explored explore_all(const Run& run, const Planted& planted = {}) {
  Explored explored;
  std::unordered_set<std::uint64_t> met;
  std::vector<std::string> branches{""};  // the choices that lead to them, a byte each
  while (!branches.empty() && explored.failure.empty()) {
    const std::string branch = std::move(branches.back());
    branches.pop_back();
    std::string path;
    const auto choose = [&](std::size_t steps, const auto& state) -> std::size_t {
      if (path.size() < branch.size()) {
        path += branch[path.size()];
        return std::size_t(path.back());
      }
      if (!met.insert(state()).second) return test::Fibers::kStop;
      for (std::size_t other = 1; other < steps; ++other) branches.push_back(path + char(other));
      path += char(0);
      return 0;
    };
    ++explored.runs;
    explored.failure = run({choose, planted});
  }
  explored.states = met.size();
  return explored;
}

Explored explore_reduced(const Run& run, const Planted& planted = {}) {
  Explored explored;
  std::unordered_set<std::uint64_t> met;
  for (int order = 0; order < 3 && explored.failure.empty(); ++order) {
    std::size_t turn = 0;
    // The steps of ranks come first, then the transfers.
    const auto choose = [&](std::size_t steps, const auto& state) -> std::size_t {
      met.insert(state());
      return order == 0 ? 0 : order == 1 ? steps - 1 : turn++ % steps;
    };
    ++explored.runs;
    explored.failure = run({choose, planted});
  }
  explored.states = met.size();
  return explored;
}

Run run_of(const Case& one) {
  return [one](const Interleaving& interleaving) { return test::run_case(one, &interleaving); };
}

Case pairwise(int ranks, int segments) {
  Case one;
  one.kind = Case::Kind::pairwise;
  one.ranks = ranks;
  one.format.codec = kernels::Codec::quantized;
  one.format.bits = 8;
  one.format.bucket = 64;
  one.piece = 64;
  one.count = std::uint64_t(ranks) * 64 * std::uint64_t(segments) - 5;  // an odd tail
  one.residual = one.totals = true;
  return one;
}
// A scatter or gather with blocks of unequal lengths; the longest block has this number of
// segments.
Case blocks(Case::Kind kind, int ranks, int segments) {
  Case one = pairwise(ranks, 1);
  one.kind = kind;
  if (kind == Case::Kind::gather) one.residual = one.totals = false;
  one.piece = 0;
  one.format.codec = kernels::Codec::float32;
  one.seed = 2;
  one.count = 1;
  const auto longest = [&] {
    std::uint64_t most = 0;
    for (int member = 0; member < ranks; ++member) most = std::max(most, one.chunk(member).count);
    return most;
  };
  while (longest() < 4096 * std::uint64_t(segments) - 100) one.count += 50;
  return one;
}
Case bruck(int ranks) {
  Case one = pairwise(ranks, 1);
  one.kind = Case::Kind::bruck;
  one.piece = 0;
  return one;
}
Case neighbors(int ranks, Peers peers, int segments) {
  Case one = pairwise(ranks, 1);
  one.kind = Case::Kind::neighbors;
  one.piece = 0;
  one.format.codec = kernels::Codec::float32;
  one.count = 16384 * std::uint64_t(segments) - 9;
  one.peers = peers;
  one.residual = one.totals = false;
  return one;
}

// Ranks that agree on the maxima of so many words each, by Exchange over an MPI in memory: a
// communicator is the number of the rank.
class Agreement final : public test::Ranks {
 public:
  Agreement(int ranks, std::size_t words) : words_(std::size_t(ranks)), of_(std::size_t(ranks)) {
    for (std::size_t me = 0; me < words_.size(); ++me)
      for (std::size_t i = 0; i < words; ++i) words_[me].push_back((i * 7 + me * 5) % 11);
    for (std::size_t i = 0; i < words; ++i) {
      want_.push_back(0);
      for (const auto& theirs : words_) want_[i] = std::max(want_[i], theirs[i]);
    }
    now_ = this;
    api_.Comm_size = [](mpi::Comm, int* size) { return *size = int(now_->of_.size()), 0; };
    api_.Comm_rank = [](mpi::Comm comm, int* rank) { return *rank = int(comm), 0; };
    api_.Comm_get_attr = [](mpi::Comm, int, void*, int* found) { return *found = 0, 0; };
    api_.Irecv = [](void* data, int words, mpi::Datatype, int from, int tag, mpi::Comm comm,
                    mpi::Request* request) {
      return int(now_->end(comm).receive(from, comm::Tag(tag), data, std::size_t(words) * 8,
                                         *request) != Status::ok);
    };
    api_.Isend = [](const void* data, int words, mpi::Datatype, int to, int tag, mpi::Comm comm,
                    mpi::Request* request) {
      return int(now_->end(comm).send(to, comm::Tag(tag), data, std::size_t(words) * 8, *request) !=
                 Status::ok);
    };
    api_.Test = [](mpi::Request* request, int* done, mpi::MessageStatus*) {
      if (now_->network_->abandoned()) return 1;
      *done = 1;
      auto& end = now_->end(mpi::Comm(now_->network_->owner(*request)));
      const Status status = end.wait(*request);
      *request = mpi::abi.request_null;
      return int(status != Status::ok);
    };
    api_.Iprobe = [](int, int, mpi::Comm, int* found, mpi::MessageStatus*) {
      return *found = 0, 0;
    };
    api_.Cancel = api_.Request_free = [](mpi::Request* request) {
      return *request = mpi::abi.request_null, 0;
    };
    api_.Error_string = [](int, char* text, int* length) { return *text = 0, *length = 0, 0; };
    api_.Error_class = [](int code, int* known) { return *known = code, 0; };
  }
  int size() const override { return int(of_.size()); }
  int rank_of(int member) const override { return member; }
  void prepare(int me, test::Network& network, test::Chance&) override {
    network_ = &network;
    of_[std::size_t(me)] = std::make_unique<test::MemoryExchange>(network, me);
  }
  void run(int me) override {
    const auto statistics = std::make_unique<Statistics>();
    const auto internal = std::make_shared<comm::InternalComm>(api_, mpi::Comm(me));
    comm::Exchange exchange(api_, *statistics);
    exchange.open(internal, 0, 1);
    const Status status = exchange.all_max(words_[std::size_t(me)]);
    if (status != Status::ok && !network_->abandoned()) network_->note(me, failure_text());
    internal->abandon();
  }
  void add_memory(test::Hash& hash) const override {
    for (const auto& words : words_) hash.add(words);
  }
  std::string verdict() override {
    for (const auto& words : words_)
      if (words != want_) return "the ranks agree on different words";
    return {};
  }

 private:
  test::MemoryExchange& end(mpi::Comm comm) { return *of_[std::size_t(comm)]; }

  static inline Agreement* now_ = nullptr;
  mpi::Api api_{};
  test::Network* network_ = nullptr;
  std::vector<std::vector<std::uint64_t>> words_;
  std::vector<std::uint64_t> want_;
  std::vector<std::unique_ptr<test::MemoryExchange>> of_;
};

Run agreement(int ranks, std::size_t words) {
  return [=](const Interleaving& interleaving) {
    test::Chance chance(1);
    Agreement all(ranks, words);
    return run_ranks(all, chance, &interleaving);
  };
}

bool has_time() {
  const char* const expensive = std::getenv("RUN_EXPENSIVE_TESTS");
  return expensive != nullptr && std::string(expensive) == "yes";
}

// full: 1 in the first tier, 2 in the second, 0 nowhere.
struct Row {
  std::string name;
  Run run;
  int full;
};
std::vector<Row> rows() {
  std::vector<Row> rows;
  for (int ranks = 2; ranks <= 4; ++ranks) {
    const std::string of = ", " + std::to_string(ranks) + " ranks";
    for (int segments = 1; segments <= 3; ++segments) {
      const std::string parts =
          of + ", " + std::to_string(segments) + (segments == 1 ? " segment" : " segments");
      const int small = ranks == 2 ? segments == 3 ? 2 : 1 : 0;
      rows.push_back({"pairwise" + parts, run_of(pairwise(ranks, segments)), small});
      rows.push_back(
          {"reduce-scatter" + parts, run_of(blocks(Case::Kind::scatter, ranks, segments)), small});
      rows.push_back(
          {"all-gather" + parts, run_of(blocks(Case::Kind::gather, ranks, segments)), small});
      rows.push_back({"ring" + parts, run_of(neighbors(ranks, Peers::ring, segments)), small});
    }
    rows.push_back({"all peers" + of, run_of(neighbors(ranks, Peers::all, 1)), ranks == 2});
    rows.push_back({"bruck" + of, run_of(bruck(ranks)), ranks == 2 ? 1 : ranks == 3 ? 2 : 0});
    rows.push_back({"agreement" + of, agreement(ranks, 5), ranks == 4 ? 2 : 1});
    rows.push_back({"agreement of many words" + of, agreement(ranks, 40), ranks == 2});
  }
  // The cases below have more segments than message buffers.
  rows.push_back({"pairwise, 2 ranks, 6 segments", run_of(pairwise(2, 6)), 0});
  rows.push_back({"pairwise, 4 ranks, 6 segments", run_of(pairwise(4, 6)), 0});
  return rows;
}

UNIT_TEST(no_interleaving_fails) {
  for (const auto& [name, run, full] : rows()) {
    const bool all = full == 1 || (full == 2 && has_time());
    const Explored explored = all ? explore_all(run) : explore_reduced(run);
    print_message("%-46s %8zu states, %s\n", name.c_str(), explored.states,
                  all ? "all" : "reduced");
    if (!explored.failure.empty()) fail_msg("%s: %s", name.c_str(), explored.failure.c_str());
  }
}

UNIT_TEST(planted_faults_are_found) {
  const std::map<Fault, const char*> faults = {
      {Fault::lost_send, "a message is not sent"},
      {Fault::lost_receive, "a receive is not posted"},
      {Fault::wrong_tag_send, "a send has another tag"},
      {Fault::wrong_tag_receive, "a receive has another tag"},
      {Fault::wrong_peer_send, "a send goes to another rank"},
      {Fault::wrong_peer_receive, "a receive is from another rank"},
      {Fault::short_send, "a message lacks a word"},
      {Fault::short_receive, "a receive has no room"},
      {Fault::doubled_send, "a message is sent twice"},
      {Fault::doubled_receive, "a receive is posted twice"},
      {Fault::swapped_send, "a send is of the buffer before"},
      {Fault::swapped_receive, "a receive is into the buffer before"},
      {Fault::delayed_send, "a send comes after the next one"},
      {Fault::delayed_receive, "a receive comes after the next one"},
      {Fault::reused_send, "a buffer is written while it is sent"},
      {Fault::reused_receive, "a buffer is written while it receives"},
      {Fault::flipped_bit, "a bit changes on the way"},
      {Fault::early_wait, "a wait does not wait"},
      {Fault::forgotten_send, "nobody waits for a send"},
      {Fault::forgotten_receive, "nobody waits for a receive"},
      {Fault::wrong_length, "a wait tells a wrong length"},
  };
  std::size_t found = 0;
  for (const auto& [fault, text] : faults)
    for (const bool reduced : {false, true}) {
      // A fault with a wrong peer needs three ranks. A fault of the order needs several messages of
      // one tag.
      const bool peer = fault == Fault::wrong_peer_send || fault == Fault::wrong_peer_receive;
      const bool order = fault == Fault::delayed_send || fault == Fault::delayed_receive;
      const Case one = peer    ? pairwise(3, 1)
                       : order ? neighbors(2, Peers::ring, 2)
                               : pairwise(2, 2);
      const Planted planted{fault, 4, order ? 0u : 1u};  // 4: the number of the second member
      const Explored explored =
          reduced ? explore_reduced(run_of(one), planted) : explore_all(run_of(one), planted);
      print_message("%-42s %s after %zu states, %s\n", text,
                    explored.failure.empty() ? "NOT FOUND" : explored.failure.c_str(),
                    explored.states, reduced ? "reduced" : "all");
      found += explored.failure.empty() ? 0 : 1;
    }
  assert_int_equal(found, 2 * faults.size());
}

int prepare(void**) {
  comm::poll_without_rest();
  return 0;
}
GROUP_FIXTURES(prepare, nullptr);

}  // namespace
