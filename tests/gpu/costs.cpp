// SPDX-License-Identifier: BSD-3-Clause
// Measures the CPU time of the functions of the GPU's device row, the time of a poll and of a round
// trip, and the time of messages by both ways out of the GPU: encoded in pinned memory, or encoded
// in GPU memory and copied. "queued": one of many messages that are queued at once, so that the GPU
// has no pause between them. From these figures inter/message_buffers.h takes the first way.
//
// Usage: costs [--json FILE]. Exits 77 without a GPU.
#include "tests/gpu/json_rows.h"

using namespace slimpi;
using namespace slimpi::test;

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kCalls = 32;
constexpr std::size_t kFloats = std::size_t(1) << 20;  // in 8 bits 1 MiB

device::Stream* g_other = nullptr;
int g_turns = 21, g_queued = 200;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Waits for the event, and returns the number of polls.
std::size_t wait(device::Stream* stream, std::uint64_t event) {
  std::size_t polls = 1;
  for (bool reached = false;; ++polls) {
    check(g_row->query(stream, event, &reached));
    if (reached) return polls;
  }
}

void finish() {
  for (device::Stream* stream : {g_stream, g_other}) {
    std::uint64_t event = 0;
    check(g_row->record(stream, &event));
    wait(stream, event);
  }
}

void report(const char* what, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  std::printf("%-44s %9.2f us\n", what, median * 1e6);
  char row[200];
  std::snprintf(row, sizeof row, "{\"what\": \"%s\", \"seconds\": %.9f}", what, median);
  g_rows.add(row);
}

// Measures the CPU time of a function that queues work.
void measure_calls(const char* what, const std::function<void()>& call) {
  std::vector<double> seconds;
  for (int turn = 0; turn < g_turns; ++turn) {
    const auto start = Clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    seconds.push_back(since(start) / kCalls);
    finish();
  }
  report(what, seconds);
}

// Measures the time of one of many polls, for an event that is reached much later.
void measure_polls(const char* what, float* memory) {
  std::vector<double> seconds;
  for (int turn = 0; turn < g_turns; ++turn) {
    for (int i = 0; i < 4; ++i) g_row->kernels()->fill(memory, 1, kFloats, g_stream);
    std::uint64_t event = 0;
    check(g_row->record(g_stream, &event));
    const auto start = Clock::now();
    const std::size_t polls = wait(g_stream, event);
    seconds.push_back(since(start) / double(polls));
  }
  report(what, seconds);
}

// Measures the time from the first call until the CPU sees the end.
void measure_trip(const char* what, const std::function<void()>& queue, device::Stream* last) {
  std::vector<double> seconds;
  for (int turn = 0; turn < g_turns; ++turn) {
    const auto start = Clock::now();
    queue();
    std::uint64_t event = 0;
    check(g_row->record(last, &event));
    wait(last, event);
    seconds.push_back(since(start));
    finish();
  }
  report(what, seconds);
}

// Measures the time of one of many pieces of work that are queued before the GPU has done the
// first.
void measure_queued(const char* what, const std::function<void()>& queue) {
  std::vector<double> seconds;
  for (int turn = 0; turn < g_turns; ++turn) {
    const auto start = Clock::now();
    for (int i = 0; i < g_queued; ++i) queue();
    finish();
    seconds.push_back(since(start) / g_queued);
  }
  report(what, seconds);
}

