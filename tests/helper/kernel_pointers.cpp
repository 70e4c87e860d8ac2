// SPDX-License-Identifier: BSD-3-Clause
// What a kernel of kernels/cuda is given: values lie in memory of its GPU; encoded values may lie
// in pinned memory that is mapped for kernels, too, unless atomics work on them.
#include <cstring>
#include <initializer_list>
#include <string_view>

#include "kernels/cuda/arguments.h"
#include "tests/helper/emulated_cuda.h"
#include "tests/helper/fake_kernels.h"
#include "tests/helper/fake_state.h"
#include "tests/helper/protected_memory.h"

#undef threadIdx
#undef blockIdx
#undef __shared__

namespace slimpi::test {

namespace {

using namespace kernels;
using namespace kernels::cuda;

// Null is no memory.
void values(std::initializer_list<const void*> pointers) {
  for (const void* const pointer : pointers)
    if (pointer != nullptr && !is_for_kernels(pointer, false))
      die("a kernel is given values that are not in memory of its GPU");
}

void encoded(const std::byte* pointer, bool mapped = true) {
  if (pointer != nullptr && !is_for_kernels(pointer, mapped))
    die("a kernel is given encoded values in memory that is not for it");
}

void addends(const Addend* list, int count) {
  for (int i = 0; i < count; ++i) {
    encoded(list[i].encoded);
    values({list[i].exact});
  }
}

void check(const EncodeArguments& a, bool atomics) {
  values({a.in, a.residual});
  encoded(a.out, !atomics);
}
void check(const SumArguments& a, bool atomics) {
  addends(a.addends, a.addend_count);
  values({a.residual, a.result});
  encoded(a.out, !atomics);
}
void check(const PackArguments& a, bool) {
  values({a.in, a.added, a.residual, a.decoded});
  encoded(a.out, false);
}
void check(const DecodeArguments& a, bool) {
  encoded(a.in);
  values({a.out});
}
void check(const PlainSumArguments& a, bool) {
  addends(a.addends, a.addend_count);
  values({a.residual, a.result});
  encoded(a.out);
}
void check(const PairSumArguments& a, bool) {
  for (int i = 0; i < a.addend_count; ++i) values({a.addends[i]});
  values({a.out});
}
void check(const PlainDecodeArguments& a, bool) {
  encoded(a.in);
  values({a.out});
}
void check(const CombineArguments& a, bool) {
  values({a.x, a.y, a.out});
}
void check(const FillArguments& a, bool) {
  values({a.out});
}
void check(const FindArguments& a, bool) {
  values({a.in, a.found});
}
void check(const CompareArguments& a, bool) {
  if (a.count > 0) values({a.a, a.b});  // it runs for none, too, and then reads neither
  values({a.partial, a.result});
}
void check(const LowRankArguments& a, bool) {
  values({a.factors.p, a.factors.q, a.in, a.residual, a.out});
}

struct Check {
  const char* kernel;
  void (*run)(const void* arguments);
};
constexpr Check kChecks[] = {
#define SLIMPI_CHECK(module, name, Arguments)                                   \
  {"slimpi_" #name, [](const void* arguments) {                                 \
     check(*static_cast<const Arguments*>(arguments),                           \
           std::string_view(#name).find("extremes") != std::string_view::npos); \
   }},
    SLIMPI_CUDA_KERNELS(SLIMPI_CHECK)
#undef SLIMPI_CHECK
};

}  // namespace

void expect_reachable(const EmulatedKernel& kernel, const void* arguments) {
  for (const Check& one : kChecks)
    if (std::strcmp(one.kernel, kernel.name) == 0) one.run(arguments);
}

}  // namespace slimpi::test
