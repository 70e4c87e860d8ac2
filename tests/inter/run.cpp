// SPDX-License-Identifier: BSD-3-Clause
#include "tests/inter/run.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "base/round_up.h"
#include "comm/scatter.h"
#include "inter/chunk_reduction.h"
#include "inter/neighbor_exchange.h"
#include "inter/pairwise.h"
#include "inter/schedule.h"
#include "inter/segment_length.h"
#include "tests/helper/devices/late_device.h"
#include "tests/helper/mpi/memory_exchange.h"
#include "tests/inter/reference.h"

namespace slimpi::test {

namespace {

constexpr std::uint64_t kSeed = 77, kCall = 5, kTensor = 3;
constexpr std::byte kPoison{0xa5};  // of scratch memory

// Returns the rank of a member in the communicator: it differs from the number of the member in the
// group.
int rank_of(int member) {
  return 3 * member + 1;
}

struct Rank {
  Values values;
  std::vector<std::byte> messages, staging;
  std::vector<float> partial;
  std::unique_ptr<Statistics> statistics = std::make_unique<Statistics>();
  std::unique_ptr<MemoryExchange> exchange;
  comm::InterNodeGroup group;
  const device::Device* device = nullptr;
  inter::Streams streams;
};

const inter::Schedule& schedule_of(Case::Kind kind) {
  const std::string name = kind == Case::Kind::pairwise ? "pairwise" : "bruck";
  for (const inter::Schedule& schedule : inter::schedules())
    if (name == schedule.name) return schedule;
  std::abort();
}

inter::Segments pieces_of(const Case& one, const inter::ExchangeSize& size);

// Makes segments of few elements, so that a small vector has several, and as few in flight as
// possible.
inter::Segments short_segments(const Case& one, const inter::ExchangeSize& size) {
  return inter::hook_segments(
      size, one.piece, round_up(inter::message_bytes(one.format, one.piece), std::size_t(64)));
}

inter::Need need_of(const Case& one, int peers, bool staged) {
  if (one.kind == Case::Kind::neighbors)
    return {inter::neighbor_segments(one.format, one.count, peers, staged).total, 0};
  const inter::ExchangeSize size{one.format, one.count, one.ranks, one.segment_class, staged};
  if (one.has_blocks()) {
    std::uint64_t longest = 0;
    for (int member = 0; member < one.ranks; ++member)
      longest = std::max(longest, one.chunk(member).count);
    if (one.kind == Case::Kind::gather) return {inter::gather_segments(size, longest).total, 0};
    const inter::Segments segments = inter::scatter_segments(size, longest);
    return {segments.total, segments.elements};
  }
  if (one.kind == Case::Kind::hook) return {pieces_of(one, size).total, 0};
  if (one.piece != 0) return {short_segments(one, size).total, one.piece};
  return schedule_of(one.kind).need(size);
}

// Sends this rank's values. The result is the sum of the decoded values of this rank and of its
// peers.
class Add final : public inter::PeerCodec {
 public:
  Add(const inter::Context& context, const Case& one, Values& values)
      : context_(context), one_(one), values_(values) {}
  void encode(const comm::Range& part, std::byte* code) override {
    context_.kernels.encode(
        context_.format, inter::random_stream_for(context_, {one_.first, one_.count}, part),
        values_.in() + part.first, nullptr, part.count, code, context_.stream());
  }
  void apply(const comm::Range& part, const std::byte* own,
             std::span<const std::byte* const> theirs) override {
    float* const out = values_.out.data() + part.first;
    context_.kernels.decode(context_.format, own, part.count, out, context_.stream());
    for (const std::byte* const one : theirs)
      context_.kernels.decode_add(context_.format, one, part.count, out, context_.stream());
  }

 private:
  const inter::Context& context_;
  const Case& one_;
  Values& values_;
};

// Encodes as a hook's codec may: floats, and behind them some bytes, whose number differs by
// payload.
class Padded final : public inter::ChunkCodec {
 public:
  using ChunkCodec::ChunkCodec;
  static std::uint64_t most_bytes(std::uint64_t piece) { return piece * sizeof(float) + kMost; }
  void encode(const comm::Range& part, std::byte* payload) override {
    write(part, in_ + part.first, payload);
  }
  void decode(const comm::Range& part, const std::byte* payload) override {
    std::memcpy(out_ + part.first, payload, part.count * sizeof(float));
  }
  void add_and_encode(const comm::Range& part, std::byte* payload,
                      const PayloadFrom& from) override {
    std::vector<float> total(part.count), addend(part.count);
    for (int member = 0; member < int(group_.peers.size()); ++member) {
      const void* const theirs = in_ + part.first;
      std::memcpy(addend.data(), member == group_.index ? theirs : from(member),
                  part.count * sizeof(float));
      for (std::uint64_t i = 0; i < part.count; ++i)
        total[i] = member == 0 ? addend[i] : total[i] + addend[i];
    }
    write(part, total.data(), payload);
    decode(part, payload);
  }

