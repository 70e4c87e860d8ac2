// SPDX-License-Identifier: BSD-3-Clause
#include "tests/inter/reference.h"

#include <algorithm>
#include <cstring>

#include "inter/neighbor_exchange.h"
#include "tests/kernels/data.h"

namespace slimpi::test {

namespace {

// Makes the values that a message of `count` values decodes to. Updates the residual unless it is
// null.
class Coder {
 public:
  Coder(const Case& one, std::uint64_t seed, std::uint64_t call)
      : one_(one), seed_(seed), call_(call) {}

  std::vector<float> decoded(int rank, comm::Range part, const float* in, float* residual) const {
    const kernels::Kernels& kernels = *device::host().kernels();
    std::vector<std::byte> code(kernels::encoded_bytes(one_.format, part.count));
    std::vector<float> out(part.count);
    kernels.encode(one_.format, {seed_, std::uint32_t(rank), call_, one_.first + part.first}, in,
                   residual, part.count, code.data(), nullptr);
    kernels.decode(one_.format, code.data(), part.count, out.data(), nullptr);
    return out;
  }

 private:
  const Case& one_;
  const std::uint64_t seed_, call_;
};

void reduce(const Case& one, const Coder& coder, int (*rank_of)(int), std::vector<Values>& all) {
  for (int owner = 0; owner < one.ranks; ++owner) {
    const comm::Range chunk = one.chunk(owner);
    if (chunk.count == 0) continue;
    std::vector<float> total;
    const auto residual = [&](int member) {
      return one.residual ? all[std::size_t(member)].residual.data() + chunk.first : nullptr;
    };
    for (int member = 0; member < one.ranks; ++member) {
      const float* const in = all[std::size_t(member)].source.data() + chunk.first;
      std::vector<float> addend(in, in + chunk.count);
      if (member != owner) addend = coder.decoded(rank_of(member), chunk, in, residual(member));
      if (member == 0)
        total = addend;
      else
        for (std::size_t i = 0; i < total.size(); ++i) total[i] += addend[i];
    }
    if (one.kind == Case::Kind::scatter) {
      Values& values = all[std::size_t(owner)];
      std::copy(
          total.begin(), total.end(),
          one.in_place ? values.out.begin() + std::ptrdiff_t(chunk.first) : values.totals.begin());
      continue;
    }
    const std::vector<float> out =
        coder.decoded(rank_of(owner), chunk, total.data(), residual(owner));
    for (Values& values : all)
      std::copy(out.begin(), out.end(), values.out.begin() + std::ptrdiff_t(chunk.first));
    if (one.totals) std::copy(total.begin(), total.end(), all[std::size_t(owner)].totals.begin());
  }
}

void gather(const Case& one, const Coder& coder, int (*rank_of)(int), std::vector<Values>& all) {
  for (int owner = 0; owner < one.ranks; ++owner) {
    const comm::Range chunk = one.chunk(owner);
    if (chunk.count == 0) continue;
    const std::vector<float> out = coder.decoded(
        rank_of(owner), chunk, all[std::size_t(owner)].source.data() + chunk.first, nullptr);
    for (int me = 0; me < one.ranks; ++me)
      std::copy(out.begin(), out.end(),
                all[std::size_t(me)].out.begin() + std::ptrdiff_t(one.place(me, owner)));
  }
}

void add_peers(const Case& one, const Coder& coder, int (*rank_of)(int), std::vector<Values>& all) {
  std::vector<std::vector<float>> decoded;
  for (int member = 0; member < one.ranks; ++member)
    decoded.push_back(coder.decoded(rank_of(member), {0, one.count},
                                    all[std::size_t(member)].source.data(), nullptr));
  for (int me = 0; me < one.ranks; ++me) {
    std::vector<float>& out = all[std::size_t(me)].out;
    out = decoded[std::size_t(me)];
    for (const int peer : peers_of(one, me))
      for (std::size_t i = 0; i < out.size(); ++i) out[i] += decoded[std::size_t(peer)][i];
  }
}

std::string difference(const char* what, int me, const std::vector<float>& want,
                       const std::vector<float>& got) {
  for (std::size_t i = 0; i < want.size(); ++i)
    if (to_bits(want[i]) != to_bits(got[i]))
      return "member " + std::to_string(me) + ": " + what + "[" + std::to_string(i) + "] is " +
             std::to_string(got[i]) + ", not " + std::to_string(want[i]);
  return {};
}

}  // namespace

Values first_values(const Case& one, int me) {
  Values values;
  const auto draw = [&](std::uint64_t which, float scale) {
    std::vector<float> drawn(one.count);
    std::uint64_t bits = mixed(one.seed * 64 + which * 32 + std::uint64_t(me));
    for (float& value : drawn) {
      bits = bits * 6364136223846793005u + 1442695040888963407u;
      value = scale * (float(bits >> 40) * 0x1p-23f - 1);  // below 1, exact in a float
    }
    return drawn;
  };
  values.source = draw(0, 1);
  values.out = one.in_place ? values.source : std::vector<float>(one.count, -7);
  if (one.kind == Case::Kind::gather) {
    values.out.assign(one.count + std::uint64_t(one.ranks) * Case::kGap, -7);
    const comm::Range own = one.chunk(me);
    if (one.in_place)
      std::copy_n(values.source.begin() + std::ptrdiff_t(own.first), own.count,
                  values.out.begin() + std::ptrdiff_t(one.place(me, me)));
  }
  values.residual = one.residual ? draw(1, 0.01f) : std::vector<float>();
  if (one.totals) values.totals.assign(one.chunk(me).count, -7);
  values.in_place = one.in_place;
  return values;
}

std::vector<int> peers_of(const Case& one, int me) {
  std::vector<int> members;
  for (const auto& peer : inter::mixing(one.peers, one.ranks, me, one.seed).peers)
    members.push_back(peer.member);
  return members;
}

std::string compare(const Case& one, std::uint64_t seed, std::uint64_t call, int (*rank_of)(int),
                    const std::vector<Values>& got) {
  std::vector<Values> want;
  for (int me = 0; me < one.ranks; ++me) want.push_back(first_values(one, me));
  const Coder coder(one, seed, call);
  (one.kind == Case::Kind::neighbors ? add_peers
   : one.kind == Case::Kind::gather  ? gather
                                     : reduce)(one, coder, rank_of, want);
  std::string found;
  for (int me = 0; me < one.ranks && found.empty(); ++me) {
    const Values &wanted = want[std::size_t(me)], &values = got[std::size_t(me)];
    found = difference("result", me, wanted.out, values.out);
    if (found.empty()) found = difference("residual", me, wanted.residual, values.residual);
    if (found.empty()) found = difference("totals", me, wanted.totals, values.totals);
  }
  return found;
}

}  // namespace slimpi::test
