// SPDX-License-Identifier: BSD-3-Clause
// Memory that outlives a call, and the sets of scratch memory that calls take turns in using.
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

// The purpose of a memory, for the counts in SLIMPI_REPORT: `scratch` serves one call at a time,
// and `state` is kept from call to call for one tensor (comm/tensor_state.h).
enum class Held { scratch, state };

// Owned memory that grows but never shrinks. It has a block for each location and place that was
// ever reserved, so that a program that alternates between devices does not allocate again and
// again.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { release(); }

  // Makes data() a block of at least `bytes` at the location. The contents are lost if the block
  // grows or the device changes.
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

  std::vector<Block> blocks_;  // begins with the block that was reserved last
};

// Memory for the small objects and lists of one call. Sizes are rounded up to a power of two, and a
// freed block is kept for the next object of its size, so a call that resembles the last one
// allocates nothing. The pools of the standard library are no alternative, because with GCC 12 they
// crash at the first allocation after a failed one. Used by one thread at a time. The pool must
// outlive its objects.
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

  std::array<Free*, 64> free_{};  // lists of free blocks, by the logarithm of their size
};

// One set of scratch memory, which a call uses while it runs. Each memory is at least as large as
// the last call reserved; its contents do not outlive the call.
struct CallScratch {
  // Memory that several users take in turn: the sum inside the node, then the exchange between
  // nodes, then the all-gather inside the node. None of them leaves values for the next. Each
  // reserves what it needs before the first begins, so the memory has the size of the largest need.
  //   near     messages between nodes or inside a node, in memory of the device that has the
  //            program's buffers; values of other ranks that kernels cannot read where they are
  //   staging  host memory, for the same messages if the device is a GPU, or for a copy of the
  //            whole vector if the algorithm has no kernels on the device; all parts of the
  //            call then work on this copy
  //   sums     partial sums, if there are more addends than a kernel takes or the ranks of a node
  //            add in pairs; segments before a hook encodes them and after it has decoded them
  //   found    the result of a kernel, and its copy for the host (kernel_result.h)
  Memory near, staging, sums, found, found_copy;

  // Memory with a single user:
  Memory kept, check;              // for SLIMPI_MAX_ERROR; bounded_exchange.cpp
  Memory floats;                   // values of another type, as floats; call/sum.cpp
  Memory colocated;                // the input of a reduce-scatter, near its output; call/sum.cpp
  Memory ordered;                  // the blocks in the exchange's order; reduce_scatter.cpp
  Memory exact, result;            // on the host, for SLIMPI_VERIFY; call/sum_verification.cpp
  Memory factors, device_factors;  // of the low-rank algorithm
  ObjectPool objects;              // for lists that live no longer than the call
};

// Keeps the scratch memory of calls. A call takes a set, owns it until it ends, and gives it back,
// so a process has as many sets as it ever had calls at the same time. The sets are freed with the
// last communicator.
class CallScratchPool {
 public:
  // Returns the pool of the process. It is never destroyed, because exit handlers may still call
  // MPI after static objects are destroyed.
  static CallScratchPool& instance();

  // Returns the set that was given back last, or a new one. Throws std::bad_alloc.
  std::unique_ptr<CallScratch> take();
  void release(std::unique_ptr<CallScratch> set);

  // Add and remove a communicator that may make calls. The pool is emptied with the last one.
  void add_user();
  void remove_user();

 private:
  std::mutex mutex_;  // guards all members below
  std::vector<std::unique_ptr<CallScratch>> free_;
  int users_ = 0;
};

// Holds one set of scratch memory for the duration of a call.
class CallScratchLease {
 public:
  CallScratchLease() : set_(CallScratchPool::instance().take()) {}  // throws std::bad_alloc
  ~CallScratchLease() {
    if (set_ != nullptr) CallScratchPool::instance().release(std::move(set_));
  }
  CallScratchLease(const CallScratchLease&) = delete;
  CallScratchLease& operator=(const CallScratchLease&) = delete;

  // Leaks the set instead of giving it back, because MPI may still use its memory.
  void leave() { (void)set_.release(); }

  CallScratch& operator*() const { return *set_; }

 private:
  std::unique_ptr<CallScratch> set_;
};

}  // namespace slimpi::comm
