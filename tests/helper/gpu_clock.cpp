// SPDX-License-Identifier: BSD-3-Clause
#include "tests/helper/gpu_clock.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "comm/message_header.h"
#include "inter/schedule.h"
#include "observe/statistics.h"

namespace slimpi::test {

namespace {

using device::Stream;
using kernels::Format;
using kernels::RandomStream;

RankClock::Stream& of(Stream* stream) {
  return *reinterpret_cast<RankClock::Stream*>(stream);
}

Status copy_bytes(std::size_t bytes, Stream* stream) {
  RankClock::Stream& s = of(stream);
  RankClock& rank = *s.rank;
  rank.begin_work(s);
  rank.call(rank.costs.copy);
  const double seconds = rank.costs.least_copy + double(bytes) / rank.costs.bus;
  if (s.role == comm::StreamRole::h2d)
    rank.queue(s, seconds, rank.in_free, rank.in_busy);
  else
    rank.queue(s, seconds, rank.out_free, rank.out_busy);
  return Status::ok;
}

// A kernel that moves so many bytes, of which some to (`out`) or from (`in`) host memory: it has
// the bus in that direction for its own.
struct Moved {
  double bytes, share;
  Mapped mapped;
  double out = 0, in = 0;
};

void launch(const Moved& moved, Stream* stream) {
  RankClock::Stream& s = of(stream);
  RankClock& rank = *s.rank;
  rank.begin_work(s);
  rank.call(rank.costs.launch);
  const auto use_bus = [&](double bytes, double& free, double& busy) {
    if (bytes == 0) return 0.0;
    rank.kernels_free = std::max(rank.kernels_free, free);
    busy += bytes / moved.mapped.rate;
    return moved.mapped.least + bytes / moved.mapped.rate;
  };
  const double seconds =
      std::max({rank.costs.least_kernel, moved.bytes / (rank.costs.memory * moved.share),
                use_bus(moved.out, rank.out_free, rank.out_busy),
                use_bus(moved.in, rank.in_free, rank.in_busy)});
  rank.queue(s, seconds, rank.kernels_free, rank.kernels_busy);
  if (moved.out != 0) rank.out_free = s.done;
  if (moved.in != 0) rank.in_free = s.done;
}

double floats_and(const Format& format, std::size_t count, double floats, double encoded) {
  return floats * 4 * double(count) + encoded * double(kernels::encoded_bytes(format, count));
}

// The bytes of encoded values that lie in host memory.
double on_bus(Stream* stream, const void* code, const Format& format, std::size_t count) {
  return of(stream).rank->is_staging(code) ? double(kernels::encoded_bytes(format, count)) : 0;
}

void encode(const Format& format, const RandomStream&, const float*, float* residual,
            std::size_t count, std::byte* out, Stream* stream) {
  const Costs& costs = of(stream).rank->costs;
  launch({floats_and(format, count, residual == nullptr ? 1 : 3, 1), costs.encode,
          costs.encode_mapped, on_bus(stream, out, format, count)},
         stream);
}

void decode(const Format& format, const std::byte* in, std::size_t count, float*, Stream* stream) {
  const Costs& costs = of(stream).rank->costs;
  launch({floats_and(format, count, 1, 1), costs.decode, costs.decode_mapped, 0,
          on_bus(stream, in, format, count)},
         stream);
}

void sum_encode(const Format& format, const RandomStream&, const kernels::Addend* addends,
                int addend_count, const float*, float* residual, std::size_t count, std::byte* out,
                float*, Stream* stream) {
  const Costs& costs = of(stream).rank->costs;
  double in = 0;
  for (int i = 0; i < addend_count; ++i) in += on_bus(stream, addends[i].encoded, format, count);
  launch({floats_and(format, count, residual == nullptr ? 2 : 4, addend_count), costs.sum,
          costs.sum_mapped, on_bus(stream, out, format, count), in},
         stream);
}

const kernels::Kernels* clocked_kernels() {
  static const kernels::Kernels table = [] {
    kernels::Kernels made{};  // what is not here the engine does not use
    made.name = "clock";
    made.encode = encode;
    made.decode = decode;
    made.sum_encode = sum_encode;
    return made;
  }();
  return &table;
}

}  // namespace

RankClock::RankClock(const Costs& given) : costs(given) {
  for (std::size_t role = 0; role < streams.size(); ++role)
    streams[role] = {this, comm::StreamRole(role), 0, {}};
}

void RankClock::call(double seconds) {
  now += seconds;
  cpu_busy += seconds;
  calls += 3;  // with push and pop
}

void RankClock::begin_work(Stream& stream) {
  if (!stream.idle) return;
  stream.idle = false;
  now += costs.record + costs.wait;
  cpu_busy += costs.record + costs.wait;
  calls += 2;
}

void RankClock::queue(Stream& stream, double seconds, double& free, double& busy) {
  const double begin = std::max({now, stream.done, free});
  stream.done = free = begin + seconds;
  busy += seconds;
}

namespace {

Status record(RankClock::Stream& stream, double seconds, std::uint64_t* event) {
  stream.rank->call(seconds);
  stream.events.push_back(std::max(stream.rank->now, stream.done));
  *event = stream.events.size();
  return Status::ok;
}

}  // namespace

const device::Device& clocked_device() {
  static const device::Device row = [] {
    device::Device made = device::host();
    made.name = "clock";
    made.staged = true;
    made.copy_nontemporal = nullptr;
    made.staging_bucket = 2048;
    made.kernels = clocked_kernels;
    made.copy = [](void*, const void*, std::size_t bytes, Stream* stream) {
      return copy_bytes(bytes, stream);
    };
    made.record = [](Stream* stream, std::uint64_t* event) {
      return record(of(stream), of(stream).rank->costs.record, event);
    };
    // Waits in the place of the program's poll: an event is reached when it is asked for.
    made.query = [](Stream* stream, std::uint64_t event, bool* reached) {
      RankClock::Stream& s = of(stream);
      *reached = true;
      if (event == 0) return Status::ok;
      s.rank->call(s.rank->costs.query);
      s.rank->calls -= 3;  // how often a program polls is chance
      s.rank->now = std::max(s.rank->now, s.events[event - 1] + s.rank->costs.seen);
      s.idle = event == s.events.size();
      return Status::ok;
    };
    made.wait_event = [](Stream* stream, Stream* other, std::uint64_t event) {
      RankClock::Stream& s = of(stream);
      s.rank->begin_work(s);
      s.rank->call(s.rank->costs.wait);
      s.done = std::max(s.done, of(other).events[event - 1]);
      return Status::ok;
    };
    return made;
  }();
  return row;
}

// Called with the lock. Of the ranks that can go on, the one whose clock is furthest behind.
void ClockedNetwork::pass_on() {
  turn_ = -1;
  for (const auto& [rank, ready] : waiting_)
    if ((turn_ < 0 || ranks_[std::size_t(rank)]->now < ranks_[std::size_t(turn_)]->now) &&
        (ready == nullptr || (*ready)()))
      turn_ = rank;
  if (turn_ < 0 && !waiting_.empty()) std::abort();  // every rank waits for another
  changed_.notify_all();
}

void ClockedNetwork::yield(int rank, const std::function<bool()>& ready) {
  std::unique_lock lock(mutex_);
  waiting_[rank] = &ready;
  pass_on();
  changed_.wait(lock, [&] { return turn_ == rank; });
  waiting_[rank] = nullptr;
}

void ClockedNetwork::run(const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < int(ranks_.size()); ++rank) waiting_[rank] = nullptr;
  for (int rank = 0; rank < int(ranks_.size()); ++rank)
    threads.emplace_back([this, rank, &body] {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return turn_ == rank; });
      }
      body(rank);
      const std::lock_guard lock(mutex_);
      waiting_.erase(rank);
      pass_on();
    });
  {
    const std::lock_guard lock(mutex_);
    pass_on();
  }
  for (std::thread& thread : threads) thread.join();
}

