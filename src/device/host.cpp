// SPDX-License-Identifier: BSD-3-Clause
// The row of ordinary memory. Its functions complete the work at once, so every event is reached.

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "device/device.h"
#include "kernels/cpu/cpu.h"

namespace slimpi::device {

namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kHugePage = std::size_t(2) << 20;

bool locate_in_host(const void*, Location*) {
  return true;
}

Status allocate(const Location&, std::size_t bytes, Place, void** memory) {
  const bool huge = bytes >= 2 * kHugePage;
  const std::size_t alignment = huge ? kHugePage : kAlignment;
  std::size_t size = 0;
  void* found = nullptr;
  if (!__builtin_add_overflow(bytes == 0 ? 1 : bytes, alignment - 1, &size))
    found = std::aligned_alloc(alignment, size / alignment * alignment);
  if (found == nullptr)
    return fail(Status::no_memory, "no memory for a buffer of " + std::to_string(bytes) + " bytes");
  // Ask for huge pages, because with 4 KiB pages walking the page tables takes longer than the
  // arithmetic. The request is only a hint.
  if (huge) (void)madvise(found, size / alignment * alignment, MADV_HUGEPAGE);
  *memory = found;
  return Status::ok;
}

void release(void* memory, Place) {
  std::free(memory);
}

Status open_stream(const Location&, Stream** stream) {
  *stream = nullptr;
  return Status::ok;
}

void close_stream(Stream*) {}

Status copy(void* to, const void* from, std::size_t bytes, Stream*) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
  return Status::ok;
}

// Copies whole cache lines by non-temporal stores, which do not read the line first. A fence
// follows, because these stores are not ordered with other stores.
Status copy_nontemporal(void* to, const void* from, std::size_t bytes, Stream* stream) {
#if defined(__SSE2__)
  constexpr std::size_t kLine = 64;
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const std::size_t ahead = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  if (bytes < ahead + kLine || to == from) return copy(to, from, bytes, stream);
  std::memcpy(out, in, ahead);
  std::size_t at = ahead;
  for (; at + kLine <= bytes; at += kLine) {
    __m128i parts[4];
    for (std::size_t i = 0; i < 4; ++i)
      parts[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + at) + i);
    for (std::size_t i = 0; i < 4; ++i)
      _mm_stream_si128(reinterpret_cast<__m128i*>(out + at) + i, parts[i]);
  }
  std::memcpy(out + at, in + at, bytes - at);
  _mm_sfence();
  return Status::ok;
#else
  return copy(to, from, bytes, stream);
#endif
}

Status record(Stream*, std::uint64_t* event) {
  *event = 1;
  return Status::ok;
}

Status query(Stream*, std::uint64_t, bool* reached) {
  *reached = true;
  return Status::ok;
}

Status wait_event(Stream*, Stream*, std::uint64_t) {
  return Status::ok;
}

const kernels::Kernels* best_kernels() {
  static const kernels::Kernels* const best = kernels::cpu_kernels(CpuPath::automatic);
  return best;
}

}  // namespace

const Device& host() {
  static constexpr Device row = [] {
    Device host = {"host",       false, locate_in_host, allocate, release,    open_stream,
                   close_stream, copy,  record,         query,    wait_event, best_kernels};
    host.copy_nontemporal = copy_nontemporal;
    return host;
  }();
  return row;
}

double squared_norm(const float* values, std::uint64_t count) {
  // compare(a, a) yields the sum of (a - a)^2, which is 0, and the sum of a^2.
  double sums[2];
  best_kernels()->compare(values, values, count, sums, nullptr);
  return sums[1];
}

}  // namespace slimpi::device
