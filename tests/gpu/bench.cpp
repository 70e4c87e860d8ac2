// SPDX-License-Identifier: BSD-3-Clause
// Measures how fast the GPU's kernels are, as a share of a copy: the time of a device-to-device
// copy that reads and writes as many bytes in all as the kernel does, over the time of the kernel.
// The two take turns, and the medians of the turns are compared.
//
// Usage: bench [--json FILE] [--quick] [FLOATS...]
// By default 256 Ki floats, which are a message, and 1, 4, 16, 64 and 256 Mi.
// --quick runs everything once, to see that it runs. Exits 77 without a GPU. FILE gets a JSON list,
// one object on a line; it is complete after every row, so a run that is cut off leaves figures.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/plugins.h"
#include "tests/helper/devices/gpu.h"
#include "tests/kernels/data.h"

using namespace slimpi;
using namespace slimpi::kernels;
using namespace slimpi::test;

namespace {

// The row of GPU memory that is measured, and a stream of it.
const device::Device* g_row = nullptr;
device::Stream* g_stream = nullptr;

void check(Status status) {
  if (status == Status::ok) return;
  std::fprintf(stderr, "%s\n", failure_text().c_str());
  std::exit(1);
}

// Finds the row of `memory`, and opens the stream.
void open_row(const void* memory) {
  g_row = device::locate(memory).device;
  if (g_row == &device::host()) {
    std::fprintf(stderr, "slimpi-cuda.so is not built or cannot be loaded\n");
    std::exit(1);
  }
  check(g_row->open_stream(device::locate(memory), &g_stream));
}

class JsonRows {
 public:
  // Sets the file of the rows. Without a file, rows are dropped.
  void write_to(const char* file) { file_ = file; }

  // Adds a row, which is a JSON object. Ends the program if the file cannot be written.
  void add(const std::string& row) {
    if (file_ == nullptr) return;
    rows_ += (rows_.empty() ? "[\n  " : ",\n  ") + row;
    // The new file is renamed, because a run that is cut off while it writes would leave an empty
    // file.
    const std::string written = file_ + std::string(".new");
    std::FILE* const out = std::fopen(written.c_str(), "w");
    if (out != nullptr && std::fprintf(out, "%s\n]\n", rows_.c_str()) >= 0 &&
        std::fclose(out) == 0 && std::rename(written.c_str(), file_) == 0)
      return;
    std::perror(file_);
    std::exit(1);
  }