ClockedNetwork::Message& ClockedNetwork::message(const Envelope& envelope, std::size_t& next) {
  Queue& queue = queues_[envelope];
  if (next == queue.messages.size()) queue.messages.emplace_back();
  return queue.messages[next++];
}

// A message begins when both ends are ready for it and both links are free.
void ClockedNetwork::deliver(const Envelope& envelope, Message& message) {
  if (message.sent < 0 || message.posted < 0) return;
  RankClock &from = *ranks_[std::size_t(std::get<0>(envelope))],
            &to = *ranks_[std::size_t(std::get<1>(envelope))];
  const double begin = std::max({message.sent, message.posted, from.send_free, to.receive_free});
  const double end = begin + double(message.bytes) / from.costs.link;
  from.send_free = to.receive_free = end;
  message.arrived = end + from.costs.latency;
  std::memcpy(message.into, message.data, std::min(message.bytes, comm::kHeaderBytes));
}

Status ClockedExchange::send(int to, comm::Tag tag, const void* data, std::size_t bytes,
                             mpi::Request& request) {
  RankClock& clock = *network_.ranks_[std::size_t(rank_)];
  network_.yield(rank_, [] { return true; });
  clock.now += clock.costs.message;
  clock.cpu_busy += clock.costs.message;
  const ClockedNetwork::Envelope envelope{rank_, to, tag};
  std::size_t& next = network_.queues_[envelope].sent;
  posted_.push_back({envelope, next});
  ClockedNetwork::Message& message = network_.message(envelope, next);
  message.data = data;
  message.bytes = bytes;
  message.sent = clock.now;
  network_.deliver(envelope, message);
  request = mpi::Request(posted_.size());
  return Status::ok;
}

