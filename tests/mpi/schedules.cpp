// SPDX-License-Identifier: BSD-3-Clause
// Every schedule of the exchange between nodes gives the same bytes, as results and as what error
// feedback keeps, from host memory and from memory whose messages are staged. Options come from the
// environment.
#include "algorithm/schedule.h"

#include <cstdio>
#include <cstring>

#include "algorithm/communicator.h"
#include "policy/policy.h"
#include "tests/mpi/inputs.h"
#include "tests/mpi/job.h"

using namespace slimpi;

namespace {

// Three calls, in place from the second on, and the residual after each.
std::vector<float> results(const test::Job& job, algorithm::Communicator& communicator,
                           const algorithm::Schedule& schedule, const algorithm::Plan& plan,
                           std::size_t count, Family family, const device::Device& device,
                           Statistics& statistics) {
  const algorithm::Rails& rails = communicator.rails(plan.hierarchy);
  const int members = int(rails.peers.size());
  const algorithm::Need need = schedule.need(plan.format, count, members, device.staged);
  std::vector<float> out(count, -7), residual(count, 0), all;
  for (algorithm::Memory* const memory : {&communicator.messages, &communicator.staging})
    job.must(memory->reserve(device, out.data(), device::Place::device, need.bytes, statistics),
             "reserving");
  job.must(communicator.partial.reserve(device, out.data(), device::Place::device,
                                        need.partial * sizeof(float), statistics),
           "reserving");
  const std::vector<float> in =
      make_input({family, count, 4, false, false, false, job.size}, job.rank);
  for (int number = 0; number < 3; ++number) {
    std::memset(communicator.messages.data(), 0xa5, need.bytes);
    std::memset(communicator.staging.data(), 0x5a, need.bytes);
    const float* const from = number == 0 ? in.data() : out.data();
    algorithm::Call call{communicator,          plan,   from, out.data(), count, device, nullptr,
                         std::uint64_t(number), nullptr};
    job.must(schedule.run(call, rails, {0, count}, from, out.data(),
                          plan.error_feedback ? residual.data() : nullptr),
             schedule.name);
    all.insert(all.end(), out.begin(), out.end());
    all.insert(all.end(), residual.begin(), residual.end());
    for (std::size_t i = 0; i < count; ++i)
      out[i] = out[i] / float(job.size) + float(1e-3 * draw(9, std::uint64_t(job.rank), i));
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const test::Job job(argc, argv);
  Statistics statistics;
  int failures = 0;
  {
    algorithm::Communicator communicator(job.api, statistics,
                                         load_config(slimpi_environment()).config, MPI_COMM_WORLD);
    job.must(communicator.agree(""), "agreeing");
    job.must(communicator.find_nodes(), "finding the nodes");
    for (const std::size_t count : {1, 77, 5000, 300001})
      for (const Family family : {Family::normal, Family::one_nan}) {
        const policy::Decision decision = policy::decide(communicator.config(), {}, "", count);
        const algorithm::Plan& plan = decision.plans.front();
        std::vector<float> want;
        for (const algorithm::Schedule& schedule : algorithm::schedules())
          for (const device::Device* const device : {&device::host(), &job.staged}) {
            const std::vector<float> got =
                results(job, communicator, schedule, plan, count, family, *device, statistics);
            if (want.empty()) want = got;
            if (std::memcmp(want.data(), got.data(), want.size() * sizeof(float)) == 0) continue;
            ++failures;
            std::fprintf(stderr, "rank %d: %s, staged %d: other bytes with %zu elements, %s\n",
                         job.rank, schedule.name, device->staged, count, family_name(family));
          }
      }
  }
  return job.end(failures);
}
