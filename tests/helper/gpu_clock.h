// SPDX-License-Identifier: BSD-3-Clause
// A clock in the place of a GPU, a CPU and a network: nothing is computed or copied, and everything
// costs time on what does it. The engine between nodes runs as it is, one rank a thread, one thread
// at a time: always the rank whose clock is furthest behind.
//
// What takes time, in seconds: the functions of the driver that the row of CUDA would call, on the
// CPU of the rank; kernels, on its multiprocessors, one after the other; copies, on one engine for
// each direction; messages, on the sender's and the receiver's link.
#pragma once
#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "comm/point_to_point.h"
#include "device/device.h"
#include "inter/context.h"

namespace slimpi::test {

// A kernel that uses messages in host memory: its least time, and the bytes a second that it has of
// the bus in its busier direction.
struct Mapped {
  double least, rate;
};

// Measured by tests/gpu/costs and tests/gpu/bench on an H100 (docs/RESULTS.md, "Sums of GPU
// buffers"), but for what is assumed. tests/inter/gpu_clock compares with the rows of costs.
struct Costs {
  // Functions of the driver, on the CPU, with those that make a context current and restore the
  // former.
  double launch = 3.2e-6, copy = 1.24e-6, record = 0.17e-6, wait = 0.18e-6, query = 0.24e-6;
  // From the end of a kernel until a poll sees it, with the time from the launch to the kernel's
  // begin. Measured: this and the shortest kernel take 5.5 us together. Assumed: their shares.
  double seen = 3.5e-6, least_kernel = 2e-6;
  double memory = 3.0e12;  // bytes a second that a copy on the GPU reads and writes
  double encode = 0.93, decode = 0.96, sum = 0.85;  // kernels at 8 bits, as shares of that
  // From the rows "queued": the rate from the difference of the times of 256 KiB and of 64 KiB (to
  // encode) or 16 KiB, the least time from what is left of the time of 256 KiB.
  Mapped encode_mapped{3.7e-6, 49e9}, decode_mapped{4.6e-6, 23.6e9}, sum_mapped{8.8e-6, 22.7e9};
  // The same of copies to and from the host, from 256 and 1024 KiB.
  double least_copy = 2e-6, bus = 54e9;
  double message = 1e-6;  // assumed: a send or a receive, on the CPU
  double latency = 5e-6;  // assumed: of a message
  double link = 12.5e9;   // bytes a second, each way
};

// One rank's resources; all times count from 0.
struct RankClock {
  Costs costs;
  double now = 0;                                      // of its CPU
  double kernels_free = 0, out_free = 0, in_free = 0;  // of the GPU
  double send_free = 0, receive_free = 0;              // of the link
  double cpu_busy = 0, kernels_busy = 0, out_busy = 0, in_busy = 0;
  std::uint64_t calls = 0;                                     // of functions of the driver
  const std::byte *staging = nullptr, *staging_end = nullptr;  // host memory that kernels may use
  struct Stream {
    RankClock* rank = nullptr;
    comm::StreamRole role = comm::StreamRole::compute;
    double done = 0;             // all that is queued
    std::vector<double> events;  // when each is reached
    bool idle = false;           // seen so: the next work waits for the program's default stream
  };
  std::array<Stream, 3> streams;  // by role

  explicit RankClock(const Costs& costs);
  RankClock(const RankClock&) = delete;
  RankClock& operator=(const RankClock&) = delete;

  // The CPU calls a function of the driver that takes so long.
  void call(double seconds);
  // To be called before work is queued, as device::cuda::begin_work().
  void begin_work(Stream& stream);
  // Queues work of so many seconds on a stream, and on the resource that is free from `free` on.
  void queue(Stream& stream, double seconds, double& free, double& busy);

  bool is_staging(const void* memory) const { return memory >= staging && memory < staging_end; }
};

// The device row; its streams are those of a RankClock.
const device::Device& clocked_device();

// The links between ranks, and whose turn it is.
class ClockedNetwork {
 public:
  explicit ClockedNetwork(std::vector<std::unique_ptr<RankClock>>& ranks) : ranks_(ranks) {}

  // Runs body(rank) for all ranks, each in a thread, until all have returned.
  void run(const std::function<void(int rank)>& body);

 private:
  friend class ClockedExchange;
  struct Message {
    const void* data = nullptr;
    void* into = nullptr;
    std::size_t bytes = 0;
    double sent = -1, posted = -1, arrived = -1;
  };
  using Envelope = std::tuple<int, int, comm::Tag>;  // from, to
  struct Queue {
    std::vector<Message> messages;
    std::size_t sent = 0, posted = 0;
  };

  // Gives the turn away until it comes back and `ready` is true.
  void yield(int rank, const std::function<bool()>& ready);
  void pass_on();
  Message& message(const Envelope& envelope, std::size_t& next);
  void deliver(const Envelope& envelope, Message& message);

  std::vector<std::unique_ptr<RankClock>>& ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int turn_ = -1;
  std::map<int, const std::function<bool()>*> waiting_;  // ranks that have not ended
  std::map<Envelope, Queue> queues_;
};

// One rank's end. Only the headers of messages are copied.
class ClockedExchange final : public comm::PointToPoint {
 public:
  ClockedExchange(ClockedNetwork& network, int rank) : network_(network), rank_(rank) {}

  using PointToPoint::wait;
  Status send(int to, comm::Tag tag, const void* data, std::size_t bytes,
              mpi::Request& request) override;
  Status receive(int from, comm::Tag tag, void* data, std::size_t bytes,
                 mpi::Request& request) override;
  Status wait(mpi::Request& request, std::size_t* received) override;
  void progress() override {}
  Status check() override { return Status::ok; }
  Status settle(Status status, std::span<mpi::Request>) override { return status; }

 private:
  struct Posted {
    ClockedNetwork::Envelope envelope;
    std::size_t index;
  };
  ClockedNetwork& network_;
  const int rank_;
  std::vector<Posted> posted_;  // by request
};

// One sum of GPU buffers between nodes of one rank each.
struct Prediction {
  double seconds = 0;                    // until the last rank has its result
  double cpu = 0, kernels = 0, bus = 0;  // busy seconds of the busiest rank; bus: one direction
  std::uint64_t calls = 0;               // functions of the driver that a rank calls
};
Prediction predict(const Costs& costs, int nodes, std::uint64_t floats, int bits);

}  // namespace slimpi::test
