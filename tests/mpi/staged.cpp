// SPDX-License-Identifier: BSD-3-Clause
// Memory that MPI may not be given: the library's own parts, with a device row that is host memory
// but wants its messages staged, give the same bytes as the host row. Options come from the
// environment.
#include <cstdio>
#include <cstring>

#include "algorithm/algorithm.h"
#include "algorithm/policy.h"
#include "comm/communicator.h"
#include "comm/memory.h"
#include "tests/mpi/inputs.h"
#include "tests/mpi/job.h"

using namespace slimpi;

namespace {

// Returns the results of six calls on one buffer; the input of each call is made from the result
// before.
std::vector<float> results(const test::Job& job, Statistics& statistics, std::size_t count,
                           const device::Device& device) {
  comm::Communicator communicator(job.api, statistics, load_config(slimpi_environment()).config,
                                  mpi::abi.comm_world);
  comm::CallScratchLease scratch;
  job.must(communicator.compare_options(""), "agreeing");
  job.must(communicator.find_nodes(), "finding the nodes");
  const algorithm::Decision decision = algorithm::make_decision(communicator.config(), nullptr);
  const comm::Plan& plan = decision.plans.front();
  std::vector<float> out(count), all;
  bool ready = false;
  const comm::Call first{.communicator = communicator,
                         .scratch = *scratch.take(),
                         .plan = plan,
                         .in = nullptr,
                         .out = nullptr,
                         .count = count,
                         .location = device};
  job.must(algorithm::prepare(first, &ready), "reserving");
  std::vector<float> in =
      make_input({Family::normal, count, 4, false, false, false, job.size}, job.rank);
  for (int number = 0; number < 6; ++number) {
    comm::TensorStates::Lost lost{};
    comm::TensorState* const slot =
        plan.needs_state ? &communicator.states.use(comm::TensorKey::of_index(0, count), &lost)
                         : nullptr;
    comm::Call call{.communicator = communicator,
                    .scratch = *scratch.take(),
                    .plan = plan,
                    .in = in.data(),
                    .out = out.data(),
                    .count = count,
                    .location = device,
                    .number = ++communicator.compressed_calls,
                    .state = slot};
    if (slot != nullptr) job.must(plan.algorithm->reserve_state(call), "making state");
    job.must(plan.algorithm->run(call), "running");
    if (slot != nullptr) {
      ++slot->calls;
      slot->uninitialized = false;
    }
    all.insert(all.end(), out.begin(), out.end());
    for (std::size_t i = 0; i < count; ++i)
      in[i] = out[i] / float(job.size) + float(1e-3 * draw(9, std::uint64_t(job.rank), i));
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const test::Job job(argc, argv);
  Statistics statistics;
  int failures = 0;
  for (const std::size_t count : {1, 77, 5000, 300001}) {
    const std::vector<float> want = results(job, statistics, count, device::host());
    const std::vector<float> got = results(job, statistics, count, job.staged);
    if (std::memcmp(want.data(), got.data(), want.size() * sizeof(float)) == 0) continue;
    ++failures;
    std::fprintf(stderr, "rank %d: other bytes with %zu elements\n", job.rank, count);
  }
  return job.end(failures);
}
