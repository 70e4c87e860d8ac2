// SPDX-License-Identifier: BSD-3-Clause
// The table of all algorithms. A value of SLIMPI_ALGORITHM without a row here is refused.
#include "algorithm/algorithm.h"
#include "algorithm/blas.h"
#include "algorithm/decentralized.h"
#include "algorithm/hierarchical.h"
#include "algorithm/hook.h"
#include "algorithm/low_precision_decentralized.h"
#include "algorithm/powersgd.h"

namespace slimpi::algorithm {

namespace {
using kernels::Codec;

// A row for an algorithm with a reduce-scatter and an all-gather between nodes.
constexpr Algorithm reduce_scatter_family(const char* name, Codec codec) {
  return {.name = name,
          .codec = codec,
          .exact = codec == Codec::float32,
          .within_budget = codec == Codec::quantized || codec == Codec::float32,
          .run = run_hierarchical,
          .reserve = reserve_hierarchical,
          .reserve_state = reserve_residual};
}

constexpr Algorithm low_rank(const char* name, bool shapes) {
  return {.name = name,
          .codec = Codec::float32,
          .keeps_state = true,
          .finds_nonfinite = true,
          .error_feedback = true,
          .start = 10,
          .shapes = shapes,
          .run = run_powersgd,
          .reserve = reserve_none,
          .reserve_state = reserve_powersgd,
          .missing = blas_missing};
}

constexpr Algorithm kTable[] = {
    reduce_scatter_family("bytegrad", Codec::quantized),
    {.name = "qsgd",
     .codec = Codec::quantized,
     .rounding = Rounding::stochastic,
     .flat = true,
     .within_budget = true,
     .run = run_hierarchical,
     .reserve = reserve_hierarchical,
     .reserve_state = reserve_residual},
    reduce_scatter_family("fp16", Codec::fp16),
    reduce_scatter_family("bf16", Codec::bf16),
    reduce_scatter_family("allreduce", Codec::float32),
    low_rank("powersgd", true),
    low_rank("batched_powersgd", false),
    {.name = "hook",
     .codec = Codec::float32,
     .same_bytes = false,
     .keeps_state = true,
     .run = run_hook,
     .reserve = reserve_hook,
     .reserve_state = reserve_hook_state,
     .open = open_hook},
    {.name = "decentralized",
     .codec = Codec::float32,
     .same_bytes = false,
     .talks_to_peers = true,
     .run = run_decentralized,
     .reserve = reserve_decentralized},
    {.name = "low_precision_decentralized",
     .codec = Codec::quantized,
     .same_bytes = false,
     .talks_to_peers = true,
     .keeps_state = true,
     .finite_only = true,
     .run = run_low_precision,
     .reserve = reserve_low_precision,
     .reserve_state = reserve_replicas},
};
}  // namespace

const Algorithm* find(std::string_view name) {
  if (name.starts_with("hook:")) name = "hook";
  for (const Algorithm& row : kTable)
    if (name == row.name) return &row;
  return nullptr;
}

std::span<const Algorithm> all() {
  return kTable;
}

}  // namespace slimpi::algorithm
