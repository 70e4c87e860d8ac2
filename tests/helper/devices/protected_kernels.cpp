// SPDX-License-Identifier: BSD-3-Clause
#include "tests/helper/devices/protected_kernels.h"

#include <utility>
#include <vector>

#include "kernels/cpu/cpu.h"
#include "tests/helper/devices/protected_memory.h"
#include "tests/helper/devices/protected_stream.h"

namespace slimpi::test {

namespace {

using kernels::Addend;
using kernels::Format;
using kernels::Kernels;
using kernels::RandomStream;
using kernels::Stream;

const Kernels& generic() {
  return *kernels::cpu_kernels(CpuPath::generic);
}

// Ends the program unless the pointer is to memory that may hold encoded values: that of the device
// or, for quantizers with short buckets and for all other codecs, staging memory.
void expect_encoded(const Format& format, const std::byte* pointer) {
  if (pointer == nullptr || protected_owns(pointer)) return;
  const bool shorter = format.codec != kernels::Codec::quantized ||
                       (format.bucket != 0 && format.bucket <= kProtectedStagingBucket);
  if (!shorter || !staging_owns(pointer))
    die("a kernel is given encoded values in memory that is not for it");
}

// Queues `work`, which uses the values that `pointers` point to, after a check that they are in
// this device's memory. Null stands for no memory.
void launch(Stream* stream, std::size_t count, const std::vector<const void*>& pointers,
            auto work) {
  for (const void* pointer : pointers)
    if (pointer != nullptr && count != 0 && !protected_owns(pointer))
      die("a kernel is given memory that is not of this device");
  ProtectedStream::of(stream).queue(std::move(work));
}

void encode(const Format& format, const RandomStream& random, const float* in, float* residual,
            std::size_t count, std::byte* out, Stream* stream) {
  expect_encoded(format, out);
  launch(stream, count, {in, residual}, [=] {
    generic().encode(format, random, reach(in), reach(residual), count, reach(out), nullptr);
  });
}

void decode(const Format& format, const std::byte* in, std::size_t count, float* out,
            Stream* stream) {
  expect_encoded(format, in);
  launch(stream, count, {out},
         [=] { generic().decode(format, reach(in), count, reach(out), nullptr); });
}

void decode_add(const Format& format, const std::byte* in, std::size_t count, float* out,
                Stream* stream) {
  expect_encoded(format, in);
  launch(stream, count, {out},
         [=] { generic().decode_add(format, reach(in), count, reach(out), nullptr); });
}

void sum_encode(const Format& format, const RandomStream& random, const Addend* addends,
                int addend_count, const float* carry, float* residual, std::size_t count,
                std::byte* out, float* result, Stream* stream) {
  if (addend_count > kernels::kMaxAddends) die("sum_encode() is given too many addends");
  std::vector<Addend> list(addends, addends + addend_count);
  std::vector<const void*> pointers = {carry, residual, result};
  expect_encoded(format, out);
  for (const Addend& addend : list) {
    expect_encoded(format, addend.encoded);
    pointers.push_back(addend.exact);
  }
  launch(stream, count, pointers, [=]() mutable {
    for (Addend& addend : list) {
      addend.encoded = reach(addend.encoded);
      addend.exact = reach(addend.exact);
    }
    generic().sum_encode(format, random, list.data(), addend_count, reach(carry), reach(residual),
                         count, reach(out), reach(result), nullptr);
  });
}

void sum(const float* const* in, int in_count, std::size_t count, float* out, Stream* stream) {
  if (in_count > kernels::kMaxAddends) die("sum() is given too many inputs");
  std::vector<const float*> list(in, in + in_count);
  std::vector<const void*> pointers(in, in + in_count);
  pointers.push_back(out);
  launch(stream, count, pointers, [=]() mutable {
    for (const float*& input : list) input = reach(input);
    generic().sum(list.data(), in_count, count, reach(out), nullptr);
  });
}

void combine(float a, const float* x, float b, const float* y, std::size_t count, float* out,
             Stream* stream) {
  launch(stream, count, {x, y, out},
         [=] { generic().combine(a, reach(x), b, reach(y), count, reach(out), nullptr); });
}

void find_beyond(const float* in, float limit, std::size_t count, int* found, Stream* stream) {
  if (!protected_owns(found)) die("a kernel is given memory that is not of this device");
  launch(stream, count, {in, found},
         [=] { generic().find_beyond(reach(in), limit, count, reach(found), nullptr); });
}

void compare(const float* a, const float* b, std::size_t count, double* result, Stream* stream) {
  if (!protected_owns(result)) die("a kernel is given memory that is not of this device");
  launch(stream, count, {a, b, result},
         [=] { generic().compare(reach(a), reach(b), count, reach(result), nullptr); });
}

void fill(float* out, float value, std::size_t count, Stream* stream) {
  launch(stream, count, {out}, [=] { generic().fill(reach(out), value, count, nullptr); });
}

void low_rank(const kernels::LowRank& factors, const float* in, float share, float* residual,
              std::size_t count, float* out, Stream* stream) {
  launch(stream, count, {factors.p, factors.q, in, residual, out}, [=] {
    kernels::LowRank reached = factors;
    reached.p = reach(factors.p), reached.q = reach(factors.q);
    generic().low_rank(reached, reach(in), share, reach(residual), count, reach(out), nullptr);
  });
}

}  // namespace

const Kernels& protected_kernels() {
  static constexpr Kernels table = {"protected", encode,      decode,  decode_add, sum_encode, sum,
                                    combine,     find_beyond, compare, fill,       low_rank};
  return table;
}

}  // namespace slimpi::test
