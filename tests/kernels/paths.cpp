// SPDX-License-Identifier: BSD-3-Clause
// Every code path that this machine can run gives the same bytes, whatever the program has done to
// its floating-point environment, and the bytes that checksums.h remembers.
#include <cfenv>

#include "kernels/cpu/cpu.h"
#include "tests/helper/base/unit_test.h"
#include "tests/kernels/checksums.h"
#include "tests/kernels/data.h"
#include "tests/kernels/memory.h"

using namespace slimpi;
using namespace slimpi::kernels;
using namespace slimpi::test;

namespace {

constexpr int kSources = 3;
Arena g_in[kSources], g_residual, g_coded, g_out, g_second, g_doubles;

std::vector<const Kernels*> g_paths;

int find_paths(void**) {
  for (const CpuPath path : {CpuPath::generic, CpuPath::avx2, CpuPath::avx512})
    if (usable(path)) g_paths.push_back(cpu_kernels(path));
  return 0;
}

std::vector<Format> formats() {
  std::vector<Format> all;
  for (const CodecRow& row : kValueCodecs) all.push_back({row.codec});
  for (int bits = 1; bits <= kMostBits; ++bits)
    for (const std::uint32_t bucket : kBuckets)
      for (const bool stochastic : {false, true})
        // Each width without a loop of its own is tested with one of the lengths of buckets.
        if (bits <= 8 || bits == 16 || bucket == kBuckets[bits % 4])
          all.push_back(quantized(bits, bucket, stochastic));
  for (const int half_bits : {2, 3, 4, 5, 6, 8, 9, 11, 13, 16, 18, 21, 25, 29, 32})
    for (const std::uint32_t tile : {64u, 1024u, 4096u, 65536u})
      if (half_bits < 6 || tile >= 4096) all.push_back(packed(half_bits, tile));
  return all;
}

// Everything that a path computes from a kind of input, as one number.
std::uint64_t everything(const Kernels& path, const Format& format, int kind, std::size_t count,
                         bool at_end) {
  const RandomStream random{42, 3, 9, 1001};
  float* in[kSources];
  for (int s = 0; s < kSources; ++s) {
    in[s] = g_in[s].take<float>(count, at_end);
    for (std::size_t i = 0; i < count; ++i) in[s][i] = input(kind, s, i);
  }
  std::uint64_t value = 0;
  const auto fold = [&](const void* data, std::size_t bytes) {
    value = mixed(value ^ hash(data, bytes));
  };
  float* residual = g_residual.take<float>(count, at_end);
  for (std::size_t i = 0; i < count; ++i) residual[i] = 1e-3f * bell(99, i);
  const std::size_t bytes = encoded_bytes(format, count);
  auto* coded = g_coded.take<std::byte>(bytes, at_end);
  path.encode(format, random, in[0], nullptr, count, coded, nullptr);
  fold(coded, bytes);
  path.encode(format, random, in[0], residual, count, coded, nullptr);
  fold(coded, bytes);
  fold(residual, 4 * count);
  float* out = g_out.take<float>(count, at_end);
  path.decode(format, coded, count, out, nullptr);
  fold(out, 4 * count);
  if (count > 3) out[3] = float_of(0xffc00001);  // no NaN of slimpi's
  path.decode_add(format, coded, count, out, nullptr);
  fold(out, 4 * count);
  auto* second = g_second.take<std::byte>(bytes, at_end);
  const Addend addends[] = {{coded, nullptr}, {nullptr, in[1]}, {coded, nullptr}, {nullptr, in[2]}};
  path.sum_encode(format, random, addends, 4, in[0], residual, count, second, out, nullptr);
  fold(second, bytes);
  fold(out, 4 * count);
  fold(residual, 4 * count);
  path.sum_encode(format, random, addends, 4, nullptr, nullptr, count, nullptr, out, nullptr);
  fold(out, 4 * count);
  path.sum(in, kSources, count, out, nullptr);
  fold(out, 4 * count);
  double* const doubles = g_doubles.take<double>(count, at_end);
  path.widen(in[0], count, doubles, nullptr);
  fold(doubles, 8 * count);
  for (std::size_t i = 0; i < count; ++i) doubles[i] += 1e-9 * double(in[1][i]);
  bool holds = false;
  path.narrow(doubles, count, {double(kMaxFloat), 512}, out, &holds, nullptr);
  fold(&holds, sizeof holds);
  if (holds) fold(out, 4 * count);
  path.combine(0.3f, in[0], -1.7f, in[1], count, out, nullptr);
  fold(out, 4 * count);
  int found = -1;
  path.find_beyond(in[0], kMaxFloat, count, &found, nullptr);
  fold(&found, sizeof found);
  path.find_beyond(in[0], 1.0f, count, &found, nullptr);
  fold(&found, sizeof found);
  double compared[2];
  path.compare(in[0], in[1], count, compared, nullptr);
  // The bits of a NaN are nobody's business here.
  for (double& sum : compared) sum = sum == sum ? sum : 0;
  fold(compared, sizeof compared);
  assert_true(g_coded.intact() && g_out.intact() && g_residual.intact() && g_second.intact() &&
              g_doubles.intact());
  return value;
}

UNIT_TEST(the_best_path_comes_first) {
  assert_true(usable(CpuPath::generic) && usable(CpuPath::automatic));
  assert_ptr_equal(cpu_kernels(CpuPath::automatic), g_paths.back());
  assert_string_equal(cpu_kernels(CpuPath::generic)->name, "generic");
  if (usable(CpuPath::avx2)) assert_string_equal(cpu_kernels(CpuPath::avx2)->name, "avx2");
  if (usable(CpuPath::avx512)) assert_string_equal(cpu_kernels(CpuPath::avx512)->name, "avx512");
}

UNIT_TEST(all_paths_give_the_same_bytes) {
  const std::size_t lengths[] = {0, 1, 7, 9, 63, 65, 100, 1023, 2049, 5003};
  std::uint64_t all = 0;
  for (const Format& format : formats())
    for (int kind = 0; kind < kKinds; ++kind)
      for (const std::size_t count : lengths) {
        const std::uint64_t expected = everything(*g_paths[0], format, kind, count, true);
        all = mixed(all ^ expected);
        for (const Kernels* path : g_paths)
          for (const bool at_end : {false, true}) {
            const std::uint64_t found = everything(*path, format, kind, count, at_end);
            if (found != expected)
              print_error("%s: codec %d bits %d bucket %u stochastic %d kind %d count %zu\n",
                          path->name, (int)format.codec, format.bits, format.bucket,
                          format.stochastic, kind, count);
            assert_true(found == expected);
          }
      }
  print_message("all bytes: %016llx\n", (unsigned long long)all);  // for aarch64.sh
}

// Floats aligned to 4 bytes only, at every offset within a vector.
UNIT_TEST(alignment_does_not_matter) {
  alignas(64) static float in[1100], out[1100], expected[1100];
  static std::byte coded[8000], first[8000];
  for (const Kernels* path : g_paths)
    for (const Format& format : formats())
      for (int offset = 0; offset < 16; ++offset) {
        for (int i = 0; i < 1001; ++i) in[offset + i] = bell(5, (std::size_t)i);
        path->encode(format, RandomStream{}, in + offset, nullptr, 1001, coded, nullptr);
        path->decode(format, coded, 1001, out + 15 - offset, nullptr);
        if (offset == 0) {
          memcpy(first, coded, encoded_bytes(format, 1001));
          memcpy(expected, out + 15, sizeof(float) * 1001);
        }
        assert_memory_equal(coded, first, encoded_bytes(format, 1001));
        assert_memory_equal(out + 15 - offset, expected, sizeof(float) * 1001);
      }
}

#if defined(__SSE__)
// A program may flush subnormal numbers, round upwards, or trap; none of it may change a byte, and
// what it has set must be as it was.
UNIT_TEST(the_program_s_floating_point_environment_does_not_matter) {
  const unsigned saved = __builtin_ia32_stmxcsr();
  constexpr unsigned kFlushToZero = 0x8000, kSubnormalsAreZero = 0x40, kUpwards = 0x4000;
  for (const Kernels* path : g_paths)
    for (const Format& format : formats())
      for (int kind = 0; kind < kKinds; ++kind) {
        for (const unsigned environment :
             {0x1f80 | kFlushToZero | kSubnormalsAreZero, 0x1f80 | kUpwards, 0u}) {
          static float in[777], out[777], plain_out[777];
          static std::byte coded[4 * 777 + 8], plain[4 * 777 + 8];
          for (std::size_t i = 0; i < 777; ++i) in[i] = input(kind, 0, i);
          path->encode(format, RandomStream{1, 2, 3, 4}, in, nullptr, 777, plain, nullptr);
          path->decode(format, plain, 777, plain_out, nullptr);
          __builtin_ia32_ldmxcsr(environment);
          path->encode(format, RandomStream{1, 2, 3, 4}, in, nullptr, 777, coded, nullptr);
          path->decode(format, coded, 777, out, nullptr);
          const unsigned after = __builtin_ia32_stmxcsr();
          __builtin_ia32_ldmxcsr(saved);
          assert_int_equal(after, environment);
          assert_memory_equal(coded, plain, encoded_bytes(format, 777));
          assert_memory_equal(out, plain_out, sizeof out);
        }
      }
}
#endif

// The bytes themselves may not drift from one version to the next, nor between CPU and GPU.
UNIT_TEST(bytes_are_those_of_the_shared_list) {
  static float in[kChecksumCount], out[kChecksumCount];
  static std::byte coded[4 * kChecksumCount + 4096];
  for (std::size_t i = 0; i < kChecksumCount; ++i) in[i] = checksum_input(i);
  int wrong = 0;
  for (const Kernels* path : g_paths)
    for (const Checksum& row : kChecksums) {
      const std::size_t bytes = encoded_bytes(row.format, kChecksumCount);
      path->encode(row.format, kChecksumDraw, in, nullptr, kChecksumCount, coded, nullptr);
      path->decode(row.format, coded, kChecksumCount, out, nullptr);
      const std::uint64_t of_coded = hash(coded, bytes), of_decoded = hash(out, sizeof out);
      if (of_coded == row.coded && of_decoded == row.decoded) continue;
      print_error("%s gives {{Codec::%s, %d, %s, %u}, 0x%016llx, 0x%016llx},\n", path->name,
                  row_of(row.format.codec).name, row.format.bits,
                  row.format.stochastic ? "true" : "false", row.format.bucket,
                  (unsigned long long)of_coded, (unsigned long long)of_decoded);
      ++wrong;
    }
  assert_int_equal(wrong, 0);
}

GROUP_FIXTURES(find_paths, nullptr);

}  // namespace
