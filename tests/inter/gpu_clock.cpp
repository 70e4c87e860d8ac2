// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of the clock that predicts how long sums of GPU buffers take.
#include "tests/helper/gpu_clock.h"

#include <cmath>

#include "tests/helper/cmocka_cxx.h"

namespace {

using namespace slimpi;
using namespace slimpi::test;
using comm::StreamRole;

constexpr std::size_t kBytes = 50'000'000;  // a millisecond on the bus

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
  assert_true(near(rank.now, 2.36e-6));
  assert_int_equal(rank.calls, 3);
  assert_true(near(done(rank, StreamRole::h2d), 1e-3 + 2.36e-6));
  assert_int_equal(row().copy(nullptr, nullptr, kBytes, stream(rank, StreamRole::h2d)), 0);
  assert_true(near(rank.now, 4.72e-6));
  assert_true(near(done(rank, StreamRole::h2d), 2e-3 + 2.36e-6));
}

void engines_work_side_by_side_and_events_order_them(void**) {
  RankClock rank{{}};
  device::Stream *const in = stream(rank, StreamRole::h2d), *const out =
                                                                stream(rank, StreamRole::d2h);
  (void)row().copy(nullptr, nullptr, kBytes, in);
  (void)row().copy(nullptr, nullptr, kBytes, out);
  assert_true(near(done(rank, StreamRole::d2h), 1e-3 + 4.72e-6));  // beside the other
  std::uint64_t event = 0;
  (void)row().record(in, &event);
  (void)row().wait_event(out, in, event);
  (void)row().copy(nullptr, nullptr, kBytes, in);
  assert_true(near(done(rank, StreamRole::h2d), 2e-3 + 2.36e-6));
  (void)row().copy(nullptr, nullptr, kBytes, out);
  assert_true(near(done(rank, StreamRole::d2h), 2e-3 + 4.72e-6));
  // Asking for an event waits for it.
  bool reached = false;
  const std::uint64_t calls = rank.calls;
  (void)row().query(in, event, &reached);
  assert_true(reached && near(rank.now, 1e-3 + 2.36e-6));
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
  const double first = bytes / (3.0e12 * 0.9);
  assert_true(near(done(rank, StreamRole::compute), 2.16e-6 + first));
  table.decode(format, nullptr, 1, nullptr, stream(rank, StreamRole::d2h));
  assert_true(near(done(rank, StreamRole::d2h), 2.16e-6 + first + 2e-6));  // the shortest kernel
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
  const double seconds = double(kernels::encoded_bytes(format, kCount)) / 40e9;
  table.encode(format, {}, nullptr, nullptr, kCount, const_cast<std::byte*>(memory),
               stream(rank, StreamRole::compute));
  assert_true(near(done(rank, StreamRole::compute), 2.16e-6 + seconds));
  assert_true(near(rank.out_busy, seconds) && rank.in_busy == 0);
  (void)row().copy(nullptr, nullptr, 1, stream(rank, StreamRole::d2h));
  assert_true(near(done(rank, StreamRole::d2h), 2.16e-6 + seconds + 1e-6));  // waits for the bus
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
  assert_true(reached && near(rank.now, 1e-3 + 2.36e-6) && near(rank.cpu_busy, cpu + 0.56e-6));
  // The next work waits for the program's own: an event and a wait more.
  const std::uint64_t calls = rank.calls;
  (void)row().copy(nullptr, nullptr, kBytes, out);
  assert_int_equal(rank.calls, calls + 5);
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

// How much longer than its bytes take on the link a sum of 64 MiB at 8 bits may be.
void sums_come_near_the_limit_of_the_link(void**) {
  const struct { double link, most; } cases[] = {{12.5e9, 1.1}, {50e9, 2}};
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
      cmocka_unit_test(a_prediction_is_no_faster_than_its_parts),
      cmocka_unit_test(sums_come_near_the_limit_of_the_link),
      cmocka_unit_test(the_same_prediction_every_time),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
