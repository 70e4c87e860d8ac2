// SPDX-License-Identifier: BSD-3-Clause
// THE table of algorithms. A name of SLIMPI_ALGORITHM that has no row is refused.
#include "algorithm/algorithm.h"
#include "algorithm/hierarchical.h"

namespace slimpi::algorithm {

namespace {
using kernels::Coding;

constexpr Algorithm kTable[] = {
    {.name = "bytegrad", .coding = Coding::quantized, .run = run_hierarchical},
    {.name = "qsgd",
     .coding = Coding::quantized,
     .rounding = Rounding::stochastic,
     .flat = true,
     .run = run_hierarchical},
    {.name = "fp16", .coding = Coding::fp16, .run = run_hierarchical},
    {.name = "bf16", .coding = Coding::bf16, .run = run_hierarchical},
    {.name = "allreduce", .coding = Coding::float32, .run = run_hierarchical},
};
}  // namespace

const Algorithm* find(std::string_view name) {
  for (const Algorithm& row : kTable)
    if (name == row.name) return &row;
  return nullptr;
}

std::span<const Algorithm> all() {
  return kTable;
}

}  // namespace slimpi::algorithm
