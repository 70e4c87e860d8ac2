// SPDX-License-Identifier: BSD-3-Clause
// low_precision_decentralized: like decentralized, but messages carry the quantized difference of
// two successive models. Here Q is the quantization and N the number of workers. Every worker keeps
// a replica w of its own model and one of each peer's model. Replicas only ever change by adding a
// decoded message, so the replica of worker i has the same bytes on worker i and on all its peers
// at any time.
//
//   first call   w = every replica = the exact mean; result = the exact sum
//   then         s = the program's model after its local step (the mean over the node's ranks)
//                z = s + sum over peers j of W_ij w_j + (W_ii - 2) w_i    (ring: left, right, own)
//                decode(Q(z)) is added to every replica of i; result = N w_i
//   between exchanges (SLIMPI_INTERVAL)   result = N s
//
// Replicas belong to fixed peers, so SLIMPI_PEERS is ring or all. A call with non-finite input goes
// to MPI on all ranks and leaves the replicas unchanged. If a replica becomes infinite, all ranks
// drop all replicas, and the next call is treated as a first call.
//
// Replicas may belong to another tensor (comm/tensor_state.h). To bound the error that such
// replicas would cause, they are used only if |x - w_i| <= |x| / 2 on every rank, where x is this
// rank's model (L2 norms of the shard). Otherwise all ranks treat the call as a first call.
//
// Let m be the greatest |x| of the worker and its peers, on all their ranks. Then |w| <= 3/2 m. The
// error without that of Q, and the input z of Q, are
//   result / N - sum of W_ij s_j = (s_i - w_i) + sum of W_ij (w_j - s_j)
//   z = (s_i - w_i) + (sum of W_ij w_j - w_i)
// The sums are over all j, and the weights of a row sum to one. With one rank per worker s = x, so
// the error is at most m and |z| at most 7/2 m. With several ranks s is the mean of their x, so |s
// - w_i| <= 5/2 m, the error is at most 5 m, and |z| at most 11/2 m.
//
// State: (1 + peers) * n floats, where n is the length of the shard.
// Cost: n * bits/8 bytes sent to each peer.
#include <algorithm>

#include "algorithm/decentralized.h"
#include "comm/communicator.h"
#include "comm/kernel_result.h"
#include "comm/stream_wait.h"
#include "inter/schedule.h"

namespace slimpi::algorithm {

namespace {

// Sets *array to an array of the tensor state. On a rank without a shard the array has no elements.
Status find_array(comm::Call& call, const comm::StateArray& key, const comm::Range& shard,
                  float** array) {
  return call.state->open(key, shard.count, call.location, call.stream,
                          call.communicator.statistics(), array);
}

// The replicas of this rank's shard, which are kept in the tensor state, and their weights.
struct Replicas {
  Replicas(comm::Call& call, const comm::InterNodeGroup& group)
      : row(inter::mixing(call.communicator.config().peers, int(group.peers.size()), group.index, 0,
                          &call.scratch.objects)),
        peers(row.peers.size(), row.peers.get_allocator()) {}

  inter::Mixing row;
  float* own = nullptr;
  std::pmr::vector<float*> peers;  // in the order of row.peers
};

Status find_replicas(comm::Call& call, const comm::Range& shard, Replicas* replicas) {
  using comm::StateArray;
  SLIMPI_TRY(find_array(call, {StateArray::own_replica}, shard, &replicas->own));
  for (std::size_t i = 0; i < replicas->peers.size(); ++i)
    SLIMPI_TRY(find_array(call, {StateArray::replica_of, replicas->row.peers[i].member}, shard,
                          &replicas->peers[i]));
  return Status::ok;
}

// Encodes z (see the head of this file), and adds decoded messages to the replicas.
class Difference : public inter::PeerCodec {
 public:
  Difference(comm::Call& call, const Replicas& replicas, const NodeShard& shard)
      : call_(call), kernels_(*call.device.kernels()), replicas_(replicas), shard_(shard) {}

  // Writes z to the result buffer. This may overwrite the input, which is not needed once z is
  // computed.
  void encode(const comm::Range& part, std::byte* payload) override {
    const std::uint64_t n = part.count;
    float* const z = shard_.out + part.first;
    float scale = float(1.0 / shard_.ranks);
    const float* from = shard_.in + part.first;
    for (std::size_t i = 0; i < replicas_.peers.size(); ++i) {
      kernels_.combine(scale, from, float(replicas_.row.peers[i].weight),
                       replicas_.peers[i] + part.first, n, z, call_.stream);
      scale = 1;
      from = z;
    }
    kernels_.combine(scale, from, float(replicas_.row.own - 2), replicas_.own + part.first, n, z,
                     call_.stream);
    kernels_.encode(call_.plan.format, inter::random_stream_for(call_, shard_.range, part), z,
                    nullptr, n, payload, call_.stream);
  }

  void apply(const comm::Range& part, const std::byte* own,
             std::span<const std::byte* const> theirs) override {
    const std::uint64_t n = part.count;
    for (std::size_t i = 0; i < theirs.size(); ++i)
      kernels_.decode_add(call_.plan.format, theirs[i], n, replicas_.peers[i] + part.first,
                          call_.stream);
    float* const w = replicas_.own + part.first;
    kernels_.decode_add(call_.plan.format, own, n, w, call_.stream);
    kernels_.combine(float(call_.communicator.size()), w, 0, nullptr, n, shard_.out + part.first,
                     call_.stream);
  }

