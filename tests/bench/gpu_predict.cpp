// SPDX-License-Identifier: BSD-3-Clause
// Prints how long sums of GPU buffers between nodes would take, by the clock of
// tests/helper/gpu_clock.h: a prediction, nothing is measured. Usage: gpu_predict [BITS], or
// gpu_predict calls MIB NODES for the functions of the driver that a rank calls.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/helper/gpu_clock.h"

using namespace slimpi::test;

namespace {

constexpr double kGigabits[] = {25, 100, 200, 400};

void print_row(std::uint64_t mib, int nodes, int bits) {
  std::printf("| %llu MiB, %d nodes |", static_cast<unsigned long long>(mib), nodes);
  Prediction last;
  for (const double rate : kGigabits) {
    Costs costs;
    costs.link = rate * 1e9 / 8;
    const double sent = double(mib << 18) * bits / 8 * 2 * (nodes - 1) / nodes;
    last = predict(costs, nodes, mib << 18, bits);
    std::printf(" %.2f (%.2f) |", last.seconds * 1e3, sent / costs.link * 1e3);
  }
  std::printf(" %.2f | %.2f | %.2f | %llu |\n", last.cpu * 1e3, last.kernels * 1e3, last.bus * 1e3,
              static_cast<unsigned long long>(last.calls));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 3 && std::strcmp(argv[1], "calls") == 0) {
    const Prediction one =
        predict({}, std::atoi(argv[3]), std::strtoull(argv[2], nullptr, 10) << 18, 8);
    std::printf("%llu\n", static_cast<unsigned long long>(one.calls));
    return 0;
  }
  const int bits = argc > 1 ? std::atoi(argv[1]) : 8;
  if (bits < 1 || bits > slimpi::kernels::kMostBits) {
    std::fprintf(stderr, "gpu_predict: bits are 1 to 16, not %s\n", argv[1]);
    return 2;
  }
  std::printf(
      "A prediction: milliseconds of a sum at %d bits (and what its bytes take on the link).\n\n",
      bits);
  std::printf("| sum |");
  for (const double rate : kGigabits) std::printf(" %.0f Gbit/s |", rate);
  std::printf(" CPU | kernels | bus | driver calls |\n| --- |");
  for (int column = 0; column < 8; ++column) std::printf(" --- |");
  std::printf("\n");
  for (const std::uint64_t mib : {1, 4, 16, 64, 256})
    for (const int nodes : {2, 4, 8}) print_row(mib, nodes, bits);
  return 0;
}
