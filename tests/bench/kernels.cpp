// SPDX-License-Identifier: BSD-3-Clause
// Measures how fast the host's kernels are, as a share of a plain copy: the time of a memcpy that
// reads and writes as many bytes in all as the kernel does, over the time of the kernel. The two
// take turns, so that other work of the machine falls on both; the medians of the turns are
// compared. One size is larger than any cache, the other fits into the cache of a core. Memory: 2.4
// GB.
//
// Usage: kernels [SECONDS PER NUMBER [PATH [CODEC [COUNT]]]]; a CODEC is the start of a row's
// name, such as 8, packed or fp16
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "device/device.h"
#include "kernels/cpu/cpu.h"

using namespace slimpi;
using namespace slimpi::kernels;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Memory on huge pages where the system gives them, all touched.
template <typename T>
T* take(std::size_t bytes) {
  void* memory = nullptr;
  if (device::host().allocate({}, bytes, device::Place::device, &memory) != Status::ok) exit(1);
  memset(memory, 0, bytes);
  return (T*)memory;
}

struct Memory {
  std::size_t count;
  float *in, *out, *exact;
  std::byte *coded[3], *target;
  char *copy_from, *copy_to;
};

Memory make_memory(std::size_t count) {
  Memory b{};
  b.count = count;
  const std::size_t most = encoded_bytes({Codec::quantized, kMostBits}, count);
  for (float** floats : {&b.in, &b.out, &b.exact}) *floats = take<float>(4 * count);
  for (std::byte*& coded : b.coded) coded = take<std::byte>(most);
  b.target = take<std::byte>(most);
  b.copy_from = take<char>(8 * count);
  b.copy_to = take<char>(8 * count);
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      sum += (float)(state >> 40) * 0x1p-24f - 0.5f;
    }
    b.in[i] = b.exact[i] = sum;
  }
  return b;
}

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Runs `kernel`, which moves `bytes` bytes, and the copy in turns; prints their ratio.
void measure(const Memory& b, double seconds, std::size_t bytes,
             const std::function<void()>& kernel) {
  const auto copy = [&] { memcpy(b.copy_to, b.copy_from, bytes / 2); };
  const std::size_t inner = std::max<std::size_t>(1, (std::size_t(4) << 20) / b.count);
  std::vector<double> kernel_times, copy_times;
  kernel();
  const double end = now() + seconds;
  while (now() < end || kernel_times.size() < 5) {
    const double start = now();
    for (std::size_t k = 0; k < inner; ++k) kernel();
    const double middle = now();
    for (std::size_t k = 0; k < inner; ++k) {
      copy();
      asm volatile("" ::: "memory");
    }
    copy_times.push_back(now() - middle);
    kernel_times.push_back(middle - start);
  }
  const double time = median(kernel_times);
  printf("  %5.2f (%5.1f GB/s)", median(copy_times) / time,
         4 * (double)(b.count * inner) / time * 1e-9);
  fflush(stdout);
}

void measure_format(const Memory& b, double seconds, const char* what, const Kernels& path,
                    const Format& format) {
  const std::size_t coded = encoded_bytes(format, b.count), floats = 4 * b.count;
  const RandomStream random{1, 2, 3, 4};
  for (std::byte* piece : b.coded)
    path.encode(format, random, b.in, nullptr, b.count, piece, nullptr);
  printf("%-8s %-14s", path.name, what);
  measure(b, seconds, floats + coded,
          [&] { path.encode(format, random, b.in, nullptr, b.count, b.target, nullptr); });
  measure(b, seconds, coded + floats,
          [&] { path.decode(format, b.coded[0], b.count, b.out, nullptr); });
  memset(b.out, 0, floats);
  measure(b, seconds, coded + 2 * floats,
          [&] { path.decode_add(format, b.coded[0], b.count, b.out, nullptr); });
  const Addend addends[] = {
      {b.coded[0], nullptr}, {nullptr, b.exact}, {b.coded[1], nullptr}, {b.coded[2], nullptr}};
  for (const int addend_count : {2, 4})
    measure(b, seconds, std::size_t(addend_count) * coded + 2 * floats, [&] {
      path.sum_encode(format, random, addends, addend_count, nullptr, nullptr, b.count, b.target,
                      b.out, nullptr);
    });
  printf("\n");
}

struct Row {
  const char* name;
  Format format;
};
constexpr Row kRows[] = {
    {"16 bits", {Codec::quantized, 16, false, 2048}},
    {"15 bits", {Codec::quantized, 15, false, 2048}},
    {"12 bits", {Codec::quantized, 12, false, 2048}},
    {"9 bits", {Codec::quantized, 9, false, 2048}},
    {"8 bits", {Codec::quantized, 8, false, 2048}},
    {"7 bits", {Codec::quantized, 7, false, 2048}},
    {"6 bits", {Codec::quantized, 6, false, 2048}},
    {"5 bits", {Codec::quantized, 5, false, 2048}},
    {"4 bits", {Codec::quantized, 4, false, 2048}},
    {"3 bits", {Codec::quantized, 3, false, 2048}},
    {"2 bits", {Codec::quantized, 2, false, 2048}},
    {"1 bits", {Codec::quantized, 1, false, 2048}},
    {"16 stochastic", {Codec::quantized, 16, true, 2048}},
    {"8 stochastic", {Codec::quantized, 8, true, 2048}},
    {"4 stochastic", {Codec::quantized, 4, true, 2048}},
    {"packed 16", {Codec::packed, 32, false, longest_packed_tile(32)}},
    {"packed 12", {Codec::packed, 24, false, longest_packed_tile(24)}},
    {"packed 8", {Codec::packed, 16, false, longest_packed_tile(16)}},
    {"packed 4", {Codec::packed, 8, false, longest_packed_tile(8)}},
    {"packed 2.5", {Codec::packed, 5, false, longest_packed_tile(5)}},
    {"packed 2", {Codec::packed, 4, false, longest_packed_tile(4)}},
    {"packed 1", {Codec::packed, 2, false, longest_packed_tile(2)}},
    {"fp16", {Codec::fp16}},
    {"bf16", {Codec::bf16}},
};

bool starts(const char* text, const char* start) {
  return strncmp(text, start, strlen(start)) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 0.15;
  const char* const wanted_path = argc > 2 ? argv[2] : "";
  const char* const wanted_codec = argc > 3 ? argv[3] : "";
  const std::size_t wanted_count = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 0;
  for (const std::size_t count : {std::size_t(64) << 20, std::size_t(64) << 10}) {
    if (wanted_count != 0 && wanted_count != count) continue;
    printf(
        "%zu floats (%zu KiB): share of a plain copy of the same bytes, and GB of "
        "floats a second\n%-8s %-14s  %-18s%-18s%-18s%-18s%s\n",
        count, count * 4 >> 10, "path", "codec", "encode", "decode", "decode_add",
        "sum_encode of 2", "of 4");
    const Memory memory = make_memory(count);
    for (const CpuPath which : {CpuPath::avx512, CpuPath::avx2, CpuPath::generic}) {
      if (!usable(which)) continue;
      const Kernels& path = *cpu_kernels(which);
      for (const Row& row : kRows)
        if (starts(path.name, wanted_path) && starts(row.name, wanted_codec))
          measure_format(memory, seconds, row.name, path, row.format);
    }
  }
}