 private:
  comm::Call& call_;
  const kernels::Kernels& kernels_;
  const Replicas& replicas_;
  const NodeShard& shard_;
};

// Handles a first call: computes the exact sum of all nodes, and sets every replica to the mean.
Status start_over(comm::Call& call, const NodeShard& shard, const Replicas& replicas) {
  comm::Plan exact = call.plan;
  exact.format.codec = kernels::Codec::float32;
  comm::Call sum = comm::plain_call_with_plan(call, exact);
  SLIMPI_TRY(inter::run_exchange(sum, shard.group, shard.range, shard.in, shard.out, nullptr));
  const float share = float(1.0 / call.communicator.size());
  const auto fill = [&](float* replica) {
    call.device.kernels()->combine(share, shard.out, 0, nullptr, shard.range.count, replica,
                                   call.stream);
  };
  fill(replicas.own);
  for (float* const peer : replicas.peers) fill(peer);
  return Status::ok;
}

// Queues a search for infinities in this worker's replica. The result, *flag in the call's scratch
// memory, is valid once the stream has passed the search.
Status watch(comm::Call& call, const comm::Range& shard, const Replicas& replicas,
             const int** flag) {
  comm::KernelResult<int> infinite;
  SLIMPI_TRY(infinite.open(call, call.location));
  call.device.kernels()->find_beyond(replicas.own, kernels::kMaxFloat, shard.count,
                                     infinite.found(), call.stream);
  *flag = infinite.copy();
  return infinite.fetch(call.stream);
}

// Runs a call, and records in state->nonfinite whether a replica overflowed. If so, the next call
// drops the replicas, because an infinite one would stay infinite.
comm::Verdict run_low_precision(comm::Call& call) {
  const int* flag = nullptr;
  SLIMPI_TRY(run_in_nodes(call, [&](const NodeShard& shard) {
    if (!shard.owned()) return Status::ok;
    Replicas replicas(call, shard.group);
    SLIMPI_TRY(find_replicas(call, shard.range, &replicas));
    if (call.state->uninitialized) {
      SLIMPI_TRY(start_over(call, shard, replicas));
    } else if (exchange_is_due(call)) {
      Difference difference(call, replicas, shard);
      SLIMPI_TRY(inter::exchange_with_neighbors(
          call, shard.range, ranks_of_peers(replicas.row, shard.group), difference));
    } else {
      keep_model(call, shard);
      return Status::ok;
    }
    return watch(call, shard.range, replicas, &flag);
  }));
  if (flag == nullptr) return Status::ok;
  SLIMPI_TRY(comm::synchronize(call.device_stream()));
  call.state->nonfinite = *flag;
  return Status::ok;
}

// A replica fits if its distance from this rank's values is at most this fraction of the norm of
// the values.
constexpr double kFarthest = 0.5;

// Sets *fits to whether this worker's replica is close enough to this rank's values in the shard.
Status replica_fits(comm::Call& call, bool* fits) {
  *fits = true;
  if (!exchange_is_due(call)) return Status::ok;
  const comm::InterNodeGroup& group = call.communicator.inter_node_group(call.plan.hierarchy);
  if (group.shard_index < 0) return Status::ok;
  const comm::Range shard = own_shard(call);
  float* own = nullptr;
  SLIMPI_TRY(find_array(call, {comm::StateArray::own_replica}, shard, &own));
  comm::KernelResult<double, 2> squares;
  SLIMPI_TRY(squares.open(call, call.location));
  call.device.kernels()->compare(own, call.in + shard.first, shard.count, squares.found(),
                                 call.stream);
  SLIMPI_TRY(squares.fetch(call.stream));
  SLIMPI_TRY(comm::synchronize(call.device_stream()));
  const double distance = squares.copy()[0], norm = squares.copy()[1];
  *fits = distance <= kFarthest * kFarthest * norm;
  return Status::ok;
}

Status reserve_low_precision(const comm::Call& call) {
  const comm::InterNodeGroup& group = call.communicator.inter_node_group(call.plan.hierarchy);
  const inter::Mixing row =
      inter::mixing(call.communicator.config().peers, std::max(1, int(group.peers.size())),
                    group.index, 0, &call.scratch.objects);
  return reserve_for_peers(call, int(row.peers.size()));
}

Status reserve_replicas(comm::Call& call) {
  const comm::InterNodeGroup& group = call.communicator.inter_node_group(call.plan.hierarchy);
  const comm::Range shard = own_shard(call);
  float* none = nullptr;
  if (group.shard_index < 0) return find_array(call, {comm::StateArray::own_replica}, shard, &none);
  Replicas replicas(call, group);
  return find_replicas(call, shard, &replicas);
}

}  // namespace

const Functions functions::low_precision = {.run = run_low_precision,
                                            .reserve = reserve_low_precision,
                                            .reserve_state = reserve_replicas,
                                            .state_fits = replica_fits};

}  // namespace slimpi::algorithm
