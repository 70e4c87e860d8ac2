// SPDX-License-Identifier: BSD-3-Clause
#include "tests/helper/guarded_device.h"

#include <cstdio>
#include <cstring>
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
unsigned long long g_host_bytes = 0;  // guarded by guarded_mutex()

Status no_memory(std::size_t bytes) {
  const std::string text = "the guarded device has no " + std::to_string(bytes) + " bytes left";
  return g_library->fail(Status::no_memory, text.c_str());
}

Status lost() {
  return g_library->fail(Status::device, "the guarded device is lost");
}

bool owns(const void* pointer) {
  return guarded_owns(pointer);
}

Status allocate(const void* like, std::size_t bytes, Place place, void** memory) {
  if (!guarded_owns(like)) die("allocate() near memory that is not of this device");
  if (GuardedStream::lost()) return lost();
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
  if (GuardedStream::lost()) return lost();
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
    if (!guarded_owns(to) || !guarded_owns(from)) g_host_bytes += bytes;
    guarded_copy(to, from, bytes);
  });
  return GuardedStream::lost() ? lost() : Status::ok;
}

Status mark(Stream* stream, std::uint64_t* mark) {
  *mark = GuardedStream::of(stream).mark();
  return GuardedStream::lost() ? lost() : Status::ok;
}

Status poll(Stream* stream, std::uint64_t mark, bool* reached) {
  *reached = GuardedStream::of(stream).poll(mark);
  return GuardedStream::lost() ? lost() : Status::ok;
}

Status wait_for(Stream* stream, Stream* other, std::uint64_t mark) {
  GuardedStream::of(other);  // dies if it is none
  GuardedStream::of(stream).queue_until([=] { return GuardedStream::of(other).try_until(mark); });
  return GuardedStream::lost() ? lost() : Status::ok;
}

bool g_keeps_to_itself = false;

Status offer(const void* memory, device::Sharing::Handle* handle) {
  if (GuardedStream::lost()) return lost();
  if (g_keeps_to_itself) return g_library->fail(Status::unsupported, "it keeps to itself");
  GuardedOffer offer{};
  guarded_offer(memory, &offer);
  static_assert(sizeof offer <= sizeof *handle);
  std::memcpy(handle, &offer, sizeof offer);
  return Status::ok;
}

Status open(const void* like, const device::Sharing::Handle& handle, void** memory) {
  if (!guarded_owns(like)) die("open() near memory that is not of this device");
  GuardedOffer offer{};
  std::memcpy(&offer, &handle, sizeof offer);
  *memory = guarded_open(offer);
  return *memory != nullptr ? Status::ok
                            : g_library->fail(Status::device, "another process's memory is closed");
}

void close(void* memory) {
  GuardedStream::run_all();
  guarded_close(memory);
}

std::string g_bus_id;

Status bus_id(const void*, char* text, std::size_t bytes) {
  if (g_bus_id.empty()) return g_library->fail(Status::unsupported, "it is not on a bus");
  std::snprintf(text, bytes, "%s", g_bus_id.c_str());
  return Status::ok;
}

constexpr device::Sharing kSharing = {offer, open, close};

const kernels::Kernels* kernels() {
  return &guarded_kernels();
}

constexpr device::Device kRow = {"guarded",   true,         owns,    allocate,  release,
                                 open_stream, close_stream, copy,    mark,      poll,
                                 wait_for,    kernels,      nullptr, &kSharing, bus_id};

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

unsigned long long slimpi_guarded_host_bytes(void) {
  const std::lock_guard lock(test::guarded_mutex());
  return test::g_host_bytes;
}

void slimpi_guarded_lose(unsigned long pieces) {
  test::GuardedStream::lose(pieces);
}

void slimpi_guarded_repair(void) {
  test::GuardedStream::repair();
}

void slimpi_guarded_keep_to_itself(void) {
  test::g_keeps_to_itself = true;
}

void slimpi_guarded_put_on_bus(const char* id) {
  test::g_bus_id = id;
}

unsigned long slimpi_guarded_work(void) {
  return test::GuardedStream::queued();
}

}  // extern "C"
