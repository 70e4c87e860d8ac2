// SPDX-License-Identifier: BSD-3-Clause
// Runs a call whose buffers MPI cannot access, such as GPU memory, on copies in host memory
// (staging). This works for every datatype and operation, and the result has MPI's own bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.h"
#include "call/request.h"
#include "call/runtime.h"
#include "comm/memory.h"
#include "device/device.h"

namespace slimpi::call {

// Memory for the copy of a buffer at `location`, and the stream that copies between the two. Used
// by one call at a time.
struct StagingBuffer {
  device::Location location;
  device::Stream* stream = nullptr;
  comm::Memory memory;
};

// Bytes of a buffer, relative to its address.
struct Span {
  std::ptrdiff_t low = 0;
  std::size_t bytes = 0;
};

// Elements of a buffer that follow one another.
struct Block {
  std::int64_t first = 0, count = 0;
};

// Where elements of a datatype lie.
struct ElementLayout {
  mpi::Aint extent = 0, true_low = 0, true_extent = 0;
  mpi::Count size = 0;

  // Returns the bytes from the first to the last one of the block.
  Span span(const Block& block) const;
  // Returns whether some of these bytes belong to no element.
  bool has_gaps(const Block& block) const;
};

// A buffer of a call, with its copy if it needs one.
class CallBuffer {
 public:
  CallBuffer(const void* program, const Span& span);
  CallBuffer(CallBuffer&& other) noexcept
      : program_(other.program_),
        span_(other.span_),
        location_(other.location_),
        buffer_(std::exchange(other.buffer_, nullptr)),
        copy_(other.copy_) {}
  ~CallBuffer();
  CallBuffer(const CallBuffer&) = delete;
  CallBuffer& operator=(const CallBuffer&) = delete;

  bool needs_copy() const;
  Status open(Statistics& statistics);  // reserves memory for the copy
  void* pointer() const;                // what MPI gets instead of the program's address
  Status bring_in();
  Status bring_back(const std::vector<Span>& parts);  // relative to the program's address

 private:
  const std::byte* begin() const { return program_ + span_.low; }

  const std::byte* program_;
  const Span span_;
  const device::Location location_;
  StagingBuffer* buffer_ = nullptr;
  std::byte* copy_ = nullptr;
};

// A call of the program that MPI runs, with the copies of its buffers.
class StagedCall {
 public:
  // Asks the driver where the buffers are.
  StagedCall(Runtime& runtime, const Request& request)
      : StagedCall(runtime, request, measure(request)) {}

  // Returns whether there is a buffer that MPI cannot access. If MPI will reject the call anyway,
  // returns false.
  bool needed() const { return copies_in_ || copies_out_; }

  Status open();        // makes the copies, without values
  Status bring_in();    // copies the program's buffers to the copies
  void accepted();      // called once MPI has accepted the call, before the datatype can be freed
  Status bring_back();  // copies the result to the program
  void count();         // counts the call in the report
  std::size_t bytes() const { return spans_.in.bytes; }  // of the input

  // Returns the call to pass to MPI, with the copies as its buffers. Valid after open().
  const Request& copy() const { return copy_; }

 private:
  struct Spans {
    Span in, out;
    bool valid = false;
    ElementLayout layout = {};  // of the result
    int rank = 0, ranks = 0;    // of a call with blocks
  };
  StagedCall(Runtime& runtime, const Request& request, const Spans& spans);
  static Spans measure(const Request& request);
  void find_results();
  void merge();

  Runtime& runtime_;
  Request copy_;
  const Spans spans_;
  const bool in_place_, aliased_;
  CallBuffer in_, out_;
  CallBuffer present_;  // what the program has in the output when the call is complete
  const bool copies_in_, copies_out_;
  // Set by open() if the output is copied, so that other calls allocate nothing.
  std::vector<Block> results_;  // what MPI writes
  std::vector<Span> parts_;     // the bytes of results_
  bool gaps_ = false;           // some bytes of results_ belong to no element
  std::vector<Span> pieces_;    // of one element, if there are gaps; empty: not known
};

}  // namespace slimpi::call
