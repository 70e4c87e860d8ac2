// SPDX-License-Identifier: BSD-3-Clause
// Checks the pointers that a kernel of kernels/cuda is given. Values must lie in memory of its GPU.
// Encoded values may also lie in pinned memory that is mapped for kernels, unless the kernel uses
// atomics on them.
#include "tests/helper/devices/kernel_pointers.h"

#include <cstring>
#include <string_view>

#include "kernels/cuda/arguments.h"
#include "tests/helper/devices/emulated_cuda.h"
#include "tests/helper/devices/fake_state.h"
#include "tests/helper/devices/protected_memory.h"

#undef threadIdx
#undef blockIdx
#undef __shared__

namespace slimpi::test {

namespace {

using namespace kernels;
using namespace kernels::cuda;

// `made` are encoded values that the kernel writes.
enum class Kind { values, encoded, made };

void values(const auto& use, auto*&... pointers) {
  (use(pointers, Kind::values), ...);
}
void addends(const auto& use, Addend* list, int count) {
  for (int i = 0; i < count; ++i) {
    use(list[i].encoded, Kind::encoded);
    use(list[i].exact, Kind::values);
  }
}

// Calls `use` for each pointer in a kernel's arguments that the kernel follows.
void each_pointer(EncodeArguments& a, const auto& use) {
  values(use, a.in, a.residual);
  use(a.out, Kind::made);
}
void each_pointer(SumArguments& a, const auto& use) {
  addends(use, a.addends, a.addend_count);
  values(use, a.residual, a.result);
  use(a.out, Kind::made);
}
void each_pointer(PackArguments& a, const auto& use) {
  values(use, a.in, a.added, a.residual, a.decoded);
  use(a.out, Kind::made);
}
void each_pointer(DecodeArguments& a, const auto& use) {
  use(a.in, Kind::encoded);
  values(use, a.out);
}
void each_pointer(PlainSumArguments& a, const auto& use) {
  addends(use, a.addends, a.addend_count);
  values(use, a.residual, a.result);
  use(a.out, Kind::made);
}
void each_pointer(PackedSumArguments& a, const auto& use) {
  addends(use, a.addends, a.addend_count);
  values(use, a.residual, a.result);
  use(a.out, Kind::made);
}
void each_pointer(PackedDecodeArguments& a, const auto& use) {
  use(a.in, Kind::encoded);
  values(use, a.out);
}
void each_pointer(PairSumArguments& a, const auto& use) {
  for (int i = 0; i < a.addend_count; ++i) values(use, a.addends[i]);
  values(use, a.out);
}
void each_pointer(PlainDecodeArguments& a, const auto& use) {
  use(a.in, Kind::encoded);
  values(use, a.out);
}
void each_pointer(CombineArguments& a, const auto& use) {
  values(use, a.x, a.y, a.out);
}
void each_pointer(FillArguments& a, const auto& use) {
  values(use, a.out);
}
void each_pointer(FindArguments& a, const auto& use) {
  values(use, a.in, a.found);
}
void each_pointer(CompareArguments& a, const auto& use) {
  if (a.count > 0) values(use, a.a, a.b);  // a kernel that runs for no values reads neither
  values(use, a.partial, a.result);
}
void each_pointer(LowRankArguments& a, const auto& use) {
  values(use, a.factors.p, a.factors.q, a.in, a.residual, a.out);
}

// Checks all pointers; null stands for no memory. `atomics`: whether the kernel uses atomics to
// write encoded values.
void check(auto& arguments, bool atomics) {
  each_pointer(arguments, [atomics](const void* pointer, Kind kind) {
    const bool mapped = kind == Kind::encoded || (kind == Kind::made && !atomics);
    if (pointer != nullptr && !is_for_kernels(pointer, mapped))
      die(kind == Kind::values ? "a kernel is given values that are not in memory of its GPU"
                               : "a kernel is given encoded values in memory that is not for it");
  });
}

void turn(auto& arguments, int device) {
  each_pointer(arguments, [device](auto*& pointer, Kind) {
    const Allocation* const found = find_allocation(reinterpret_cast<std::uintptr_t>(pointer));
    if (found != nullptr && found->device == device) pointer = reach(pointer);
  });
}

struct Row {
  const char* kernel;
  void (*check)(void* arguments);
  void (*turn)(void* arguments, int device);
};
constexpr bool uses_atomics(std::string_view kernel) {
  return kernel.find("extremes") != kernel.npos || kernel.find("pack_") == 0;
}
constexpr Row kRows[] = {
#define SLIMPI_ROW(module, name, Arguments)                                                  \
  {"slimpi_" #name,                                                                          \
   [](void* arguments) { check(*static_cast<Arguments*>(arguments), uses_atomics(#name)); }, \
   [](void* arguments, int device) { turn(*static_cast<Arguments*>(arguments), device); }},
    SLIMPI_CUDA_KERNELS(SLIMPI_ROW)
#undef SLIMPI_ROW
};

const Row& row(const EmulatedKernel& kernel) {
  for (const Row& one : kRows)
    if (std::strcmp(one.kernel, kernel.name) == 0) return one;
  die("a kernel that is not in kernels/cuda/arguments.h");
}

}  // namespace

void expect_reachable(const EmulatedKernel& kernel, void* arguments) {
  row(kernel).check(arguments);
}

void reach_arguments(const EmulatedKernel& kernel, void* arguments, int device) {
  row(kernel).turn(arguments, device);
}

}  // namespace slimpi::test
