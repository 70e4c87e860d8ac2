// SPDX-License-Identifier: BSD-3-Clause
// Memory that outlives a call, and the sets of scratch memory that calls use in turn.
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <vector>

#include "device/device.h"
#include "observe/statistics.h"

namespace slimpi::comm {

// The use of a memory, for the counts in SLIMPI_REPORT. scratch: for one call at a time. state:
// kept from call to call for one tensor (comm/tensor_state.h).
enum class Held { scratch, state };

// Owned memory that grows but never shrinks. A Memory has one block for each location and place
// that was ever reserved, so that a program which alternates between devices allocates nothing new.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { release(); }

  // Makes data() a block of at least `bytes` at the location. The contents are lost when
  // the block grows or the device changes.
  Status reserve(const device::Location& location, device::Place place, std::size_t bytes,
                 Statistics& statistics, Held held = Held::scratch);
  void release();

  std::byte* data() const { return blocks_.empty() ? nullptr : blocks_.front().data; }
  float* floats() const { return reinterpret_cast<float*>(data()); }
  device::Location location() const {
    return blocks_.empty() ? device::Location() : blocks_.front().location;
  }
  std::size_t size() const { return blocks_.empty() ? 0 : blocks_.front().size; }

 private:
  struct Block {
    device::Location location;
    device::Place place;
    std::byte* data;
    std::size_t size;
    Statistics* statistics;
    Held held;
  };
  static void count(const Block& block, std::int64_t bytes_more);
  static void free(const Block& block);

  std::vector<Block> blocks_;  // the block that was reserved last comes first
};

// Memory for the small objects and lists of one call. Sizes are rounded up to a power of two, and a
// freed block is kept for the next object of its size, so a call that resembles the last one
// allocates nothing. The pools of the standard library cannot be used, because with GCC 12 they
// crash at the first allocation after one that failed. A pool serves one thread at a time and
// outlives its objects.
class ObjectPool : public std::pmr::memory_resource {
 public:
  ObjectPool() = default;
  ~ObjectPool() override;
  ObjectPool(const ObjectPool&) = delete;
  ObjectPool& operator=(const ObjectPool&) = delete;

 private:
  // A free block begins with the address of the next one of its size.
  struct Free {
    Free* next;
  };
  static constexpr std::size_t kLeast = 32;  // bytes of the smallest block

  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::array<Free*, 64> free_{};  // lists of blocks, by the logarithm of the size
};

// One set of scratch memory (memory that a call uses while it runs). Each memory has at least the
// size that the last call reserved; its contents do not outlive the call.
struct CallScratch {
  // Memory of several users in turn: a call makes the sum inside the node, then the exchange
  // between nodes, then the all-gather inside the node, and no part leaves values in scratch for
  // the next. Each reserves what it needs before the first begins, and the memory has the size of
  // the largest need.
  //   near     messages between nodes or inside a node, in memory of the device that has the
  //            program's buffers; values of other ranks that kernels cannot read where they are
  //   staging  host memory: the same messages, if the device is a GPU; or a copy of the whole
  //            vector, if the algorithm has no kernels on the device. In the second case all parts
  //            of the call run on this copy, so they need no other staging
  //   sums     partial sums: of more addends than a kernel takes, and of the pairwise sums inside a
  //            node; segments before a hook encodes them and after it has decoded them
  //   found    the result of a kernel, and its copy for the host (kernel_result.h)
  Memory near, staging, sums, found, found_copy;

  // Memory of one user:
  Memory kept, check;              // for SLIMPI_MAX_ERROR; bounded_exchange.cpp
  Memory floats;                   // values of another type, as floats; call/sum.cpp
  Memory colocated;                // the input of a reduce-scatter, near its output; call/sum.cpp
  Memory ordered;                  // the blocks in the exchange's order; reduce_scatter.cpp
  Memory exact, result;            // on the host, for SLIMPI_VERIFY; call/sum_verification.cpp
  Memory factors, device_factors;  // of the low-rank algorithm
  ObjectPool objects;              // for lists that live no longer than the call
};

// Keeps the scratch memory of calls. A call takes one set, owns it alone until it ends, and gives
// it back, so a process has as many sets as it ever had calls at the same time. The sets are freed
// with the last communicator.
class CallScratchPool {
 public:
  // Returns the pool of the process. It is never destroyed, because exit handlers may still call
  // MPI after static objects are destroyed.
  static CallScratchPool& instance();

  // Returns the set that was given back last, or a new set. Throws std::bad_alloc.
  std::unique_ptr<CallScratch> take();
  void release(std::unique_ptr<CallScratch> set);

  // Add and remove a communicator that may make calls. After the last one the pool is emptied.
  void add_user();
  void remove_user();

 private:
  std::mutex mutex_;  // guards all below
  std::vector<std::unique_ptr<CallScratch>> free_;
  int users_ = 0;
};

// Holds one set of scratch memory for the duration of one call.
class CallScratchLease {
 public:
  CallScratchLease() = default;
  ~CallScratchLease() {
    if (set_ != nullptr) CallScratchPool::instance().release(std::move(set_));
  }
  CallScratchLease(const CallScratchLease&) = delete;
  CallScratchLease& operator=(const CallScratchLease&) = delete;

  // Never gives the set back, because MPI may still use its memory.
  void leave() { (void)set_.release(); }

  CallScratch* take() {
    if (set_ == nullptr) set_ = CallScratchPool::instance().take();
    return set_.get();
  }

 private:
  std::unique_ptr<CallScratch> set_;
};

}  // namespace slimpi::comm
