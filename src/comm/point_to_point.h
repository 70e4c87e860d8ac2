// SPDX-License-Identifier: BSD-3-Clause
// The interface through which schedules (inter/schedule.h) send and receive messages. Exchange
// (exchange.h) implements it by MPI. A test implements it in memory, and runs all ranks in one
// process.
#pragma once
#include "mpi/abi.h"

#include <cstddef>
#include <span>

#include "base/status.h"

namespace slimpi::comm {

// The purpose of a message. Messages with the same tag from one rank arrive in the order of
// sending.
enum class Tag : int {
  reduce_scatter = 1,
  all_gather = 2,
  intra_reduce_scatter = 3,
  intra_all_gather = 4,
  peers = 5,
  failure = 6,    // a rank reports that it failed; see Exchange::report_failure
  roll_call = 7,  // a rank that waits long asks where the others are; their answers
  agreement = 8,  // words on which the ranks agree
  completion = 9  // a rank tells itself that a persistent sum is complete
};
constexpr int kTags = 16;  // more than the uses above

// The class of length of inter-node messages (inter/segment_length.cpp has the lengths), the same
// on all ranks of a communicator. Small messages let arithmetic and transfer overlap early, and
// their values stay in a core's cache. Large ones are used once a call has had buffers on a GPU,
// where every kernel and copy costs microseconds, however short it is.
enum class SegmentClass { small, large };

class Exchange;

// Sends and receives the messages of one rank. Requests are opaque to the caller, who owns them and
// must not move them until they are complete.
class PointToPoint {
 public:
  virtual ~PointToPoint() = default;

  // Start a message of `bytes`, a multiple of 4 (at most 8 GiB). `data` must not be touched before
  // wait() has completed `request`. A send may stay incomplete until the receiver has posted the
  // matching receive.
  virtual Status send(int to, Tag tag, const void* data, std::size_t bytes,
                      mpi::Request& request) = 0;
  virtual Status receive(int from, Tag tag, void* data, std::size_t bytes,
                         mpi::Request& request) = 0;

  // Waits for one request, where a null request is complete. *received, unless null, is set to the
  // length in bytes of a received message.
  virtual Status wait(mpi::Request& request, std::size_t* received) = 0;
  Status wait(mpi::Request& request) { return wait(request, nullptr); }
  Status wait_all(std::span<mpi::Request> requests) {
    for (mpi::Request& request : requests) SLIMPI_TRY(wait(request));
    return Status::ok;
  }

  // Lets messages make progress while the caller waits for something else.
  virtual void progress() = 0;

  // Returns the failure that another rank has reported, or ok. Must be called now and then in a
  // loop that waits for another rank without wait().
  virtual Status check() = 0;

  // Must be called at the end of every schedule with the schedule's result, `status`, and returns
  // it. After a failure the peers still wait for messages, so settle() reports the failure to every
  // rank of the communicator, and all ranks that wait fail with the same status and a text that
  // names the rank. Then it cancels or frees `requests`, so that MPI no longer uses the memory of
  // these messages unless Exchange::memory_left() says so. Because of that exception, a schedule
  // never sends from, or receives into, memory of the program.
  virtual Status settle(Status status, std::span<mpi::Request> requests) = 0;

  // Returns this object if it is an Exchange, which sends by MPI, or null in a test. A wait asks
  // the Exchange when its message is due and where the other ranks are.
  virtual Exchange* exchange() { return nullptr; }
};

}  // namespace slimpi::comm
