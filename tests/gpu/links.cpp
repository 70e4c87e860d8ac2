// SPDX-License-Identifier: BSD-3-Clause
// The device layer's NCCL transport by itself: every rank sends to every rank, itself included, and
// looks at what came. Needs no preload. On a machine with one GPU it runs with one rank, or with
// several whose NCCL_HOSTID differs, which NCCL then takes for hosts with a GPU each; slimpi itself
// would not ask for that. Exits 77 without a GPU or without NCCL.
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "device/plugins.h"
#include "tests/helper/gpu.h"

using namespace slimpi;
using namespace slimpi::device;

namespace {

constexpr std::size_t kCount = 100003;
constexpr auto kPatience = std::chrono::seconds(60);
int g_rank, g_size;

[[noreturn]] void give_up(const char* what) {
  std::printf("rank %d: %s: %s\n", g_rank, what, failure_text().c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}
void need(Status status, const char* what) {
  if (status != Status::ok) give_up(what);
}

// Asks until the answer is yes.
template <typename Ask>
void wait(const char* what, const Ask& ask) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (bool done = false; !done;) {
    need(ask(&done), what);
    if (!done && std::chrono::steady_clock::now() > end) give_up(what);
  }
}

float value(int from, int to, std::size_t i) {
  return float(i % 1001) + 1000 * float(from) + 100000 * float(to);
}

// Returns the number of values that are wrong.
int exchange(const Device& row, const Location& location, NcclCommunicator* communicator,
             float* out, float* in) {
  const auto at = [](float* memory, int peer) { return memory + std::size_t(peer) * kCount; };
  std::vector<float> values(std::size_t(g_size) * kCount);
  for (int peer = 0; peer < g_size; ++peer)
    for (std::size_t i = 0; i < kCount; ++i) at(values.data(), peer)[i] = value(g_rank, peer, i);
  const std::size_t bytes = values.size() * sizeof(float);
  gpu_copy(out, GPU_DEVICE, values.data(), GPU_HOST, bytes);
  Stream* stream = nullptr;
  need(row.open_stream(location, &stream), "a stream");
  std::vector<NcclTransport::Transfer> transfers;
  for (int peer = 0; peer < g_size; ++peer) {
    transfers.push_back({peer, at(out, peer), nullptr, kCount * sizeof(float)});
    transfers.push_back({peer, nullptr, at(in, peer), kCount * sizeof(float)});
  }
  need(row.nccl->exchange(communicator, transfers.data(), int(transfers.size()), stream),
       "sending");
  wait("sending", [&](bool* done) { return row.nccl->ready(communicator, done); });
  std::uint64_t event = 0;
  need(row.record(stream, &event), "an event");
  wait("receiving", [&](bool* done) { return row.query(stream, event, done); });
  gpu_copy(values.data(), GPU_HOST, in, GPU_DEVICE, bytes);
  row.close_stream(stream);
  int wrong = 0;
  for (int peer = 0; peer < g_size; ++peer)
    for (std::size_t i = 0; i < kCount; ++i)
      wrong += at(values.data(), peer)[i] != value(peer, g_rank, i);
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  if (gpu_open() != 0) MPI_Abort(MPI_COMM_WORLD, 77);
  load_plugins();
  const std::size_t bytes = std::size_t(g_size) * kCount * sizeof(float);
  auto* const out = static_cast<float*>(gpu_take(GPU_DEVICE, bytes));
  auto* const in = static_cast<float*>(gpu_take(GPU_DEVICE, bytes));
  const Location location = locate(out);
  const Device& row = *location.device;
  if (row.nccl == nullptr || row.nccl->usable(location) != Status::ok) {
    std::printf("rank %d: no NCCL: %s\n", g_rank, failure_text().c_str());
    MPI_Abort(MPI_COMM_WORLD, 77);
  }
  NcclTransport::UniqueId id{};
  if (g_rank == 0) need(row.nccl->make_unique_id(location, &id), "an id");
  MPI_Bcast(&id, int(sizeof id), MPI_BYTE, 0, MPI_COMM_WORLD);
  NcclCommunicator* communicator = nullptr;
  need(row.nccl->create_communicator(location, id, g_rank, g_size, &communicator), "joining");
  wait("joining", [&](bool* done) { return row.nccl->ready(communicator, done); });
  int wrong = 0;
  for (int turn = 0; turn < 3; ++turn) wrong += exchange(row, location, communicator, out, in);
  if (wrong != 0) std::printf("rank %d: %d values are wrong\n", g_rank, wrong);
  MPI_Barrier(MPI_COMM_WORLD);
  row.nccl->close(communicator, true);
  gpu_give_back(GPU_DEVICE, out);
  gpu_give_back(GPU_DEVICE, in);
  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (g_rank == 0) std::printf("%d ranks, %d values are wrong\n", g_size, all);
  MPI_Finalize();
  return all != 0;
}