 private:
  const char* file_ = nullptr;
  std::string rows_;
};
JsonRows g_rows;

constexpr int kAddends = 4;
constexpr std::size_t kDifferent = 3 << 20;

int g_turns = 9, g_most = 200;  // a turn repeats the work up to so often

void finish() {
  std::uint64_t mark = 0;
  check(g_row->record(g_stream, &mark));
  for (bool reached = false; !reached;) check(g_row->query(g_stream, mark, &reached));
}

struct Memory {
  std::size_t count;
  float *in, *out, *residual;
  std::byte* coded[kAddends];
  char *from, *to;
};

double seconds_of(int times, const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) work();
  finish();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / times;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Measures a kernel, which reads and writes `bytes` bytes in all, beside a copy.
void measure(const Memory& memory, const char* codec, const char* what, std::size_t bytes,
             const std::function<void()>& kernel) {
  const auto copy = [&] { check(g_row->copy(memory.to, memory.from, bytes / 2, g_stream)); };
  const int times =
      std::min(g_most, int(std::max<std::size_t>(5, (std::size_t(256) << 20) / memory.count)));
  std::vector<double> kernels, copies;
  seconds_of(1, kernel);
  seconds_of(1, copy);
  for (int turn = 0; turn < g_turns; ++turn) {
    kernels.push_back(seconds_of(times, kernel));
    copies.push_back(seconds_of(times, copy));
  }
  const double time = median(kernels), floor = median(copies);
  std::printf("%10zu  %-24s %-16s %9.1f us %8.0f GB/s   copy %8.0f GB/s   %5.2f\n", memory.count,
              codec, what, time * 1e6, double(bytes) / time * 1e-9, double(bytes) / floor * 1e-9,
              floor / time);
  std::fflush(stdout);
  char row[400];
  std::snprintf(row, sizeof row,
                "{\"floats\": %zu, \"codec\": \"%s\", \"kernel\": \"%s\", \"bytes\": %zu, "
                "\"seconds\": %.9f, \"copy_seconds\": %.9f, \"share_of_copy\": %.4f}",
                memory.count, codec, what, bytes, time, floor, floor / time);
  g_rows.add(row);
}

void measure_format(const Memory& m, const char* name, const Format& format) {
  const Kernels& gpu = *g_row->kernels();
  const std::size_t floats = 4 * m.count, coded = encoded_bytes(format, m.count);
  // The kernel reads a bucket twice that does not fit into a block of threads. The time is still
  // compared with one pass.
  for (int a = 0; a < kAddends; ++a)
    gpu.encode(format, {1, unsigned(a), 3, 4}, m.in, nullptr, m.count, m.coded[a], g_stream);
  finish();
  measure(m, name, "encode", floats + coded, [&] {
    gpu.encode(format, {1, 2, 3, 4}, m.in, nullptr, m.count, m.coded[0], g_stream);
  });
  measure(m, name, "encode, feedback", 3 * floats + coded, [&] {
    gpu.encode(format, {1, 2, 3, 4}, m.in, m.residual, m.count, m.coded[0], g_stream);
  });
  measure(m, name, "decode", floats + coded,
          [&] { gpu.decode(format, m.coded[1], m.count, m.out, g_stream); });
  measure(m, name, "decode_add", 2 * floats + coded,
          [&] { gpu.decode_add(format, m.coded[1], m.count, m.out, g_stream); });
  Addend addends[kAddends];
  for (int a = 1; a < kAddends; ++a) addends[a] = {m.coded[a], nullptr};
  addends[0] = {nullptr, m.in};
  // Sums over two nodes, and over more.
  for (const int count : {2, kAddends}) {
    char what[32];
    std::snprintf(what, sizeof what, "sum_encode %d", count);
    measure(m, name, what, 2 * floats + std::size_t(count) * coded, [&] {
      gpu.sum_encode(format, {1, 2, 3, 4}, addends, count, nullptr, nullptr, m.count, m.coded[0],
                     m.out, g_stream);
    });
  }
}

void measure_size(std::size_t count) {
  Memory m{};
  m.count = count;
  const std::size_t bytes = 4 * count + 4096;
  m.in = static_cast<float*>(gpu_take(GPU_DEVICE, bytes));
  m.out = static_cast<float*>(gpu_take(GPU_DEVICE, bytes));
  m.residual = static_cast<float*>(gpu_take(GPU_DEVICE, bytes));
  for (std::byte*& coded : m.coded) coded = static_cast<std::byte*>(gpu_take(GPU_DEVICE, bytes));
  m.from = static_cast<char*>(gpu_take(GPU_DEVICE, 3 * bytes));
  m.to = static_cast<char*>(gpu_take(GPU_DEVICE, 3 * bytes));
  std::vector<float> values(count);
  // The CPU makes these values slowly, so only the first ones differ. The repetition does not
  // change the time of kernels.
  for (std::size_t i = 0; i < count; ++i)
    values[i] = i < kDifferent ? bell(1, i) : values[i - kDifferent];
  gpu_copy(m.in, GPU_DEVICE, values.data(), GPU_HOST, 4 * count);
  g_row->kernels()->fill(m.residual, 0, m.count, g_stream);
  for (const std::uint32_t bucket : {512u, 2048u, 0u})
    for (const int bits : {2, 4, 8})
      for (const bool stochastic : {false, true}) {
        if (stochastic && bucket != 2048) continue;
        char name[64];
        std::snprintf(name, sizeof name, "%d bits, bucket %u%s", bits, bucket,
                      stochastic ? ", stochastic" : "");
        measure_format(m, name, quantized(bits, bucket, stochastic));
      }
  measure_format(m, "3 bits, bucket 2048", quantized(3, 2048));
  // An encoder reads the values twice. The time is still compared with one pass.
  for (const int bits : {2, 4, 8}) {
    char name[64];
    std::snprintf(name, sizeof name, "packed, %d bits", bits);
    measure_format(m, name, packed(2 * bits, longest_packed_tile(2 * bits)));
  }
  measure_format(m, "fp16", {Codec::fp16, 8, false, 2048});
  measure_format(m, "bf16", {Codec::bf16, 8, false, 2048});
  for (void* memory : {(void*)m.in, (void*)m.out, (void*)m.residual, (void*)m.from, (void*)m.to})
    gpu_give_back(GPU_DEVICE, memory);
  for (std::byte* coded : m.coded) gpu_give_back(GPU_DEVICE, coded);
}

}  // namespace

int main(int argc, char** argv) {
  if (const int skipped = gpu_open(); skipped != 0) return skipped;
  device::load_plugins();
  void* const memory = gpu_take(GPU_DEVICE, 4);
  open_row(memory);
  std::vector<std::size_t> counts;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc)
      g_rows.write_to(argv[++i]);
    else if (std::strcmp(argv[i], "--quick") == 0)
      g_turns = g_most = 1;
    else
      counts.push_back(std::strtoull(argv[i], nullptr, 10));
  }
  if (counts.empty()) {
    counts.push_back(std::size_t(256) << 10);
    for (int mi = 1; mi <= 256; mi *= 4) counts.push_back(std::size_t(mi) << 20);
  }
  std::printf("%10s  %-24s %-16s %12s %13s %18s   %s\n", "floats", "codec", "kernel", "time",
              "bytes moved", "", "share of the copy");
  for (const std::size_t count : counts) measure_size(count);
  g_row->close_stream(g_stream);
  gpu_give_back(GPU_DEVICE, memory);
  return 0;
}
