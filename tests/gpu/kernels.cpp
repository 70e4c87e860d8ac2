// SPDX-License-Identifier: BSD-3-Clause
// The GPU's kernels give the very bytes of the host's: every codec, bits, bucket, odd length and
// alignment. Needs a GPU, or the fake driver in LD_LIBRARY_PATH; exits 77 without.
#include <memory>

#include "device/device.h"
#include "device/plugins.h"
#include "kernels/cpu/cpu.h"
#include "tests/helper/devices/gpu.h"
#include "tests/helper/base/unit_test.h"
#include "tests/kernels/checksums.h"
#include "tests/kernels/data.h"

using namespace slimpi;
using namespace slimpi::kernels;
using namespace slimpi::test;

namespace {

// An array on the host and on the GPU, `offset` bytes behind an aligned address. Nothing may be
// written behind its end: the fake driver checks this when the array is freed.
template <typename T>
class Both {
 public:
  explicit Both(std::size_t count, std::size_t offset = 0)
      : count_(count), base_((char*)gpu_take(GPU_DEVICE, count * sizeof(T) + offset)) {
    device = (T*)(base_ + offset);
    here.resize(count);
  }
  ~Both() { gpu_give_back(GPU_DEVICE, base_); }
  Both(const Both&) = delete;
  Both& operator=(const Both&) = delete;

  T* host() { return here.data(); }
  void send() { gpu_copy(device, GPU_DEVICE, here.data(), GPU_HOST, count_ * sizeof(T)); }
  // Whether the bytes on both sides are the same.
  bool same() {
    std::vector<T> back(count_);
    if (count_ == 0) return true;
    gpu_copy(back.data(), GPU_HOST, device, GPU_DEVICE, count_ * sizeof(T));
    return memcmp(back.data(), here.data(), count_ * sizeof(T)) == 0;
  }

  T* device;
  std::vector<T> here;

