// SPDX-License-Identifier: BSD-3-Clause
// Every schedule of the exchange between nodes gives the same bytes, as results and as what error
// feedback keeps, from host memory and from memory whose messages are staged, in short segments
// and, after a rank has prepared for such memory, in long ones. Options come from the environment.
#include "inter/schedule.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "algorithm/algorithm.h"
#include "algorithm/policy.h"
#include "comm/communicator.h"
#include "comm/memory.h"
#include "tests/mpi/inputs.h"
#include "tests/mpi/job.h"

using namespace slimpi;

namespace {

// Returns the results of three calls, which are in place from the second call on, and the residual
// after each.
std::vector<float> results(const test::Job& job, comm::Communicator& communicator,
                           const inter::Schedule& schedule, const comm::Plan& plan,
                           std::size_t count, Family family, const device::Device& device,
                           comm::CallScratch& scratch) {
  const comm::InterNodeGroup& group = communicator.inter_node_group(plan.hierarchy);
  const int members = int(group.peers.size());
  const inter::Need need =
      schedule.need({plan.format, count, members, communicator.segment_class(), device.staged});
  std::vector<float> out(count, -7), residual(count, 0), all;
  Statistics& statistics = communicator.statistics();
  for (comm::Memory* const memory : {&scratch.near, &scratch.staging})
    job.must(memory->reserve(device, device::Place::device, need.bytes, statistics), "reserving");
  job.must(
      scratch.sums.reserve(device, device::Place::device, need.partial * sizeof(float), statistics),
      "reserving");
  const std::vector<float> in =
      make_input({family, count, 4, false, false, false, job.size}, job.rank);
  for (int number = 0; number < 3; ++number) {
    std::memset(scratch.near.data(), 0xa5, need.bytes);
    std::memset(scratch.staging.data(), 0x5a, need.bytes);
    const float* const from = number == 0 ? in.data() : out.data();
    comm::Call call{.communicator = communicator,
                    .scratch = scratch,
                    .plan = plan,
                    .in = from,
                    .out = out.data(),
                    .count = count,
                    .location = device,
                    .number = std::uint64_t(number)};
    inter::Streams streams;
    job.must(inter::find_streams(call, &streams), "finding streams");
    const inter::Context context = inter::context_of(call, streams);
    const auto layout = schedule.layout(inter::size_of(context, group, count));
    job.must(schedule.run(context, *layout, group, {0, count}, from, out.data(),
                          plan.error_feedback ? residual.data() : nullptr),
             schedule.name);
    all.insert(all.end(), out.begin(), out.end());
    all.insert(all.end(), residual.begin(), residual.end());
    for (std::size_t i = 0; i < count; ++i)
      out[i] = out[i] / float(job.size) + float(1e-3 * draw(9, std::uint64_t(job.rank), i));
  }
  return all;
}

// One rank whose memory is staged is enough to change the length of all ranks' segments, at the
// first size that is larger than any before.
void lengthen(const test::Job& job, comm::Communicator& communicator, comm::CallScratch& scratch) {
  const std::uint64_t count = 3 << 20;
  const algorithm::Decision decision = algorithm::make_decision(communicator.config(), nullptr);
  const bool mine = job.rank == job.size - 1;
  bool ready = false;
  const comm::Call call{.communicator = communicator,
                        .scratch = scratch,
                        .plan = decision.plans.front(),
                        .in = nullptr,
                        .out = nullptr,
                        .count = count,
                        .location = mine ? job.staged : device::host()};
  job.must(algorithm::prepare(call, &ready), "preparing");
  if (!ready || communicator.segment_class() != comm::SegmentClass::large)
    job.must(fail(Status::disagreement, "the segments are as short as before"), "preparing");
}

}  // namespace

int main(int argc, char** argv) {
  const test::Job job(argc, argv);
  const char* const tier = std::getenv("RUN_EXPENSIVE_TESTS");
  const bool expensive = tier != nullptr && std::strcmp(tier, "yes") == 0;
  Statistics statistics;
  int failures = 0;
  {
    comm::Communicator communicator(job.api, statistics, load_config(slimpi_environment()).config,
                                    mpi::abi.comm_world);
    comm::CallScratchLease lease;
    comm::CallScratch& scratch = *lease.take();
    job.must(communicator.compare_options(""), "agreeing");
    job.must(communicator.find_nodes(), "finding the nodes");
    std::vector<std::vector<float>> want;
    using comm::SegmentClass;
    for (const auto segments : {SegmentClass::small, SegmentClass::large}) {
      if (segments == SegmentClass::large) lengthen(job, communicator, scratch);
      std::size_t which = 0;
      for (const std::size_t count : {1, 77, 5000, 300001, 2000003})
        for (const Family family : {Family::normal, Family::one_nan}) {
          if (count > 300001 && (job.size > 3 || (family != Family::normal && !expensive)))
            continue;
          const algorithm::Decision decision =
              algorithm::make_decision(communicator.config(), nullptr);
          const comm::Plan& plan = decision.plans.front();
          for (const inter::Schedule& schedule : inter::schedules())
            for (const device::Device* const device : {&device::host(), &job.staged}) {
              const std::vector<float> got =
                  results(job, communicator, schedule, plan, count, family, *device, scratch);
              if (want.size() == which) want.push_back(got);
              if (std::memcmp(want[which].data(), got.data(), got.size() * sizeof(float)) == 0)
                continue;
              ++failures;
              std::fprintf(stderr,
                           "rank %d: %s, staged %d, segments %d: other bytes with %zu, %s\n",
                           job.rank, schedule.name, device->staged, int(segments), count,
                           family_name(family));
            }
          ++which;
        }
    }
  }
  return job.end(failures);
}
