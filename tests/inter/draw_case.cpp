// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "tests/helper/base/chance.h"
#include "tests/inter/run.h"

namespace slimpi::test {

namespace {

kernels::Format draw_format(Chance& chance) {
  kernels::Format format;
  format.codec =
      chance.of({kernels::Codec::float32, kernels::Codec::fp16, kernels::Codec::bf16,
                 kernels::Codec::quantized, kernels::Codec::quantized, kernels::Codec::packed});
  format.bits = chance.of<std::uint8_t>({1, 2, 3, 4, 8, 12, 16});
  format.bucket = chance.of({0u, 64u, 100u, 512u, 2048u});
  format.stochastic = chance.one_in(2);
  if (format.codec == kernels::Codec::packed) {
    format.bits = chance.of<std::uint8_t>({2, 3, 5, 8, 16, 32});
    format.bucket = chance.of({64u, 128u, 1024u, 4096u});
  }
  return format;
}

// Draws a small count: about the number of ranks, or of one block for each rank.
std::uint64_t draw_small(Chance& chance, const Case& one) {
  const std::uint64_t ranks = std::uint64_t(one.ranks);
  const std::uint64_t blocks = ranks * comm::chunk_alignment(one.format);
  switch (chance.below(9)) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 2:
      return ranks - 1;
    case 3:
      return ranks;
    case 4:
      return blocks - 1;
    case 5:
      return blocks;
    case 6:
      return blocks + 1;
    default:
      return 2 * chance.below(2000) + 1;
  }
}

// Draws a count with more segments or pieces than message buffers. Ranks are few and values take
// many bits, so the case takes little time.
std::uint64_t draw_long(Chance& chance, Case& one) {
  one.format.codec =
      chance.of({kernels::Codec::float32, kernels::Codec::fp16, kernels::Codec::quantized});
  one.format.bits = 8;
  if (one.format.bucket == 0 && chance.one_in(2)) one.format.bucket = 64;
  if (one.kind == Case::Kind::bruck) {
    one.ranks = int(3 + chance.below(5));
    return 20'000 * std::uint64_t(one.ranks) + chance.below(200'000);
  }
  one.ranks = int(2 + chance.below(3));
  // Long segments. Buckets of 512 are fast.
  if (one.kind != Case::Kind::neighbors && chance.one_in(3)) {
    one.segment_class = comm::SegmentClass::large;
    one.format.bucket = 512;
    return std::uint64_t(one.ranks) * (100'000 + chance.below(1'600'000));
  }
  return 1 + chance.below(one.kind == Case::Kind::neighbors ? 300'000 : 150'000);
}

}  // namespace

Case draw_case(Case::Kind kind, std::uint64_t seed) {
  Chance chance(seed * 4 + std::uint64_t(kind));
  Case one;
  one.kind = kind;
  one.seed = seed;
  one.ranks = int(2 + chance.below(16));
  one.format = draw_format(chance);
  one.segment_class = chance.of({comm::SegmentClass::small, comm::SegmentClass::large});
  one.count = chance.one_in(20) ? draw_long(chance, one) : draw_small(chance, one);
  one.first = chance.one_in(2) ? 0 : 2048 * chance.below(50);
  one.peers = chance.of({Peers::ring, Peers::shift_one, Peers::all});
  one.in_place = kind != Case::Kind::neighbors && chance.one_in(2);
  one.residual = kind != Case::Kind::neighbors && chance.one_in(2);
  one.totals = kind != Case::Kind::neighbors && chance.one_in(3);
  if (kind == Case::Kind::scatter) one.totals = !one.in_place;
  if (kind == Case::Kind::gather) {
    one.residual = one.totals = false;
    one.first = 0;
  }
  one.staged = chance.of<std::uint32_t>({0, 0, ~0u, std::uint32_t(chance.next())});
  one.gpu_aware = chance.one_in(3);
  if (kind == Case::Kind::hook) {
    one.format.codec = kernels::Codec::float32;
    one.segment_class = comm::SegmentClass::small;
    one.residual = one.totals = false;
    one.staged = 0;
    one.piece = chance.of<std::uint64_t>({1, 64, 1000, 20'000});
    if (one.piece < 64) one.count %= 300;
  }
  return one;
}

Case draw_staged_ring(Case::Kind kind, std::uint64_t seed) {
  Chance chance(seed * 4 + std::uint64_t(kind));
  Case one;
  one.kind = kind;
  one.seed = seed;
  one.ranks = int(3 + chance.below(2));
  one.format.codec = chance.of({kernels::Codec::float32, kernels::Codec::fp16});
  one.format.bucket = 512;
  one.segment_class = comm::SegmentClass::large;
  const bool pairwise = kind != Case::Kind::neighbors;
  one.count = pairwise ? std::uint64_t(one.ranks) * (1'300'000 + chance.below(300'000))
                       : 200'000 + chance.below(600'000);
  one.peers = Peers::all;
  one.residual = pairwise && chance.one_in(2);
  one.totals = pairwise && chance.one_in(2);
  one.in_place = kind == Case::Kind::scatter && !one.totals;
  if (kind == Case::Kind::gather) one.residual = one.totals = false;
  one.staged = ~0u;
  return one;
}

// Every fourth block is empty, and the lengths of the other blocks differ by a lot.
comm::Range Case::chunk(int member) const {
  if (!has_blocks() || even)
    return comm::chunk_of(count, ranks, member, comm::chunk_alignment(format));
  const auto weight = [&](int of) {
    const std::uint64_t drawn = Chance(seed * 1000 + std::uint64_t(of)).next();
    return drawn % 4 == 0 ? 0 : 1 + drawn / 4 % 7;
  };
  std::uint64_t before = 0, all = 0;
  for (int of = 0; of < ranks; ++of) {
    if (of < member) before += weight(of);
    all += weight(of);
  }
  if (all == 0) return member == 0 ? comm::Range{0, count} : comm::Range{count, 0};
  const std::uint64_t begin = count * before / all, end = count * (before + weight(member)) / all;
  return {begin, end - begin};
}

std::string Case::text() const {
  return std::to_string(ranks) + " ranks, " + std::to_string(count) + " elements, " +
         kernels::row_of(format.codec).name + " bits " + std::to_string(format.bits) + " bucket " +
         std::to_string(format.bucket) + (format.stochastic ? " stochastic" : "") +
         (segment_class == comm::SegmentClass::large ? ", long segments" : "") +
         (residual ? ", residual" : "") + (totals ? ", totals" : "") +
         (in_place ? ", in place" : "") + ", staged " + std::to_string(staged) +
         (gpu_aware ? ", GPU-aware" : "");
}

}  // namespace slimpi::test
