// SPDX-License-Identifier: BSD-3-Clause
// Every schedule of the exchange between nodes gives the same bytes, as results and as what error
// feedback keeps, from host memory and from memory whose messages are staged. Options come from the
// environment.
#include "algorithm/schedule.h"

#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "algorithm/communicator.h"
#include "policy/policy.h"
#include "tests/mpi/inputs.h"

using namespace slimpi;

namespace {

int g_rank, g_size;

void must(Status status, const char* what) {
  if (status == Status::ok) return;
  std::fprintf(stderr, "rank %d: %s: %s\n", g_rank, what, failure_text().c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Three calls, in place from the second on, and the residual after each.
std::vector<float> results(algorithm::Communicator& communicator,
                           const algorithm::Schedule& schedule, const algorithm::Plan& plan,
                           std::size_t count, Family family, const device::Device& device,
                           Statistics& statistics) {
  const algorithm::Rails& rails = communicator.rails(plan.hierarchy);
  const int members = int(rails.peers.size());
  const algorithm::Need need = schedule.need(plan.format, count, members, device.staged);
  std::vector<float> out(count, -7), residual(count, 0), all;
  for (algorithm::Memory* const memory : {&communicator.messages, &communicator.staging})
    must(memory->reserve(device, out.data(), device::Place::device, need.bytes, statistics),
         "reserving");
  must(communicator.partial.reserve(device, out.data(), device::Place::device,
                                    need.partial * sizeof(float), statistics),
       "reserving");
  const std::vector<float> in = make_input({family, count, 4, false, false, false, g_size}, g_rank);
  for (int number = 0; number < 3; ++number) {
    std::memset(communicator.messages.data(), 0xa5, need.bytes);
    std::memset(communicator.staging.data(), 0x5a, need.bytes);
    const float* const from = number == 0 ? in.data() : out.data();
    algorithm::Call call{communicator,          plan,   from, out.data(), count, device, nullptr,
                         std::uint64_t(number), nullptr};
    must(schedule.run(call, rails, {0, count}, from, out.data(),
                      plan.error_feedback ? residual.data() : nullptr),
         schedule.name);
    all.insert(all.end(), out.begin(), out.end());
    all.insert(all.end(), residual.begin(), residual.end());
    for (std::size_t i = 0; i < count; ++i)
      out[i] = out[i] / float(g_size) + float(1e-3 * draw(9, std::uint64_t(g_rank), i));
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
  int failures = 0;
  {
    algorithm::Communicator communicator(api, statistics, load_config(slimpi_environment()).config,
                                         MPI_COMM_WORLD);
    must(communicator.agree(""), "agreeing");
    must(communicator.find_nodes(), "finding the nodes");
    device::Device staged = device::host();
    staged.staged = true;
    for (const std::size_t count : {1, 77, 5000, 300001})
      for (const Family family : {Family::normal, Family::one_nan}) {
        const policy::Decision decision = policy::decide(communicator.config(), {}, "", count);
        const algorithm::Plan& plan = decision.plans.front();
        std::vector<float> want;
        for (const algorithm::Schedule& schedule : algorithm::schedules())
          for (const device::Device* const device : {&device::host(), &std::as_const(staged)}) {
            const std::vector<float> got =
                results(communicator, schedule, plan, count, family, *device, statistics);
            if (want.empty()) want = got;
            if (std::memcmp(want.data(), got.data(), want.size() * sizeof(float)) == 0) continue;
            ++failures;
            std::fprintf(stderr, "rank %d: %s, staged %d: other bytes with %zu elements, %s\n",
                         g_rank, schedule.name, device->staged, count, family_name(family));
          }
      }
  }
  int failed = 0;
  MPI_Allreduce(&failures, &failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed == 0 ? 0 : 1;
}