 private:
  static constexpr std::uint64_t kMost = 13;
  void write(const comm::Range& part, const float* values, std::byte* payload) {
    const std::uint64_t bytes = part.count * sizeof(float);
    const std::uint64_t more = (part.first + std::uint64_t(context_.rank)) % (kMost + 1);
    std::memcpy(payload, values, bytes);
    std::memset(payload + bytes, 0x33, more);
    comm::MessageHeader header = inter::message_header(context_, shard_, part, context_.rank);
    header.payload = bytes + more;
    comm::write_header(payload - comm::kHeaderBytes, header);
  }
};

inter::Segments pieces_of(const Case& one, const inter::ExchangeSize& size) {
  return inter::hook_segments(
      size, one.piece,
      round_up(comm::kHeaderBytes + Padded::most_bytes(one.piece) + sizeof(float), 64));
}

inter::Context context_of(const Case& one, int me, Rank& rank) {
  return {.exchange = *rank.exchange,
          .statistics = *rank.statistics,
          .device = *rank.device,
          .kernels = *rank.device->kernels(),
          .streams = rank.streams,
          .rank = rank_of(me),
          .segment_class = one.segment_class,
          .format = one.format,
          .call = kCall,
          .tensor = kTensor,
          .seed = kSeed,
          .messages = rank.messages.data(),
          .staging = rank.device->staged ? rank.staging.data() : rank.messages.data(),
          .partial = rank.partial.data(),
          .totals = one.totals ? rank.values.totals.data() : nullptr};
}

void run_rank(const Case& one, int me, Rank& rank) {
  const inter::Context context = context_of(one, me, rank);
  const comm::Range shard{one.first, one.count};
  Values& values = rank.values;
  if (one.kind == Case::Kind::neighbors) {
    std::vector<int> ranks;
    for (const int member : peers_of(one, me)) ranks.push_back(rank_of(member));
    Add add(context, one, values);
    (void)inter::run_neighbor_exchange(context, shard, ranks, add);
    return;
  }
  if (one.kind == Case::Kind::scatter) {
    std::vector<comm::Range> chunks;
    for (int member = 0; member < one.ranks; ++member) chunks.push_back(one.chunk(member));
    inter::Context to_result = context;
    if (one.in_place) to_result.totals = values.out.data() + chunks[std::size_t(me)].first;
    (void)inter::run_pairwise_scatter(to_result, rank.group, shard, chunks, values.in(),
                                      one.residual ? values.residual.data() : nullptr);
    return;
  }
  if (one.kind == Case::Kind::gather) {
    comm::Gather gather(std::pmr::get_default_resource());
    for (int member = 0; member < one.ranks; ++member) {
      gather.blocks.push_back(one.chunk(member));
      gather.places.push_back(one.place(me, member));
    }
    const float* const in = one.in_place ? values.out.data() + one.place(me, me)
                                         : values.source.data() + one.chunk(me).first;
    (void)inter::run_pairwise_gather(context, rank.group, gather, gather.blocks, in,
                                     values.out.data());
    return;
  }
  if (one.kind == Case::Kind::hook) {
    inter::Context by_hook = context;
    by_hook.hook_bytes = Padded::most_bytes(one.piece);
    const inter::ExchangeSize size = inter::size_of(context, rank.group, shard.count);
    const inter::SegmentedLayout layout(size, pieces_of(one, size));
    Padded codec(by_hook, rank.group, shard, 0, values.in(), values.out.data(), nullptr);
    (void)inter::run_pairwise(by_hook, layout, rank.group.peers, shard, codec);
    return;
  }
  const inter::Schedule& schedule = schedule_of(one.kind);
  const inter::ExchangeSize size = inter::size_of(context, rank.group, shard.count);
  const auto layout =
      one.piece == 0 ? schedule.layout(size)
                     : std::make_unique<inter::SegmentedLayout>(size, short_segments(one, size));
  (void)schedule.run(context, *layout, rank.group, shard, values.in(), values.out.data(),
                     one.residual ? values.residual.data() : nullptr);
}

void prepare(const Case& one, int me, Network& network, Chance& chance, Rank& rank) {
  rank.values = first_values(one, me);
  const bool staged = me < 32 && (one.staged >> me & 1) != 0;
  rank.device = staged ? &late_device(chance) : &device::host();
  if (staged)
    for (device::Stream*& stream : rank.streams.by_role)
      (void)rank.device->open_stream(*rank.device, &stream);
  const int peers = one.kind == Case::Kind::neighbors ? int(peers_of(one, me).size()) : 0;
  const inter::Need need = need_of(one, peers, staged);
  rank.messages.assign(need.bytes, kPoison);
  rank.staging.assign(staged ? need.bytes : 0, std::byte(0x5a));
  rank.partial.assign(need.partial, -7);
  rank.exchange = std::make_unique<MemoryExchange>(network, rank_of(me));
  rank.group.index = me;
  for (int member = 0; member < one.ranks; ++member) rank.group.peers.push_back(rank_of(member));
}

}  // namespace

namespace {

class ChosenSteps final : public Fibers::Chooser {
 public:
  ChosenSteps(const Interleaving& interleaving, const Fibers& fibers, const Network& network,
              const Ranks& ranks)
      : interleaving_(interleaving), fibers_(fibers), network_(network), ranks_(ranks) {}
  std::size_t choose(std::size_t steps) override { return interleaving_.choose(steps, state_); }

