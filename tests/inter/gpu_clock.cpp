// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of the clock that predicts how long sums of GPU buffers take.
#include "tests/helper/gpu_clock.h"

#include <cmath>

#include "tests/helper/cmocka_cxx.h"

namespace {

using namespace slimpi;
using namespace slimpi::test;
using comm::StreamRole;

constexpr std::size_t kBytes = 54'000'000;  // a millisecond on the bus
constexpr double kCopied = 1e-3 + 2e-6;     // of these bytes, with the least time of a copy

device::Stream* stream(RankClock& rank, StreamRole role) {
  return reinterpret_cast<device::Stream*>(&rank.streams[std::size_t(role)]);
}

double done(RankClock& rank, StreamRole role) {
  return rank.streams[std::size_t(role)].done;
}

bool near(double value, double wanted) {
  return std::fabs(value - wanted) < 1e-9;
}

const device::Device& row() {
  return clocked_device();
}

void a_copy_costs_the_cpu_its_call_and_the_bus_its_bytes(void**) {
  RankClock rank{{}};
  assert_int_equal(row().copy(nullptr, nullptr, kBytes, stream(rank, StreamRole::h2d)), 0);
  assert_true(near(rank.now, 1.24e-6));
  assert_int_equal(rank.calls, 3);
  assert_true(near(done(rank, StreamRole::h2d), 1.24e-6 + kCopied));
  assert_int_equal(row().copy(nullptr, nullptr, kBytes, stream(rank, StreamRole::h2d)), 0);
  assert_true(near(rank.now, 2.48e-6));
  assert_true(near(done(rank, StreamRole::h2d), 1.24e-6 + 2 * kCopied));
}

void engines_work_side_by_side_and_events_order_them(void**) {
  RankClock rank{{}};
  device::Stream *const in = stream(rank, StreamRole::h2d), *const out =
                                                                stream(rank, StreamRole::d2h);
  (void)row().copy(nullptr, nullptr, kBytes, in);
  (void)row().copy(nullptr, nullptr, kBytes, out);
  assert_true(near(done(rank, StreamRole::d2h), 2.48e-6 + kCopied));  // beside the other
  std::uint64_t event = 0;
  (void)row().record(in, &event);
  (void)row().wait_event(out, in, event);
  (void)row().copy(nullptr, nullptr, kBytes, in);
  assert_true(near(done(rank, StreamRole::h2d), 1.24e-6 + 2 * kCopied));
  (void)row().copy(nullptr, nullptr, kBytes, out);
  assert_true(near(done(rank, StreamRole::d2h), 2.48e-6 + 2 * kCopied));
  // Asking for an event waits for it, and until it can be seen.
  bool reached = false;
  const std::uint64_t calls = rank.calls;
  (void)row().query(in, event, &reached);
  assert_true(reached && near(rank.now, 1.24e-6 + kCopied + 3.5e-6));
  assert_int_equal(rank.calls, calls);
}

void kernels_share_the_multiprocessors(void**) {
  RankClock rank{{}};
  const kernels::Kernels& table = *row().kernels();
  kernels::Format format;
  format.codec = kernels::Codec::quantized;
  constexpr std::size_t kCount = 2048 * 100'000;
  const double bytes = double(kCount) * 4 + double(kernels::encoded_bytes(format, kCount));
  table.encode(format, {}, nullptr, nullptr, kCount, nullptr, stream(rank, StreamRole::compute));
  const double first = bytes / (3.0e12 * 0.93);
  assert_true(near(done(rank, StreamRole::compute), 3.2e-6 + first));
  table.decode(format, nullptr, 1, nullptr, stream(rank, StreamRole::d2h));
  assert_true(near(done(rank, StreamRole::d2h), 3.2e-6 + first + 2e-6));  // the shortest kernel
}

// A kernel that writes to host memory has the bus out for as long as its bytes take.
void kernels_that_use_host_memory_have_the_bus(void**) {
  static const std::byte memory[1] = {};
  RankClock rank{{}};
  rank.staging = memory;
  rank.staging_end = memory + 1;
  const kernels::Kernels& table = *row().kernels();
  kernels::Format format;
  format.codec = kernels::Codec::quantized;
  constexpr std::size_t kCount = 2048 * 100'000;
  const double bus = double(kernels::encoded_bytes(format, kCount)) / 49e9;
  const double end = 3.2e-6 + 3.7e-6 + bus;
  table.encode(format, {}, nullptr, nullptr, kCount, const_cast<std::byte*>(memory),
               stream(rank, StreamRole::compute));
  assert_true(near(done(rank, StreamRole::compute), end));
  assert_true(near(rank.out_busy, bus) && rank.in_busy == 0);
  (void)row().copy(nullptr, nullptr, 1, stream(rank, StreamRole::d2h));
  assert_true(near(done(rank, StreamRole::d2h), end + 2e-6));  // waits for the bus
  (void)row().copy(nullptr, nullptr, 1, stream(rank, StreamRole::h2d));
  assert_true(done(rank, StreamRole::h2d) < 1e-4);  // the other direction is free
}

void a_poll_costs_the_cpu_its_call(void**) {
  RankClock rank{{}};
  device::Stream* const out = stream(rank, StreamRole::d2h);
  (void)row().copy(nullptr, nullptr, kBytes, out);
  std::uint64_t event = 0;
  (void)row().record(out, &event);
  const double cpu = rank.cpu_busy;
  bool reached = false;
  (void)row().query(out, event, &reached);
  assert_true(reached && near(rank.now, 1.24e-6 + kCopied + 3.5e-6));
  assert_true(near(rank.cpu_busy, cpu + 0.24e-6));
  // The next work waits for the program's own: an event and a wait more.
  const std::uint64_t calls = rank.calls;
  (void)row().copy(nullptr, nullptr, kBytes, out);
  assert_int_equal(rank.calls, calls + 5);
}

// One of many that are queued at once takes what tests/gpu/costs measured on an H100, within a
// fifth.
void queued_work_takes_the_measured_time(void**) {
  enum { encode, decode, sum, copy };
  static constexpr const char* kNames[] = {"encode", "decode", "sum", "copy"};
  const struct {
    int what;
    std::size_t kib;
    double microseconds;
  } rows[] = {{encode, 64, 5.0},   {encode, 256, 9.1}, {encode, 1024, 26.5}, {decode, 64, 7.3},
              {decode, 256, 15.8}, {decode, 1024, 49}, {sum, 64, 11.3},      {sum, 256, 20.3},
              {sum, 1024, 65},     {copy, 64, 3.4},    {copy, 256, 7.0},     {copy, 1024, 21.5}};
  const kernels::Kernels& table = *row().kernels();
  const kernels::Format format{.codec = kernels::Codec::quantized};
  static std::byte memory[1] = {};
  const kernels::Addend addends[] = {{nullptr, nullptr}, {memory, nullptr}};
  for (const auto& one : rows) {
    RankClock rank{{}};
    rank.staging = memory;
    rank.staging_end = memory + 1;
    const std::size_t count = one.kib << 10;
    const auto role = one.what == copy ? StreamRole::d2h : StreamRole::compute;
    device::Stream* const on = stream(rank, role);
    constexpr int kTimes = 200;
    for (int i = 0; i < kTimes; ++i) {
      if (one.what == encode) table.encode(format, {}, nullptr, nullptr, count, memory, on);
      if (one.what == decode) table.decode(format, memory, count, nullptr, on);
      if (one.what == sum)
        table.sum_encode(format, {}, addends, 2, nullptr, nullptr, count, memory, nullptr, on);
      if (one.what == copy) (void)row().copy(nullptr, nullptr, count, on);
    }
    const double each = done(rank, role) / kTimes * 1e6;
    if (std::fabs(each / one.microseconds - 1) > 0.2)
      print_error("%s, %zu KiB: %.2f us, measured %.2f\n", kNames[one.what], one.kib, each,
                  one.microseconds);
    assert_true(std::fabs(each / one.microseconds - 1) <= 0.2);
  }
}

// Between two nodes a link carries half of the bytes twice, each way; nothing is faster than its
// busiest part.
void a_prediction_is_no_faster_than_its_parts(void**) {
  for (const int nodes : {2, 3, 4})
    for (const double link : {3e9, 50e9}) {
      Costs costs;
      costs.link = link;
      const Prediction one = predict(costs, nodes, 4 << 20, 8);
      const double sent = double(4 << 20) * 2 * (nodes - 1) / nodes;
      assert_true(one.seconds >= sent / link);
      assert_true(one.seconds >= one.cpu && one.seconds >= one.kernels && one.seconds >= one.bus);
      assert_true(one.bus >= sent / costs.bus);
      // On a slow link little else counts.
      if (link < 4e9) assert_true(one.seconds < 1.5 * sent / link);
    }
}

// How much longer than its bytes take on the link a sum of 64 MiB at 8 bits may be. At 400 Gbit/s
// the kernels limit: those that read messages in host memory have less than half of the bus.
void sums_come_near_the_limit_of_the_link(void**) {
  const struct { double link, most; } cases[] = {{12.5e9, 1.1}, {50e9, 4.5}};
  for (const int nodes : {2, 4})
    for (const auto& one : cases) {
      Costs costs;
      costs.link = one.link;
      const kernels::Format format{.codec = kernels::Codec::quantized};
      const std::size_t encoded = kernels::encoded_bytes(format, 16 << 20);
      const double limit = double(encoded) * 2 * (nodes - 1) / nodes / one.link;
      const double seconds = predict(costs, nodes, 16 << 20, 8).seconds;
      if (seconds > one.most * limit)
        print_error("%d nodes at %g GB/s: %.2f of the limit\n", nodes, one.link / 1e9,
                    seconds / limit);
      assert_true(seconds <= one.most * limit);
    }
}

void the_same_prediction_every_time(void**) {
  const Prediction a = predict({}, 4, 2 << 20, 8), b = predict({}, 4, 2 << 20, 8);
  assert_true(a.seconds == b.seconds && a.calls == b.calls);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_copy_costs_the_cpu_its_call_and_the_bus_its_bytes),
      cmocka_unit_test(engines_work_side_by_side_and_events_order_them),
      cmocka_unit_test(kernels_share_the_multiprocessors),
      cmocka_unit_test(kernels_that_use_host_memory_have_the_bus),
      cmocka_unit_test(a_poll_costs_the_cpu_its_call),
      cmocka_unit_test(queued_work_takes_the_measured_time),
      cmocka_unit_test(a_prediction_is_no_faster_than_its_parts),
      cmocka_unit_test(sums_come_near_the_limit_of_the_link),
      cmocka_unit_test(the_same_prediction_every_time),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