 private:
  std::size_t count_;
  char* base_;
};

const device::Device* g_row = nullptr;
device::Stream* g_stream = nullptr;
bool g_fake = false, g_short = false;

const Kernels& host() {
  return *cpu_kernels(CpuPath::generic);
}
const Kernels& gpu() {
  return *g_row->kernels();
}

// Waits for the stream, whose work must not have failed.
void finish() {
  std::uint64_t mark = 0;
  Status status = g_row->record(g_stream, &mark);
  for (bool reached = false; status == Status::ok && !reached;)
    status = g_row->query(g_stream, mark, &reached);
  if (status != Status::ok) print_error("%s\n", failure_text().c_str());
  assert_int_equal(int(status), int(Status::ok));
}

std::vector<Format> formats() {
  std::vector<Format> all = {{Codec::float32}, {Codec::fp16}, {Codec::bf16}};
  for (int bits = 1; bits <= kMostBits; ++bits)
    for (const std::uint32_t bucket : {64u, 100u, 512u, 513u, 2048u, 3000u, 0u})
      for (const bool stochastic : {false, true})
        all.push_back(quantized(bits, bucket, stochastic));
  for (const int half_bits : {2, 3, 5, 8, 13, 16, 25, 32})
    for (const std::uint32_t tile : {1024u, 65536u}) all.push_back(packed(half_bits, tile));
  return all;
}

#define ASSERT_SAME(array)                                                                        \
  do {                                                                                            \
    if (!(array).same()) {                                                                        \
      print_error("%s differs: codec %d bits %d bucket %u stochastic %d kind %d count %zu\n",     \
                  #array, (int)format.codec, format.bits, format.bucket, format.stochastic, kind, \
                  count);                                                                         \
      fail();                                                                                     \
    }                                                                                             \
  } while (0)

void check_codec(const Format& format, int kind, std::size_t count, std::size_t offset) {
  const RandomStream random{0x123456789abcdef0u, 3, 9, 1001 + count};
  const std::size_t bytes = encoded_bytes(format, count);
  Both<float> a(count, offset), b(count, 4), c(count, 12), residual(count, 8), out(count, offset);
  Both<std::byte> coded(bytes, offset), second(bytes, 4), total(bytes, 0);
  for (std::size_t i = 0; i < count; ++i) {
    a.here[i] = input(kind, 0, i);
    b.here[i] = input(kind, 1, i);
    c.here[i] = input(kind, 2, i);
    residual.here[i] = 1e-3f * bell(99, i);
  }
  for (Both<float>* array : {&a, &b, &c, &residual}) array->send();
  host().encode(format, random, a.host(), nullptr, count, coded.host(), nullptr);
  gpu().encode(format, random, a.device, nullptr, count, coded.device, g_stream);
  host().encode(format, random, b.host(), residual.host(), count, second.host(), nullptr);
  gpu().encode(format, random, b.device, residual.device, count, second.device, g_stream);
  finish();
  ASSERT_SAME(coded);
  ASSERT_SAME(second);
  ASSERT_SAME(residual);
  host().decode(format, coded.host(), count, out.host(), nullptr);
  gpu().decode(format, coded.device, count, out.device, g_stream);
  finish();
  ASSERT_SAME(out);
  host().decode_add(format, second.host(), count, out.host(), nullptr);
  gpu().decode_add(format, second.device, count, out.device, g_stream);
  finish();
  ASSERT_SAME(out);
  const Addend here[] = {
      {coded.host(), nullptr}, {nullptr, b.host()}, {second.host(), nullptr}, {nullptr, c.host()}};
  const Addend there[] = {
      {coded.device, nullptr}, {nullptr, b.device}, {second.device, nullptr}, {nullptr, c.device}};
  host().sum_encode(format, random, here, 3, nullptr, nullptr, count, total.host(), out.host(),
                    nullptr);
  gpu().sum_encode(format, random, there, 3, nullptr, nullptr, count, total.device, out.device,
                   g_stream);
  finish();
  ASSERT_SAME(total);
  ASSERT_SAME(out);
  // The result takes the place of an addend; the sum has a carry in front and a residual.
  host().sum_encode(format, random, here, 4, a.host(), residual.host(), count, total.host(),
                    c.host(), nullptr);
  gpu().sum_encode(format, random, there, 4, a.device, residual.device, count, total.device,
                   c.device, g_stream);
  finish();
  ASSERT_SAME(total);
  ASSERT_SAME(c);
  ASSERT_SAME(residual);
  host().sum_encode(format, random, here, 3, nullptr, nullptr, count, nullptr, out.host(), nullptr);
  gpu().sum_encode(format, random, there, 3, nullptr, nullptr, count, nullptr, out.device,
                   g_stream);
  finish();
  ASSERT_SAME(out);
}

UNIT_TEST(codecs_give_the_host_s_bytes) {
  // The emulated kernels take longer: not every length with every kind of input.
  const std::vector<std::size_t> lengths = {1, 7, 31, 65, 513, 2047, 2049, 5003};
  int turn = 0, number = 0;
  for (const Format& format : formats()) {
    if (g_short) {
      check_codec(format, 0, 5003, 4);
      continue;
    }
    for (const std::size_t count : lengths)
      for (int kind = 0; kind < kKinds; ++kind)
        if (!g_fake || (turn++ % 4 == 0)) check_codec(format, kind, count, 4 * (count % 4));
    // The host takes long for these.
    if (!g_fake && number++ % 5 == 0) check_codec(format, 0, (std::size_t(5) << 20) + 12345, 0);
  }
}

UNIT_TEST(checksums_are_the_host_s) {
  Both<float> in(kChecksumCount), out(kChecksumCount);
  for (std::size_t i = 0; i < kChecksumCount; ++i) in.here[i] = checksum_input(i);
  in.send();
  for (const Checksum& row : kChecksums) {
    const std::size_t bytes = encoded_bytes(row.format, kChecksumCount);
    Both<std::byte> coded(bytes);
    gpu().encode(row.format, kChecksumDraw, in.device, nullptr, kChecksumCount, coded.device,
                 g_stream);
    gpu().decode(row.format, coded.device, kChecksumCount, out.device, g_stream);
    finish();
    gpu_copy(coded.host(), GPU_HOST, coded.device, GPU_DEVICE, bytes);
    gpu_copy(out.host(), GPU_HOST, out.device, GPU_DEVICE, 4 * kChecksumCount);
    assert_true(hash(coded.host(), bytes) == row.coded);
    assert_true(hash(out.host(), 4 * kChecksumCount) == row.decoded);
  }
}

// Sums of as many pieces as one call takes, and of huge values, whose sums overflow on the way.
UNIT_TEST(long_sums_and_huge_ones) {
  const std::size_t count = 3001;
  for (const Format& format :
       {quantized(8, 2048), quantized(3, 100, true), quantized(5, 0), packed(8, 1024),
        packed(3, 65536), Format{Codec::fp16, 8, false, 2048}})
    for (const int kind : {0, 1, 3}) {
      const std::size_t bytes = encoded_bytes(format, count);
      Both<float> in(count), out(count);
      std::vector<Both<std::byte>*> pieces;
      Addend here[kMaxAddends], there[kMaxAddends];
      for (int p = 0; p < kMaxAddends; ++p) {
        pieces.push_back(new Both<std::byte>(bytes));
        for (std::size_t i = 0; i < count; ++i) in.here[i] = input(kind, p, i);
        host().encode(format, {7, unsigned(p), 1, 0}, in.host(), nullptr, count, pieces[p]->host(),
                      nullptr);
        pieces[p]->send();
        here[p] = {pieces[p]->host(), nullptr};
        there[p] = {pieces[p]->device, nullptr};
      }
      Both<std::byte> total(bytes);
      in.send();
      host().sum_encode(format, {1, 2, 3, 4}, here, kMaxAddends, in.host(), nullptr, count,
                        total.host(), out.host(), nullptr);
      gpu().sum_encode(format, {1, 2, 3, 4}, there, kMaxAddends, in.device, nullptr, count,
                       total.device, out.device, g_stream);
      finish();
      ASSERT_SAME(total);
      ASSERT_SAME(out);
      for (Both<std::byte>* piece : pieces) delete piece;
    }
}

// The GPU adds in the order of a tree, and gives the bytes that add_in_pairs of src/intra gives on
// the host.
UNIT_TEST(sums_in_the_order_of_a_tree) {
  constexpr std::size_t kCount = 2500;
  std::vector<std::unique_ptr<Both<float>>> in;
  std::vector<const float*> there;
  for (int addend = 0; addend < kMaxAddends; ++addend) {
    in.push_back(std::make_unique<Both<float>>(kCount));
    for (std::size_t i = 0; i < kCount; ++i) in.back()->here[i] = input(4, addend, i);
    in.back()->send();
    there.push_back(in.back()->device);
  }
  Both<float> out(kCount);
  for (std::size_t inputs = 1; inputs <= kMaxAddends; ++inputs) {
    std::size_t power = 1;
    while (2 * power <= inputs) power *= 2;
    const std::size_t surplus = inputs - power;
    for (std::size_t i = 0; i < kCount; ++i) {
      std::vector<float> level;
      for (std::size_t j = 0; j < power; ++j)
        level.push_back(j < surplus ? in[2 * j]->here[i] + in[2 * j + 1]->here[i]
                                    : in[j + surplus]->here[i]);
      for (; level.size() > 1; level.resize(level.size() / 2))
        for (std::size_t j = 0; 2 * j < level.size(); ++j)
          level[j] = level[2 * j] + level[2 * j + 1];
      out.here[i] = level[0];
    }
    gpu().pair_sum(there.data(), int(inputs), kCount, out.device, g_stream);
    finish();
    if (!out.same()) print_error("%zu addends\n", inputs);
    assert_true(out.same());
  }
}

UNIT_TEST(the_rest_of_the_table) {
  const Format format{};
  for (int kind = 0; kind < kKinds; ++kind)
    for (const std::size_t count : {0, 1, 1023, 1025, 5003}) {
      Both<float> a(count, 4), b(count), c(count, 8), out(count, 12);
      for (std::size_t i = 0; i < count; ++i) {
        a.here[i] = input(kind, 0, i);
        b.here[i] = input(kind, 1, i);
        c.here[i] = input(kind, 2, i);
      }
      for (Both<float>* array : {&a, &b, &c, &out}) array->send();
      const float* const here[] = {a.host(), b.host(), c.host()};
      const float* const there[] = {a.device, b.device, c.device};
      for (int inputs = 1; inputs <= 3; ++inputs) {
        host().sum(here, inputs, count, out.host(), nullptr);
        gpu().sum(there, inputs, count, out.device, g_stream);
        finish();
        ASSERT_SAME(out);
      }
      host().combine(3.0f, a.host(), 0, nullptr, count, out.host(), nullptr);
      gpu().combine(3.0f, a.device, 0, nullptr, count, out.device, g_stream);
      finish();
      ASSERT_SAME(out);
      host().combine(0.3f, a.host(), -1.7f, b.host(), count, b.host(), nullptr);
      gpu().combine(0.3f, a.device, -1.7f, b.device, count, b.device, g_stream);
      host().fill(c.host(), -0.25f, count / 2, nullptr);
      gpu().fill(c.device, -0.25f, count / 2, g_stream);
      Both<int> found(1), large(1);
      host().find_beyond(a.host(), kMaxFloat, count, found.host(), nullptr);
      gpu().find_beyond(a.device, kMaxFloat, count, found.device, g_stream);
      host().find_beyond(a.host(), 1.0f, count, large.host(), nullptr);
      gpu().find_beyond(a.device, 1.0f, count, large.device, g_stream);
      finish();
      ASSERT_SAME(large);
      ASSERT_SAME(b);
      ASSERT_SAME(c);
      ASSERT_SAME(found);
    }
}

UNIT_TEST(compare_is_right_and_always_the_same) {
  const std::size_t count = g_fake ? 200003 : 20000003;
  Both<float> a(count), b(count);
  for (std::size_t i = 0; i < count; ++i) {
    a.here[i] = bell(1, i);
    b.here[i] = bell(2, i);
  }
  a.send();
  b.send();
  double expected[2], first[2];
  host().compare(a.host(), b.host(), count, expected, nullptr);
  Both<double> result(2);
  for (int turn = 0; turn < 3; ++turn) {
    gpu().compare(a.device, b.device, count, result.device, g_stream);
    finish();
    gpu_copy(result.host(), GPU_HOST, result.device, GPU_DEVICE, sizeof first);
    if (turn == 0) memcpy(first, result.host(), sizeof first);
    assert_memory_equal(first, result.host(), sizeof first);
  }
  for (int i = 0; i < 2; ++i) assert_true(std::fabs(first[i] - expected[i]) <= 1e-12 * expected[i]);
}

UNIT_TEST(low_rank_products) {
  const Format format{};
  const int kind = 0;
  for (const std::size_t columns : {1, 37, 300})
    for (const int rank : {1, 5}) {
      const std::size_t rows = 29, count = rows * columns - columns / 3;
      Both<float> p(rows * std::size_t(rank)), q(columns * std::size_t(rank)), in(count),
          residual(count), out(count);
      for (float& value : p.here) value = bell(3, std::size_t(&value - p.host()));
      for (float& value : q.here) value = bell(4, std::size_t(&value - q.host()));
      for (float& value : in.here) value = bell(5, std::size_t(&value - in.host()));
      for (float& value : residual.here) value = bell(6, std::size_t(&value - residual.host()));
      residual.here[count / 2] = 3e38f;
      in.here[count / 2] = 3e38f;
      for (Both<float>* array : {&p, &q, &in, &residual}) array->send();
      const LowRank here{p.host(), q.host(), rank, rows, columns};
      const LowRank there{p.device, q.device, rank, rows, columns};
      host().low_rank(here, nullptr, 0, nullptr, count, out.host(), nullptr);
      gpu().low_rank(there, nullptr, 0, nullptr, count, out.device, g_stream);
      finish();
      ASSERT_SAME(out);
      host().low_rank(here, in.host(), 0.25f, residual.host(), count, in.host(), nullptr);
      gpu().low_rank(there, in.device, 0.25f, residual.device, count, in.device, g_stream);
      finish();
      ASSERT_SAME(in);
      ASSERT_SAME(residual);
    }
}

int open(void**) {
  if (const int skipped = gpu_open(); skipped != 0) std::exit(skipped);
  g_fake = gpu_function("slimpi_fake_memory") != nullptr;
  g_short = std::getenv("SHORT") != nullptr;
  device::load_plugins();
  void* const memory = gpu_take(GPU_DEVICE, 4);
  g_row = device::locate(memory).device;
  const Status status = g_row->open_stream(device::locate(memory), &g_stream);
  if (status != Status::ok) print_error("%s\n", failure_text().c_str());
  gpu_give_back(GPU_DEVICE, memory);
  return status != Status::ok || g_row == &device::host();
}

int close(void**) {
  g_row->close_stream(g_stream);
  return 0;
}

GROUP_FIXTURES(open, close);

}  // namespace