 private:
  std::uint64_t hash() const {
    Hash hash;
    hash.add(fibers_.positions());
    hash.add(network_.state());
    ranks_.add_memory(hash);
    return hash.value();
  }

  const std::function<std::uint64_t()> state_ = [this] { return hash(); };
  const Interleaving& interleaving_;
  const Fibers& fibers_;
  const Network& network_;
  const Ranks& ranks_;
};

// The ranks of an exchange, as Case describes it.
class CaseRanks final : public Ranks {
 public:
  explicit CaseRanks(const Case& one) : one_(one), ranks_(std::size_t(one.ranks)) {}
  int size() const override { return one_.ranks; }
  int rank_of(int member) const override { return test::rank_of(member); }
  void prepare(int me, Network& network, Chance& chance) override {
    test::prepare(one_, me, network, chance, ranks_[std::size_t(me)]);
  }
  void run(int me) override { run_rank(one_, me, ranks_[std::size_t(me)]); }
  void add_memory(Hash& hash) const override {
    for (const Rank& rank : ranks_) {
      hash.add(rank.values.out);
      hash.add(rank.values.residual);
      hash.add(rank.values.totals);
      hash.add(rank.messages);
      hash.add(rank.partial);
    }
  }
  Busiest busiest() const {
    Busiest most;
    const auto raise = [](std::size_t& to, std::size_t by) { to = std::max(to, by); };
    for (const Rank& rank : ranks_) {
      const auto written = std::find_if(rank.messages.rbegin(), rank.messages.rend(),
                                        [](std::byte one) { return one != kPoison; });
      raise(most.messages, rank.exchange->messages_sent());
      raise(most.bytes, rank.exchange->bytes_sent());
      raise(most.peers, rank.exchange->peers());
      raise(most.scratch, std::size_t(rank.messages.rend() - written));
    }
    return most;
  }
  std::string verdict() override {
    std::vector<Values> got;
    for (Rank& rank : ranks_) got.push_back(std::move(rank.values));
    return compare(one_, kSeed, kCall, test::rank_of, got);
  }

 private:
  const Case& one_;
  std::vector<Rank> ranks_;
};

}  // namespace

std::string run_ranks(Ranks& ranks, Chance& chance, const Interleaving* interleaving) {
  Fibers fibers(chance);
  Network network(fibers, chance);
  std::optional<ChosenSteps> steps;
  if (interleaving != nullptr) {
    fibers.set_chooser(&steps.emplace(*interleaving, fibers, network, ranks));
    network.pause_always();
    std::vector<int> numbers;
    for (int me = 0; me < ranks.size(); ++me) numbers.push_back(ranks.rank_of(me));
    network.plant(interleaving->planted, numbers);
  }
  for (int me = 0; me < ranks.size(); ++me) {
    ranks.prepare(me, network, chance);
    fibers.add([me, &ranks] { ranks.run(me); });
  }
  std::string why;
  const bool ended = fibers.run(network.events(), 20'000'000, &why);
  close_late_streams();
  if (!ended && interleaving != nullptr) {
    network.abandon();
    fibers.finish();
    if (network.failure().empty() && why == "stopped") return {};
  }
  if (!network.failure().empty()) return network.failure();
  if (!ended) return why;
  if (network.left() != 0) return std::to_string(network.left()) + " messages were left over";
  return ranks.verdict();
}

std::string run_case(const Case& one, const Interleaving* interleaving, Busiest* busiest) {
  Chance chance(one.seed ^ 0x5eed);
  CaseRanks ranks(one);
  device::set_mpi_takes_device_memory(one.gpu_aware);
  const std::string failure = run_ranks(ranks, chance, interleaving);
  if (busiest != nullptr) *busiest = ranks.busiest();
  return failure;
}

}  // namespace slimpi::test
