// SPDX-License-Identifier: BSD-3-Clause
#include "tests/helper/devices/protected_device.h"

#include <cstdio>
#include <cstring>
#include <string>

#include "device/plugin.h"
#include "tests/helper/devices/protected_kernels.h"
#include "tests/helper/devices/protected_memory.h"
#include "tests/helper/devices/protected_stream.h"

namespace slimpi::test {

namespace {

using device::Place;
using device::Stream;

const device::Library* g_library = nullptr;
bool is_here(const device::Location& location);
unsigned long long g_host_bytes = 0;  // protected by protected_mutex()

Status no_memory(std::size_t bytes) {
  const std::string text = "the protected device has no " + std::to_string(bytes) + " bytes left";
  return g_library->fail(Status::no_memory, text.c_str());
}

Status lost() {
  return g_library->fail(Status::device, "the protected device is lost");
}

bool locate(const void* pointer, device::Location*) {
  return protected_owns(pointer);
}

Status allocate(const device::Location& location, std::size_t bytes, Place place, void** memory) {
  if (!is_here(location)) die("allocate() at a location that is not of this device");
  if (ProtectedStream::lost()) return lost();
  void* found = place == Place::device ? protected_take(bytes) : staging_take(bytes);
  if (found == nullptr) return no_memory(bytes);
  *memory = found;
  return Status::ok;
}

void release(void* memory, Place place) {
  if (memory == nullptr) return;
  ProtectedStream::run_all();
  if (place == Place::device)
    protected_give_back(memory);
  else
    staging_give_back(memory);
}

Status open_stream(const device::Location& location, Stream** stream) {
  if (!is_here(location)) die("open_stream() at a location that is not of this device");
  if (ProtectedStream::lost()) return lost();
  *stream = ProtectedStream::open();
  return Status::ok;
}

void close_stream(Stream* stream) {
  ProtectedStream::close(stream);
}

Status copy(void* to, const void* from, std::size_t bytes, Stream* stream) {
  if (bytes == 0) return Status::ok;
  ProtectedStream::of(stream).queue([=] {
    if (!protected_owns(to) || !protected_owns(from)) g_host_bytes += bytes;
    protected_copy(to, from, bytes);
  });
  return ProtectedStream::lost() ? lost() : Status::ok;
}

Status record(Stream* stream, std::uint64_t* event) {
  *event = ProtectedStream::of(stream).record();
  return ProtectedStream::lost() ? lost() : Status::ok;
}

Status query(Stream* stream, std::uint64_t event, bool* reached) {
  *reached = ProtectedStream::of(stream).query(event);
  return ProtectedStream::lost() ? lost() : Status::ok;
}

Status wait_event(Stream* stream, Stream* other, std::uint64_t event) {
  ProtectedStream::of(stream).queue_until(
      [=] { return ProtectedStream::of(other).try_until(event); });
  return ProtectedStream::lost() ? lost() : Status::ok;
}

std::string g_bus_id;

Status bus_id(const device::Location&, char* text, std::size_t bytes) {
  if (g_bus_id.empty()) return g_library->fail(Status::unsupported, "it is not on a bus");
  std::snprintf(text, bytes, "%s", g_bus_id.c_str());
  return Status::ok;
}

const kernels::Kernels* kernels() {
  return &protected_kernels();
}

constexpr device::Device kRow = [] {
  device::Device row = {"protected", true,   locate, allocate,   release, open_stream, close_stream,
                        copy,        record, query,  wait_event, kernels, bus_id};
  row.staging_bucket = kProtectedStagingBucket;
  return row;
}();

bool is_here(const device::Location& location) {
  return location.device == &kRow;
}

}  // namespace
}  // namespace slimpi::test

using namespace slimpi;

extern "C" {

SLIMPI_PROTECTED const device::Device* slimpi_device_plugin(int version,
                                                            const device::Library* library) {
  if (version != device::kPluginVersion) return nullptr;
  test::g_library = library;
  return &test::kRow;
}

void* slimpi_protected_allocate(size_t bytes) {
  return test::protected_take(bytes);
}

void slimpi_protected_free(void* memory) {
  if (memory == nullptr) return;
  test::ProtectedStream::run_all();
  test::protected_give_back(memory);
}

void slimpi_protected_write(void* to, const void* from, size_t bytes) {
  test::protected_copy(to, from, bytes);
}

void slimpi_protected_read(void* to, const void* from, size_t bytes) {
  test::protected_copy(to, from, bytes);
}

size_t slimpi_protected_used(void) {
  return test::protected_used();
}

void slimpi_protected_limit(size_t bytes) {
  test::protected_limit(bytes);
}

unsigned long slimpi_protected_allocations(void) {
  return test::protected_allocations();
}

unsigned long long slimpi_protected_host_bytes(void) {
  const std::lock_guard lock(test::protected_mutex());
  return test::g_host_bytes;
}

void slimpi_protected_lose(unsigned long transfers) {
  test::ProtectedStream::lose(transfers);
}

void slimpi_protected_repair(void) {
  test::ProtectedStream::repair();
}

void slimpi_protected_put_on_bus(const char* id) {
  test::g_bus_id = id;
}

unsigned long slimpi_protected_work(void) {
  return test::ProtectedStream::queued();
}

}  // extern "C"
