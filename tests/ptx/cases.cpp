// SPDX-License-Identifier: BSD-3-Clause
#include "tests/ptx/cases.h"

#include <cmath>
#include <deque>

#include "kernels/cpu/cpu.h"
#include "tests/helper/both.h"
#include "tests/helper/cmocka_cxx.h"
#include "tests/kernels/data.h"

namespace slimpi::test {

using namespace kernels;

namespace {

const Kernels& host() {
  return *cpu_kernels(CpuPath::generic);
}

template <typename T>
void expect_same(Both<T>& array, const char* name, const Case& c) {
  if (array.same()) return;
  print_error(
      "%s differs: codec %d bits %d bucket %u stochastic %d kind %d count %zu offset %zu seed "
      "%llu\n",
      name, (int)c.format.codec, c.format.bits, c.format.bucket, c.format.stochastic, c.kind,
      c.count, c.offset, (unsigned long long)c.seed);
  fail();
}
#define EXPECT_SAME(array) expect_same(array, #array, c)

void fill_in(Both<float>& array, const Case& c, unsigned source) {
  for (std::size_t i = 0; i < c.count; ++i) array.here[i] = case_value(c.kind, c.seed + source, i);
  array.send();
}

RandomStream stream_of(const Case& c) {
  // A first number that is no multiple of four begins inside of a block of random numbers.
  return {mixed(c.seed), std::uint32_t(c.seed % 5), c.seed % 1000, c.count + c.seed % 4};
}

// The last bits of these sums may differ between tables. They are of finite values only.
void check_compare(const Side& side, const Case& c, Both<float>& a, Both<float>& b) {
  for (Both<float>* array : {&a, &b}) {
    for (float& value : array->here)
      if (!(std::fabs(value) < 1e30f)) value = 1.0f;
    array->send();
  }
  Both<double> sums(2);
  double expected[2];
  host().compare(a.host(), b.host(), c.count, expected, nullptr);
  side.gpu().compare(a.device, b.device, c.count, sums.device, side.stream);
  side.finish();
  gpu_copy(sums.host(), GPU_HOST, sums.device, GPU_DEVICE, sizeof expected);
  for (int i = 0; i < 2; ++i)
    assert_true(std::fabs(sums.here[i] - expected[i]) <= 1e-12 * expected[i]);
}

}  // namespace

void Side::finish() const {
  std::uint64_t mark = 0;
  Status status = row->record(stream, &mark);
  for (bool reached = false; status == Status::ok && !reached;)
    status = row->query(stream, mark, &reached);
  if (status != Status::ok) print_error("%s\n", failure_text().c_str());
  assert_int_equal(int(status), int(Status::ok));
}

float case_value(int kind, std::uint64_t seed, std::size_t i) {
  const std::uint64_t bits = mixed(seed * 0x100000001b3u + 3 * i);
  if (kind == kKinds) return -1.75f * float(seed % 3);  // a range of zero
  if (kind == kKinds + 1) {                             // any float, and runs of finite ones
    const float any = from_bits(std::uint32_t(bits));
    return std::isfinite(any) || i / 600 % 2 == 0 ? any : 1.0f;
  }
  if (kind == 1) return input(1, int(seed % 1000), i + seed % 701);
  if (kind == 2 && i % 3 == 0) return from_bits(std::uint32_t(bits) & 0x807fffff);  // subnormal
  return input(kind, int(seed % 100000), i);
}

void check_codec(const Side& side, const Case& c) {
  const Kernels& gpu = side.gpu();
  const RandomStream random = stream_of(c);
  const std::size_t bytes = encoded_bytes(c.format, c.count), n = c.count;
  Both<float> a(n, c.offset), b(n, 4), in(n, 12), residual(n, 8), out(n, c.offset);
  Both<std::byte> coded(bytes, c.offset), second(bytes, 4), total(bytes, 0);
  for (Both<float>* array : {&a, &b, &in}) fill_in(*array, c, unsigned(array - &a));
  for (std::size_t i = 0; i < n; ++i) residual.here[i] = 1e-3f * bell(c.seed, i);
  residual.send();
  host().encode(c.format, random, a.host(), nullptr, n, coded.host(), nullptr);
  gpu.encode(c.format, random, a.device, nullptr, n, coded.device, side.stream);
  host().encode(c.format, random, b.host(), residual.host(), n, second.host(), nullptr);
  gpu.encode(c.format, random, b.device, residual.device, n, second.device, side.stream);
  side.finish();
  EXPECT_SAME(coded);
  EXPECT_SAME(second);
  EXPECT_SAME(residual);
  host().decode(c.format, coded.host(), n, out.host(), nullptr);
  gpu.decode(c.format, coded.device, n, out.device, side.stream);
  side.finish();
  EXPECT_SAME(out);
  host().decode_add(c.format, second.host(), n, out.host(), nullptr);
  gpu.decode_add(c.format, second.device, n, out.device, side.stream);
  side.finish();
  EXPECT_SAME(out);
  const Addend here[] = {
      {coded.host(), nullptr}, {nullptr, b.host()}, {second.host(), nullptr}, {nullptr, in.host()}};
  const Addend there[] = {
      {coded.device, nullptr}, {nullptr, b.device}, {second.device, nullptr}, {nullptr, in.device}};
  host().sum_encode(c.format, random, here, 3, nullptr, nullptr, n, total.host(), out.host(),
                    nullptr);
  gpu.sum_encode(c.format, random, there, 3, nullptr, nullptr, n, total.device, out.device,
                 side.stream);
  side.finish();
  EXPECT_SAME(total);
  EXPECT_SAME(out);
  host().sum_encode(c.format, random, here, 3, nullptr, nullptr, n, nullptr, out.host(), nullptr);
  gpu.sum_encode(c.format, random, there, 3, nullptr, nullptr, n, nullptr, out.device, side.stream);
  // The result in the place of an addend, a carry in front, and a residual.
  host().sum_encode(c.format, random, here, 4, a.host(), residual.host(), n, total.host(),
                    in.host(), nullptr);
  gpu.sum_encode(c.format, random, there, 4, a.device, residual.device, n, total.device, in.device,
                 side.stream);
  side.finish();
  EXPECT_SAME(out);
  EXPECT_SAME(total);
  EXPECT_SAME(in);
  EXPECT_SAME(residual);
}

void check_long_sum(const Side& side, const Case& c, unsigned addends) {
  const std::size_t bytes = encoded_bytes(c.format, c.count);
  Both<float> in(c.count, c.offset), out(c.count);
  std::deque<Both<std::byte>> segments;
  Addend here[kMaxAddends], there[kMaxAddends];
  for (unsigned s = 0; s < addends; ++s) {
    fill_in(in, c, s);
    Both<std::byte>& segment = segments.emplace_back(bytes, 4 * (s % 4));
    host().encode(c.format, stream_of(c), in.host(), nullptr, c.count, segment.host(), nullptr);
    segment.send();
    here[s] = {segment.host(), nullptr};
    there[s] = {segment.device, nullptr};
  }
  Both<std::byte> total(bytes);
  const int count = int(addends);
  const RandomStream random = stream_of(c);
  host().sum_encode(c.format, random, here, count, in.host(), nullptr, c.count, total.host(),
                    out.host(), nullptr);
  side.gpu().sum_encode(c.format, random, there, count, in.device, nullptr, c.count, total.device,
                        out.device, side.stream);
  side.finish();
  EXPECT_SAME(total);
  EXPECT_SAME(out);
  host().sum_encode(c.format, random, here, count, nullptr, nullptr, c.count, nullptr, out.host(),
                    nullptr);
  side.gpu().sum_encode(c.format, random, there, count, nullptr, nullptr, c.count, nullptr,
                        out.device, side.stream);
  side.finish();
  EXPECT_SAME(out);
}

void check_elementwise(const Side& side, const Case& c) {
  const Kernels& gpu = side.gpu();
  const std::size_t n = c.count;
  Both<float> a(n, 4), b(n, c.offset), d(n, 8), out(n, 12);
  for (Both<float>* array : {&a, &b, &d, &out}) fill_in(*array, c, unsigned(array - &a));
  const float *const here[] = {a.host(), b.host(), d.host()}, *const there[] = {a.device, b.device,
                                                                                d.device};
  for (const int inputs : {1, 3}) {
    host().sum(here, inputs, n, out.host(), nullptr);
    gpu.sum(there, inputs, n, out.device, side.stream);
    side.finish();
    EXPECT_SAME(out);
    gpu.pair_sum(there, inputs, n, out.device, side.stream);  // of three the order is the same
    side.finish();
    EXPECT_SAME(out);
  }
  host().combine(3.0f, a.host(), 0, nullptr, n, out.host(), nullptr);
  gpu.combine(3.0f, a.device, 0, nullptr, n, out.device, side.stream);
  side.finish();
  EXPECT_SAME(out);
  host().combine(0.3f, a.host(), -1.7f, b.host(), n, b.host(), nullptr);
  gpu.combine(0.3f, a.device, -1.7f, b.device, n, b.device, side.stream);
  host().fill(d.host(), -0.25f, n / 2, nullptr);
  gpu.fill(d.device, -0.25f, n / 2, side.stream);
  Both<int> found(1), large(1);
  host().find_beyond(a.host(), kMaxFloat, n, found.host(), nullptr);
  gpu.find_beyond(a.device, kMaxFloat, n, found.device, side.stream);
  host().find_beyond(a.host(), 1.0f, n, large.host(), nullptr);
  gpu.find_beyond(a.device, 1.0f, n, large.device, side.stream);
  side.finish();
  EXPECT_SAME(b);
  EXPECT_SAME(d);
  EXPECT_SAME(found);
  EXPECT_SAME(large);
  check_compare(side, c, a, out);
}

void check_low_rank(const Side& side, const Case& c, std::size_t columns, int rank) {
  const std::size_t rows = (c.count + columns - 1) / columns, n = c.count;
  Both<float> p(rows * std::size_t(rank)), q(columns * std::size_t(rank)), in(n, 4), residual(n, 8),
      out(n, c.offset);
  for (Both<float>* array : {&p, &q, &in, &residual}) {
    for (float& value : array->here)
      value = case_value(c.kind, c.seed, std::size_t(&value - array->host()));
    array->send();
  }
  const LowRank here{p.host(), q.host(), rank, rows, columns};
  const LowRank there{p.device, q.device, rank, rows, columns};
  host().low_rank(here, nullptr, 0, nullptr, n, out.host(), nullptr);
  side.gpu().low_rank(there, nullptr, 0, nullptr, n, out.device, side.stream);
  host().low_rank(here, in.host(), 0.25f, residual.host(), n, in.host(), nullptr);
  side.gpu().low_rank(there, in.device, 0.25f, residual.device, n, in.device, side.stream);
  side.finish();
  EXPECT_SAME(out);
  EXPECT_SAME(in);
  EXPECT_SAME(residual);
}

}  // namespace slimpi::test
