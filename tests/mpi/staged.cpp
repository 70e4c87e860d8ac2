// SPDX-License-Identifier: BSD-3-Clause
// Memory that MPI may not be given: the library's own parts, with a device row that is host memory
// but wants its messages staged, give the same bytes as the host row. Options come from the
// environment.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "algorithm/communicator.h"
#include "policy/policy.h"
#include "tests/mpi/inputs.h"

using namespace slimpi;

namespace {

int g_rank, g_size, g_failures;

void must(Status status, const char* what) {
  if (status == Status::ok) return;
  std::fprintf(stderr, "rank %d: %s: %s\n", g_rank, what, failure_text().c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Six calls on one buffer, each from what the one before it gave.
std::vector<float> results(const mpi::Api& api, Statistics& statistics, std::size_t count,
                           const device::Device& device) {
  algorithm::Communicator communicator(api, statistics, load_config(slimpi_environment()).config,
                                       MPI_COMM_WORLD);
  must(communicator.agree(""), "agreeing");
  must(communicator.find_nodes(), "finding the nodes");
  const policy::Decision decision = policy::decide(communicator.config(), {}, "", count);
  const algorithm::Plan& plan = decision.plans.front();
  std::vector<float> out(count), all;
  bool ready = false;
  must(communicator.prepare(plan, count, device, out.data(), &ready), "reserving");
  std::vector<float> in =
      make_input({Family::normal, count, 4, false, false, false, g_size}, g_rank);
  for (int number = 0; number < 6; ++number) {
    algorithm::Slot* const slot =
        plan.slot ? &communicator.slots.find(out.data(), count, 0) : nullptr;
    algorithm::Call call{communicator,         plan, in.data(), out.data(), count, device, nullptr,
                         ++communicator.calls, slot};
    if (slot != nullptr && plan.algorithm->reserve_state != nullptr)
      must(plan.algorithm->reserve_state(call), "making state");
    must(plan.algorithm->run(call), "running");
    if (slot != nullptr) {
      ++slot->calls;
      slot->fresh = false;
    }
    all.insert(all.end(), out.begin(), out.end());
    for (std::size_t i = 0; i < count; ++i)
      in[i] = out[i] / float(g_size) + float(1e-3 * draw(9, std::uint64_t(g_rank), i));
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  mpi::Api api{};
  std::string version;
  if (mpi::find(api, version) != mpi::Found::yes) MPI_Abort(MPI_COMM_WORLD, 2);
  Statistics statistics;
  device::Device staged = device::host();
  staged.staged = true;
  for (const std::size_t count : {1, 77, 5000, 300001}) {
    const std::vector<float> want = results(api, statistics, count, device::host());
    const std::vector<float> got = results(api, statistics, count, staged);
    if (std::memcmp(want.data(), got.data(), want.size() * sizeof(float)) == 0) continue;
    ++g_failures;
    std::fprintf(stderr, "rank %d: other bytes with %zu elements\n", g_rank, count);
  }
  int failed = 0;
  MPI_Allreduce(&g_failures, &failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed == 0 ? 0 : 1;
}