Status ClockedExchange::receive(int from, comm::Tag tag, void* data, std::size_t,
                                mpi::Request& request) {
  RankClock& clock = *network_.ranks_[std::size_t(rank_)];
  clock.now += clock.costs.message;
  clock.cpu_busy += clock.costs.message;
  const ClockedNetwork::Envelope envelope{from, rank_, tag};
  std::size_t& next = network_.queues_[envelope].posted;
  posted_.push_back({envelope, next});
  ClockedNetwork::Message& message = network_.message(envelope, next);
  message.into = data;
  message.posted = clock.now;
  network_.deliver(envelope, message);
  request = mpi::Request(posted_.size());
  return Status::ok;
}

Status ClockedExchange::wait(mpi::Request& request, std::size_t* received) {
  if (request == mpi::abi.request_null) return Status::ok;
  const Posted posted = posted_[std::size_t(request) - 1];
  const auto message = [&]() -> const ClockedNetwork::Message& {
    return network_.queues_[posted.envelope].messages[posted.index];
  };
  network_.yield(rank_, [&] { return message().arrived >= 0; });
  RankClock& clock = *network_.ranks_[std::size_t(rank_)];
  clock.now = std::max(clock.now, message().arrived);
  if (received != nullptr) *received = message().bytes;
  request = mpi::abi.request_null;
  return Status::ok;
}

namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Untouched = std::unique_ptr<void, Free>;  // pages that nobody writes take no memory

void run_rank(ClockedNetwork& network, RankClock& clock, int rank, int nodes, std::uint64_t floats,
              int bits) {
  Format format;
  format.codec = kernels::Codec::quantized;
  format.bits = std::uint8_t(bits);
  ClockedExchange exchange(network, rank);
  Statistics statistics;
  const auto pairwise = std::find_if(
      inter::schedules().begin(), inter::schedules().end(),
      [](const inter::Schedule& one) { return std::strcmp(one.name, "pairwise") == 0; });
  const inter::Need need = pairwise->need({format, floats, nodes, comm::SegmentClass::large, true});
  const Untouched messages(std::calloc(need.bytes, 1)), staging(std::calloc(need.bytes, 1));
  clock.staging = static_cast<const std::byte*>(staging.get());
  clock.staging_end = clock.staging + need.bytes;
  const Untouched vector(std::calloc(floats, sizeof(float)));
  inter::Streams streams;
  for (RankClock::Stream& stream : clock.streams) stream.idle = true;
  for (std::size_t role = 0; role < clock.streams.size(); ++role)
    streams.by_role[role] = reinterpret_cast<Stream*>(&clock.streams[role]);
  const inter::Context context{.exchange = exchange,
                               .statistics = statistics,
                               .device = clocked_device(),
                               .kernels = *clocked_kernels(),
                               .streams = streams,
                               .rank = rank,
                               .segment_class = comm::SegmentClass::large,
                               .format = format,
                               .call = 1,
                               .tensor = 0,
                               .seed = 0,
                               .messages = static_cast<std::byte*>(messages.get()),
                               .staging = static_cast<std::byte*>(staging.get()),
                               .partial = nullptr,
                               .totals = nullptr};
  comm::InterNodeGroup group;
  group.index = rank;
  for (int member = 0; member < nodes; ++member) group.peers.push_back(member);
  auto* const values = static_cast<float*>(vector.get());
  const auto layout = pairwise->layout(inter::size_of(context, group, floats));
  if (pairwise->run(context, *layout, group, {0, floats}, values, values, nullptr) != Status::ok)
    std::abort();
}

}  // namespace

Prediction predict(const Costs& costs, int nodes, std::uint64_t floats, int bits) {
  std::vector<std::unique_ptr<RankClock>> ranks;
  for (int rank = 0; rank < nodes; ++rank) ranks.push_back(std::make_unique<RankClock>(costs));
  ClockedNetwork network(ranks);
  network.run(
      [&](int rank) { run_rank(network, *ranks[std::size_t(rank)], rank, nodes, floats, bits); });
  Prediction result;
  for (const auto& rank : ranks) {
    result.seconds = std::max(result.seconds, rank->now);
    result.cpu = std::max(result.cpu, rank->cpu_busy);
    result.kernels = std::max(result.kernels, rank->kernels_busy);
    result.bus = std::max({result.bus, rank->out_busy, rank->in_busy});
    result.calls = std::max(result.calls, rank->calls);
  }
  return result;
}

}  // namespace slimpi::test
