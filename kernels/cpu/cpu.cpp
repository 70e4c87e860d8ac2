// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cpu/cpu.h"

#include "config.h"

namespace slimpi::kernels {

namespace generic {
extern const Kernels table;
}
namespace avx2 {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}

namespace {

struct Row {
  CpuPath path;
  const Kernels* table;
  bool (*runs_here)();
};

// The tables, fastest first. Each row tests for the CPU features that configure.ac compiles it
// with.
constexpr Row kRows[] = {
#ifdef WITH_AVX512
    {CpuPath::avx512, &avx512::table,
     [] {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
              __builtin_cpu_supports("f16c");
     }},
#endif
#ifdef WITH_AVX2
    {CpuPath::avx2, &avx2::table,
     [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"); }},
#endif
    {CpuPath::generic, &generic::table, [] { return true; }},
};

}  // namespace

const Kernels* cpu_kernels(CpuPath path) {
  for (const Row& row : kRows)
    if ((path == CpuPath::automatic || path == row.path) && row.runs_here()) return row.table;
  return nullptr;
}

bool usable(CpuPath path) {
  return cpu_kernels(path) != nullptr;
}

}  // namespace slimpi::kernels
