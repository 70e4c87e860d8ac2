// SPDX-License-Identifier: BSD-3-Clause
#include "call/held.h"

#include "base/fiber.h"
#include "call/nonblocking.h"
#include "call/runtime.h"

namespace slimpi::call {

Held::~Held() {
  set_in_flight(false);
}

mpi::Comm Held::comm_for_errors() const {
  const comm::Communicator* const known = runtime.communicators.find(comm);
  return known != nullptr && known->id == of_comm ? comm : mpi::abi.comm_world;
}

void Held::set_in_flight(bool in_flight) {
  if (in_flight_.exchange(in_flight) != in_flight) count_fibers(in_flight ? 1 : -1, &enter_fibers);
}

HeldRequests& HeldRequests::instance() {
  static auto* const table = new HeldRequests;
  return *table;
}

void HeldRequests::add(Entry& entry) noexcept {
  Bucket& bucket = bucket_of(entry.front()->handle);
  const std::lock_guard lock(mutex_);
  bucket.list.splice(bucket.list.begin(), entry);
  ++bucket.count;
  ++all_;
}

// The newest request comes first.
std::shared_ptr<Held> HeldRequests::find(mpi::Request handle) {
  Bucket& bucket = bucket_of(handle);
  if (bucket.count.load(std::memory_order_acquire) == 0 || handle == mpi::abi.request_null)
    return nullptr;
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Held>& one : bucket.list)
    if (one->handle == handle) return one;
  return nullptr;
}

void HeldRequests::remove(const Held& held) noexcept {
  Entry removed;  // destroyed without the lock
  Bucket& bucket = bucket_of(held.handle);
  const std::lock_guard lock(mutex_);
  for (auto one = bucket.list.begin(); one != bucket.list.end(); ++one) {
    if (one->get() != &held) continue;
    removed.splice(removed.end(), bucket.list, one);
    --bucket.count;
    --all_;
    return;
  }
}

}  // namespace slimpi::call
