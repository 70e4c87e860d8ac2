// SPDX-License-Identifier: BSD-3-Clause
#include "tests/helper/guarded_device.h"

#include <string>

#include "device/part.h"
#include "tests/helper/guarded_kernels.h"
#include "tests/helper/guarded_memory.h"
#include "tests/helper/guarded_stream.h"

namespace slimpi::test {

namespace {

using device::Place;
using device::Stream;

const device::Library* g_library = nullptr;

Status no_memory(std::size_t bytes) {
  const std::string text = "the guarded device has no " + std::to_string(bytes) + " bytes left";
  return g_library->fail(Status::no_memory, text.c_str());
}

bool owns(const void* pointer) {
  return guarded_owns(pointer);
}

Status allocate(const void* like, std::size_t bytes, Place place, void** memory) {
  if (!guarded_owns(like)) die("allocate() near memory that is not of this device");
  void* found = place == Place::device ? guarded_take(bytes) : staging_take(bytes);
  if (found == nullptr) return no_memory(bytes);
  *memory = found;
  return Status::ok;
}

void release(void* memory, Place place) {
  if (memory == nullptr) return;
  GuardedStream::run_all();
  if (place == Place::device)
    guarded_give_back(memory);
  else
    staging_give_back(memory);
}

Status open_stream(const void* like, Stream** stream) {
  if (!guarded_owns(like)) die("open_stream() near memory that is not of this device");
  *stream = GuardedStream::open();
  return Status::ok;
}

void close_stream(Stream* stream) {
  GuardedStream::close(stream);
}

Status copy(void* to, const void* from, std::size_t bytes, Stream* stream) {
  if (bytes == 0) return Status::ok;
  GuardedStream::of(stream).queue([=] {
    const Unlocked unlocked({to, from});
    guarded_copy(to, from, bytes);
  });
  return Status::ok;
}

Status mark(Stream* stream, std::uint64_t* mark) {
  *mark = GuardedStream::of(stream).mark();
  return Status::ok;
}

Status poll(Stream* stream, std::uint64_t mark, bool* reached) {
  *reached = GuardedStream::of(stream).poll(mark);
  return Status::ok;
}

Status wait_for(Stream* stream, Stream* other, std::uint64_t mark) {
  GuardedStream::of(other);  // dies if it is none
  GuardedStream::of(stream).queue([=] { GuardedStream::of(other).run_until(mark); });
  return Status::ok;
}

const kernels::Kernels* kernels() {
  return &guarded_kernels();
}

constexpr device::Device kRow = {"guarded",    true, owns, allocate, release,  open_stream,
                                 close_stream, copy, mark, poll,     wait_for, kernels};

}  // namespace
}  // namespace slimpi::test

using namespace slimpi;

extern "C" {

SLIMPI_GUARDED const device::Device* slimpi_device_part(int version,
                                                        const device::Library* library) {
  if (version != device::kPartVersion) return nullptr;
  test::g_library = library;
  return &test::kRow;
}

void* slimpi_guarded_allocate(size_t bytes) {
  return test::guarded_take(bytes);
}

void slimpi_guarded_free(void* memory) {
  if (memory == nullptr) return;
  test::GuardedStream::run_all();
  test::guarded_give_back(memory);
}

void slimpi_guarded_write(void* to, const void* from, size_t bytes) {
  const test::Unlocked unlocked({to});
  test::guarded_copy(to, from, bytes);
}

void slimpi_guarded_read(void* to, const void* from, size_t bytes) {
  const test::Unlocked unlocked({from});
  test::guarded_copy(to, from, bytes);
}

size_t slimpi_guarded_used(void) {
  return test::guarded_used();
}

void slimpi_guarded_limit(size_t bytes) {
  test::guarded_limit(bytes);
}

unsigned long slimpi_guarded_allocations(void) {
  return test::guarded_allocations();
}

unsigned long slimpi_guarded_work(void) {
  return test::GuardedStream::queued();
}

}  // extern "C"
