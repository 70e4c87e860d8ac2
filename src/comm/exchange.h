// SPDX-License-Identifier: BSD-3-Clause
// Messages between the ranks of slimpi's own communicator.
#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "comm/node_layout.h"

namespace slimpi::comm {

// What a message is about; messages of one tag between two ranks arrive in order.
enum class Tag : int {
  scatter_reduce = 1,
  all_gather = 2,
  intra_reduce_scatter = 3,
  intra_all_gather = 4,
  peers = 5,
  budget = 6,
  node_open = 7,
  failure = 100  // a rank that failed says so; see report_failure
};

class Exchange {
 public:
  Exchange(const mpi::Api& api, Statistics& statistics) : api_(api), statistics_(statistics) {}

  // The communicator that messages go over, with an error handler that returns.
  void set_comm(MPI_Comm comm) { comm_ = comm; }

  // `layout` tells which messages cross nodes and are counted as sent.
  void set_layout(const NodeLayout* layout) { layout_ = layout; }

  // Start a message of `bytes`, a multiple of 4 (messages up to 8 GiB). `request` must be finished
  // with wait before data is touched again.
  Status send(int to, Tag tag, const void* data, std::size_t bytes, MPI_Request& request);
  Status receive(int from, Tag tag, void* data, std::size_t bytes, MPI_Request& request);

  // Waits for one request; `received` gets the bytes of a received message. A null request is done.
  Status wait(MPI_Request& request, std::size_t* received = nullptr);
  Status wait_all(std::span<MPI_Request> requests);

  // Lets MPI make progress while the caller waits for something else.
  void progress();

  // The end of every schedule: returns `status`, how it went. After a failure the peers still wait
  // for messages, so every rank of the communicator is told, and whoever waits fails too, with the
  // same status and a text that names the rank. `requests` are given up, and when this returns no
  // rank reads or writes this one's memory for them any more.
  Status settle(Status status, std::span<MPI_Request> requests);

  // The same for a failure outside a schedule, unless one was settled before.
  void report_failure(Status status);

  // The failure that another rank told. A loop that waits for something of another rank without
  // these functions calls check now and then.
  Status check();
  bool failure_reported() const { return reported_ != Status::ok; }

  // Smallest and largest over all ranks of the communicator; collective.
  Status all_min(std::span<std::uint64_t> values);
  Status all_max(std::span<std::uint64_t> values);

  // Sums over all ranks; collective. Ranks may differ in the last bits. Counted as sent.
  Status all_sum(std::span<double> values);

  const mpi::Api& api() const { return api_; }
  MPI_Comm comm() const { return comm_; }

 private:
  struct Failure {
    std::uint32_t status;
    char text[244];
  };

  template <typename Value>
  Status reduce(std::span<Value> values, MPI_Datatype type, MPI_Op op);
  void send_failure(Status status);
  bool receive_failure(int from = MPI_ANY_SOURCE);
  bool receive_stray();
  void cancel_receives(std::span<MPI_Request> requests);
  void drain(std::span<MPI_Request> requests);
  void release_sends(std::span<MPI_Request> requests);
  bool finished(MPI_Request& request);

  const mpi::Api& api_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  Statistics& statistics_;
  const NodeLayout* layout_ = nullptr;

  struct Outgoing {
    const MPI_Request* request;
    int to;
  };
  std::vector<Outgoing> outgoing_;  // every send since the last settle
  Failure failure_{};               // what this rank tells; MPI may read it to the very end
  bool sent_failure_ = false;
  std::set<int> failed_ranks_;  // ranks that told a failure: they receive nothing any more
  Status reported_ = Status::ok;
  std::string reported_text_;
};

}  // namespace slimpi::comm