// Measures both ways between the GPU and a message of so many bytes. `staging` has room for two
// messages.
void measure_message(std::size_t bytes, float* values, std::byte* encoded, std::byte* staging) {
  const kernels::Format format = quantized(8, 512, false);
  const kernels::Kernels& table = *g_row->kernels();
  const std::size_t room = kernels::encoded_bytes(format, bytes);
  const auto copied = [&](device::Stream* after, void* to, const void* from) {
    std::uint64_t event = 0;
    device::Stream* const before = after == g_other ? g_stream : g_other;
    if (after == g_other) {
      check(g_row->record(before, &event));
      check(g_row->wait_event(after, before, event));
    }
    check(g_row->copy(to, from, bytes, g_other));
    if (after == g_other) return;
    check(g_row->record(before, &event));
    check(g_row->wait_event(after, before, event));
  };
  char what[100];
  const auto trip = [&](const char* text, const std::function<void()>& queue,
                        device::Stream* last) {
    std::snprintf(what, sizeof what, "%zu KiB, %s", bytes >> 10, text);
    measure_trip(what, queue, last);
  };
  trip(
      "encode and copy",
      [&] {
        table.encode(format, {}, values, nullptr, bytes, encoded, g_stream);
        copied(g_other, staging, encoded);
      },
      g_other);
  trip(
      "copy and decode",
      [&] {
        copied(g_stream, encoded, staging);
        table.decode(format, encoded, bytes, values, g_stream);
      },
      g_stream);
  const kernels::Addend addends[] = {{nullptr, values}, {staging, nullptr}};
  const struct {
    const char* text;
    std::function<void()> queue;
  } ways[] = {
      {"encode in pinned memory",
       [&] { table.encode(format, {}, values, nullptr, bytes, staging, g_stream); }},
      {"decode from pinned memory",
       [&] { table.decode(format, staging, bytes, values, g_stream); }},
      {"sum in pinned memory",
       [&] {
         table.sum_encode(format, {}, addends, 2, nullptr, nullptr, bytes, staging + room, values,
                          g_stream);
       }},
      {"copy to the host", [&] { check(g_row->copy(staging, encoded, bytes, g_stream)); }},
      {"copy from the host", [&] { check(g_row->copy(encoded, staging, bytes, g_stream)); }}};
  for (const auto& way : ways) {
    trip(way.text, way.queue, g_stream);
    std::snprintf(what, sizeof what, "%zu KiB, %s, queued", bytes >> 10, way.text);
    measure_queued(what, way.queue);
  }
}

void measure(float* values, const device::Location& here) {
  void *encoded = nullptr, *staging = nullptr;
  const std::size_t bytes = kernels::encoded_bytes(quantized(8, 512, false), kFloats);
  check(g_row->allocate(here, bytes, device::Place::device, &encoded));
  check(g_row->allocate(here, 2 * bytes, device::Place::staging, &staging));
  std::uint64_t event = 0;
  check(g_row->record(g_other, &event));
  measure_calls("launch", [&] { g_row->kernels()->fill(values, 1, 1024, g_stream); });
  measure_calls("copy of 4 KiB", [&] { check(g_row->copy(staging, encoded, 4096, g_stream)); });
  measure_calls("event", [&] { check(g_row->record(g_stream, &event)); });
  check(g_row->record(g_other, &event));
  measure_calls("wait of a stream", [&] { check(g_row->wait_event(g_stream, g_other, event)); });
  measure_polls("poll of an event", values);
  const auto kernel = [&] { g_row->kernels()->fill(values, 1, 1024, g_stream); };
  measure_trip("kernel and event, until it is seen", kernel, g_stream);
  measure_queued("kernel, queued", kernel);
  for (const std::size_t message : {16 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20})
    measure_message(message, values, static_cast<std::byte*>(encoded),
                    static_cast<std::byte*>(staging));
  g_row->release(staging, device::Place::staging);
  g_row->release(encoded, device::Place::device);
}

}  // namespace

int main(int argc, char** argv) {
  if (const int skipped = gpu_open(); skipped != 0) return skipped;
  device::load_plugins();
  if (argc == 3 && std::strcmp(argv[1], "--json") == 0) g_rows.write_to(argv[2]);
  // Times of the fake driver mean nothing.
  if (gpu_function("slimpi_fake_calls") != nullptr) g_turns = g_queued = 1;
  auto* const values = static_cast<float*>(gpu_take(GPU_DEVICE, kFloats * sizeof(float)));
  const device::Location here = device::locate(values);
  open_row(values);
  check(g_row->open_stream(here, &g_other));
  measure(values, here);
  g_row->close_stream(g_stream);
  g_row->close_stream(g_other);
  gpu_give_back(GPU_DEVICE, values);
  return 0;
}
