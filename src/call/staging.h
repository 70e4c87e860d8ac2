// SPDX-License-Identifier: BSD-3-Clause
// Runs a call whose buffers MPI cannot access, such as GPU memory, on copies in host memory
// (staging). This works for every datatype and operation, and the result has MPI's own bytes.
#pragma once
#include <cstddef>

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

// The bytes that the elements of a buffer span, relative to its address.
struct Span {
  std::ptrdiff_t low = 0;
  std::size_t bytes = 0;
  bool gaps = false;  // some bytes belong to no element
};

// A buffer of a call, with its copy if it needs one.
class CallBuffer {
 public:
  CallBuffer(const void* program, const Span& span);
  ~CallBuffer();
  CallBuffer(const CallBuffer&) = delete;
  CallBuffer& operator=(const CallBuffer&) = delete;

  bool needs_copy() const;
  Status open(Statistics& statistics);  // reserves memory for the copy
  void* pointer() const;                // what MPI gets instead of the program's address
  Status bring_in() { return move("copy out", copy_, begin()); }
  Status bring_back() { return move("copy in", const_cast<std::byte*>(begin()), copy_); }

 private:
  const std::byte* begin() const { return program_ + span_.low; }
  Status move(const char* name, std::byte* to, const std::byte* from);

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
  Status bring_back();  // copies the result to the program
  void count();         // counts the call in the report
  std::size_t bytes() const { return spans_.in.bytes; }  // of the input

  // Returns the call to pass to MPI, with the copies as its buffers. Valid after open().
  const Request& copy() const { return copy_; }

 private:
  struct Spans {
    Span in, out;
    bool valid = false;
  };
  StagedCall(Runtime& runtime, const Request& request, const Spans& spans);
  static Spans measure(const Request& request);

  Runtime& runtime_;
  Request copy_;
  const Spans spans_;
  const bool in_place_, aliased_;
  CallBuffer in_, out_;
  const bool copies_in_, copies_out_;
};

}  // namespace slimpi::call
