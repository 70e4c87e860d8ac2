// SPDX-License-Identifier: BSD-3-Clause
// Who talks to whom: weights are symmetric, rows sum to one, and pairs are mutual at every call.
#include "inter/neighbor_exchange.h"

#include <math.h>

#include <algorithm>

#include "tests/helper/cmocka_cxx.h"

using namespace slimpi;
using inter::Mixing;
using inter::mixing;

namespace {

constexpr int kMost = 9;
constexpr Peers kKinds[] = {Peers::ring, Peers::shift_one, Peers::all};

// W_me,other as mixing says it.
double weight(Peers kind, int group_size, int me, int other, std::uint64_t round) {
  const Mixing row = mixing(kind, group_size, me, round);
  if (other == me) return row.own;
  double sum = 0;
  for (const Mixing::Peer& peer : row.peers)
    if (peer.member == other) sum += peer.weight;
  return sum;
}

void symmetric(void**) {
  for (const Peers kind : kKinds)
    for (int group_size = 1; group_size <= kMost; ++group_size)
      for (std::uint64_t round = 0; round < 20; ++round)
        for (int a = 0; a < group_size; ++a)
          for (int b = 0; b < a; ++b)
            assert_true(weight(kind, group_size, a, b, round) ==
                        weight(kind, group_size, b, a, round));
}

void rows_sum_to_one(void**) {
  for (const Peers kind : kKinds)
    for (int group_size = 1; group_size <= kMost; ++group_size)
      for (std::uint64_t round = 0; round < 20; ++round)
        for (int me = 0; me < group_size; ++me) {
          double sum = 0;
          for (int other = 0; other < group_size; ++other) {
            const double w = weight(kind, group_size, me, other, round);
            assert_true(w >= 0);
            sum += w;
          }
          assert_true(fabs(sum - 1) < 1e-15);
        }
}

void each_peer_once(void**) {
  for (const Peers kind : kKinds)
    for (int group_size = 1; group_size <= kMost; ++group_size)
      for (int me = 0; me < group_size; ++me) {
        const Mixing row = mixing(kind, group_size, me, 5);
        for (int other = 0; other < group_size; ++other) {
          int times = 0;
          for (const Mixing::Peer& peer : row.peers) times += peer.member == other ? 1 : 0;
          assert_true(times <= (other == me ? 0 : 1));
        }
      }
}

void ring(void**) {
  const Mixing row = mixing(Peers::ring, 5, 0, 7);
  assert_int_equal(row.peers.size(), 2);
  assert_int_equal(row.peers[0].member, 4);
  assert_int_equal(row.peers[1].member, 1);
  assert_true(row.peers[0].weight == 1.0 / 3 && fabs(row.own - 1.0 / 3) < 1e-15);
  const Mixing two = mixing(Peers::ring, 2, 1, 0);
  assert_int_equal(two.peers.size(), 1);
  assert_true(two.peers[0].member == 0 && two.peers[0].weight == 0.5 && two.own == 0.5);
  assert_true(mixing(Peers::ring, 1, 0, 0).peers.empty());
}

void all(void**) {
  const Mixing row = mixing(Peers::all, 4, 2, 0);
  assert_int_equal(row.peers.size(), 3);
  for (int i = 0; i < 3; ++i) assert_int_equal(row.peers[std::size_t(i)].member, i < 2 ? i : 3);
  assert_true(row.own == 0.25);
}

// Every pair meets exactly once in a turn; of an even number nobody ever sits out, of an odd number
// one does, each in his turn.
void shift_one(void**) {
  for (int group_size = 2; group_size <= kMost; ++group_size) {
    const int step = group_size % 2 == 0 ? group_size - 1 : group_size;
    int met[kMost][kMost] = {}, sat_out[kMost] = {};
    for (int round = 0; round < step; ++round)
      for (int me = 0; me < group_size; ++me) {
        const Mixing row = mixing(Peers::shift_one, group_size, me, std::uint64_t(round));
        assert_true(row.peers.size() <= 1);
        if (row.peers.empty())
          ++sat_out[me];
        else
          ++met[me][row.peers[0].member];
      }
    for (int a = 0; a < group_size; ++a) {
      assert_int_equal(sat_out[a], group_size % 2);
      for (int b = 0; b < group_size; ++b) assert_int_equal(met[a][b], a == b ? 0 : 1);
    }
  }
}

void far_rounds(void**) {
  const std::uint64_t far = UINT64_MAX / 7 * 7;  // a multiple of the turn
  assert_int_equal(mixing(Peers::shift_one, 8, 3, far).peers[0].member,
                   mixing(Peers::shift_one, 8, 3, 0).peers[0].member);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(symmetric),
                              cmocka_unit_test(rows_sum_to_one),
                              cmocka_unit_test(each_peer_once),
                              cmocka_unit_test(ring),
                              cmocka_unit_test(all),
                              cmocka_unit_test(shift_one),
                              cmocka_unit_test(far_rounds)};
  return cmocka_run_group_tests_name("peers", tests, nullptr, nullptr) != 0;
}
