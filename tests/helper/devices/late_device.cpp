// SPDX-License-Identifier: BSD-3-Clause
#include "tests/helper/devices/late_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace slimpi::test {

namespace {

using device::Stream;
using kernels::Format;
using kernels::RandomStream;

struct LateStream {
  struct Piece {
    std::function<void()> work = {};
    LateStream* after = nullptr;  // the stream whose event is waited for
    std::uint64_t event = 0;
    bool ends_event = false;
  };
  std::deque<Piece> queue;
  std::uint64_t recorded = 0, reached = 0;

  static LateStream& of(Stream* stream) { return *reinterpret_cast<LateStream*>(stream); }
  void run_one() {
    if (queue.empty()) return;
    const Piece& next = queue.front();
    if (next.after != nullptr && next.after->reached < next.event) return next.after->run_one();
    if (next.work) next.work();
    if (next.ends_event) ++reached;
    queue.pop_front();
  }
};

std::vector<std::unique_ptr<LateStream>> g_streams;
Chance* g_chance = nullptr;
bool g_lazy = false;  // nothing is done that is not asked for

void queue(Stream* stream, auto work) {
  LateStream::of(stream).queue.push_back({.work = std::move(work)});
}

const kernels::Kernels& real() {
  return *device::host().kernels();
}

Status open_stream(const device::Location&, Stream** stream) {
  g_streams.push_back(std::make_unique<LateStream>());
  *stream = reinterpret_cast<Stream*>(g_streams.back().get());
  return Status::ok;
}

Status copy(void* to, const void* from, std::size_t bytes, Stream* stream) {
  queue(stream, [=] { std::memcpy(to, from, bytes); });
  return Status::ok;
}

Status record(Stream* stream, std::uint64_t* event) {
  LateStream& late = LateStream::of(stream);
  late.queue.push_back({.ends_event = true});
  *event = ++late.recorded;
  return Status::ok;
}

Status query(Stream* stream, std::uint64_t event, bool* reached) {
  for (std::size_t pieces = g_lazy ? 0 : g_chance->below(4); pieces > 0; --pieces)
    g_streams[g_chance->below(g_streams.size())]->run_one();
  if (g_chance->one_in(2)) LateStream::of(stream).run_one();
  *reached = LateStream::of(stream).reached >= event;
  return Status::ok;
}

Status wait_event(Stream* stream, Stream* other, std::uint64_t event) {
  LateStream::of(stream).queue.push_back({.after = &LateStream::of(other), .event = event});
  return Status::ok;
}

void encode(const Format& format, const RandomStream& random, const float* in, float* residual,
            std::size_t count, std::byte* out, Stream* stream) {
  queue(stream, [=] { real().encode(format, random, in, residual, count, out, nullptr); });
}

void decode(const Format& format, const std::byte* in, std::size_t count, float* out,
            Stream* stream) {
  queue(stream, [=] { real().decode(format, in, count, out, nullptr); });
}

void decode_add(const Format& format, const std::byte* in, std::size_t count, float* out,
                Stream* stream) {
  queue(stream, [=] { real().decode_add(format, in, count, out, nullptr); });
}

void sum_encode(const Format& format, const RandomStream& random, const kernels::Addend* addends,
                int addend_count, const float* carry, float* residual, std::size_t count,
                std::byte* out, float* result, Stream* stream) {
  const std::vector<kernels::Addend> kept(addends, addends + addend_count);
  queue(stream, [=] {
    real().sum_encode(format, random, kept.data(), addend_count, carry, residual, count, out,
                      result, nullptr);
  });
}

const kernels::Kernels* late_kernels() {
  static const kernels::Kernels table = [] {
    kernels::Kernels late{};  // what is not here no schedule may use
    late.name = "late";
    late.encode = encode;
    late.decode = decode;
    late.decode_add = decode_add;
    late.sum_encode = sum_encode;
    return late;
  }();
  return &table;
}

}  // namespace

const device::Device& late_device(Chance& chance) {
  static const device::Device row = [] {
    device::Device late = device::host();
    late.name = "late";
    late.staged = true;
    late.open_stream = open_stream;
    late.close_stream = [](Stream*) {};
    late.copy = copy;
    late.record = record;
    late.query = query;
    late.wait_event = wait_event;
    late.kernels = late_kernels;
    late.copy_nontemporal = nullptr;
    late.staging_bucket = 1024;  // of longer buckets it copies
    return late;
  }();
  g_chance = &chance;
  g_lazy = chance.one_in(2);
  return row;
}

void close_late_streams() {
  g_streams.clear();
}

}  // namespace slimpi::test
