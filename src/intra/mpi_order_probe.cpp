// SPDX-License-Identifier: BSD-3-Clause
#include "intra/node_state.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>
#include <string>

#include "base/exceptions.h"
#include "comm/communicator.h"
#include "comm/stream_wait.h"
#include "intra/ordered_sum.h"
#include "kernels/math/philox.h"
#include "observe/log.h"

namespace slimpi::intra {

namespace {

constexpr std::size_t kMostCounts = 1024;  // per communicator; further ones go to MPI

// The probe vector repeats after so many floats, so each rank can compute the values of all ranks.
constexpr std::uint64_t kPeriod = 4096;

// MPICH changes to its shared-memory collectives after a number of calls on a communicator
// (MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD, 5).
constexpr int kWarmUpCalls = 8;

// A count is compared at its first call that slimpi takes and whenever its number of calls has
// grown eightfold, because MPI may change its algorithm later.
bool is_due(std::uint32_t calls, std::uint32_t uncompared) {
  std::uint64_t due = uncompared + 1;
  while (due < calls) due *= 8;
  return due == calls;
}

// Full mantissas, both signs, and exponents over 24 binary places: sums of three or more of these
// round differently in every order.
std::vector<float> probe_of(int local) {
  std::vector<float> values(kPeriod);
  for (std::uint64_t i = 0; i < kPeriod; ++i) {
    const std::uint32_t word =
        kernels::random_block({0x51a3, std::uint32_t(local), 0, i}, i).word[0];
    const std::uint32_t exponent = 115 + (word >> 24) % 24;
    values[i] = std::bit_cast<float>((word << 31) | (exponent << 23) | ((word >> 1) & 0x7fffff));
  }
  return values;
}

std::vector<float> sum_of_probes(int size) {
  std::vector<std::vector<float>> probes;
  std::vector<const float*> addends;
  for (int local = 0; local < size; ++local) {
    probes.push_back(probe_of(local));
    addends.push_back(probes.back().data());
  }
  // By slimpi's own function, on the host: the order to be compared is the one it has.
  std::vector<float> sum(kPeriod), scratch(kPeriod * std::size_t(size));
  add_in_pairs({device::host(), nullptr}, addends, kPeriod, scratch.data(), kPeriod, sum.data());
  return sum;
}

bool repeats(const float* data, std::uint64_t count, const std::vector<float>& period) {
  for (std::uint64_t at = 0; at < count; at += kPeriod)
    if (std::memcmp(data + at, period.data(), std::min(kPeriod, count - at) * sizeof(float)) != 0)
      return false;
  return true;
}

// The code of a sum that MPI made for the comparison.
Status compared(const mpi::Api& api, int code) {
  if (code == mpi::kSuccess) return Status::ok;
  return fail(Status::mpi, "a comparison with MPI's sums: " + mpi::error_text(api, code));
}

// One comparison. The buffers are in the call's kind of memory where MPI takes that. Else they are
// in host memory, because MPI gets host copies of such buffers.
class Probe {
 public:
  explicit Probe(const comm::Call& call)
      : call_(call),
        bytes_(call.count * sizeof(float)),
        location_(device::mpi_takes(call.device) ? call.location : device::Location()),
        device_(*location_.device),
        in_place_(call.in == call.out || &device_ != &call.device) {}

  // All that run() needs: it calls MPI, where the others do not learn that this rank failed.
  Status reserve() {
    const comm::NodeLayout& layout = call_.communicator.layout();
    if (device_.staged) host_.resize(call_.count);
    period_ = probe_of(layout.local_rank());
    expected_ = sum_of_probes(int(layout.node_ranks().size()));
    return memory_.reserve(location_, device::Place::device, bytes_,
                           call_.communicator.statistics());
  }

  Status run(bool* same) {
    // reserve() has allocated all memory, so the ranks reach MPI's call together.
    SLIMPI_TRY(fill(period_));
    const comm::Exchange& exchange = call_.communicator.exchange();
    // As the program calls MPI, because MPI may choose another algorithm in place.
    const void* const in = in_place_ ? mpi::abi.in_place : memory_.data();
    const int code = exchange.api().Allreduce(in, result(), int(call_.count), mpi::abi.type_float,
                                              mpi::abi.op_sum, call_.communicator.user());
    SLIMPI_TRY(compared(exchange.api(), code));
    const float* got = result();
    if (device_.staged) {
      SLIMPI_TRY(copy(host_.data(), got));
      got = host_.data();
    }
    *same = repeats(got, call_.count, expected_);
    return Status::ok;
  }

 private:
  // Receives MPI's result. The program's result buffer may be overwritten until the call ends.
  float* result() { return in_place_ ? reinterpret_cast<float*>(memory_.data()) : call_.out; }
  Status fill(const std::vector<float>& period) {
    float* const to = device_.staged ? host_.data() : reinterpret_cast<float*>(memory_.data());
    for (std::uint64_t at = 0; at < call_.count; at += kPeriod)
      std::memcpy(to + at, period.data(), std::min(kPeriod, call_.count - at) * sizeof(float));
    return device_.staged ? copy(memory_.data(), to) : Status::ok;
  }
  Status copy(void* to, const void* from) {
    SLIMPI_TRY(device_.copy(to, from, bytes_, call_.stream));
    return comm::synchronize(call_.device_stream());
  }

  const comm::Call& call_;
  const std::size_t bytes_;
  const device::Location location_;
  const device::Device& device_;
  const bool in_place_;
  comm::Memory memory_;
  std::vector<float> host_;
  std::vector<float> period_, expected_;  // of this rank's probe; of MPI's sum
};

}  // namespace

void NodeOrder::reserve(int ranks) {
  if (ranks > 2) counts_.reserve(kMostCounts);
}

std::vector<NodeOrder::Count>::iterator NodeOrder::place(std::uint64_t count) {
  return std::lower_bound(counts_.begin(), counts_.end(), count,
                          [](const Count& one, std::uint64_t other) { return one.count < other; });
}

bool NodeOrder::takes(std::uint64_t count, int ranks, bool at_once) {
  // The probe's call has an int count.
  if (count > INT_MAX) return false;
  if (ranks == 2) return true;
  auto found = place(count);
  if (found == counts_.end() || found->count != count) {
    // All ranks have made the same calls, so all have the same table.
    if (counts_.size() == kMostCounts) return false;
    found = counts_.insert(found, {.count = count});
  }
  // Decided by the number of calls only; what this rank has verified does not count here.
  const std::uint32_t uncompared = at_once ? 1 : kUncompared;
  Count& known = *found;
  if (known.refused) return false;
  if (known.calls != UINT32_MAX) ++known.calls;
  if (is_due(known.calls, uncompared)) known.verified = 0;
  return known.calls > uncompared;
}

// One bit per kind: in place or not, in memory of the host or of a device.
unsigned NodeOrder::kind_of(const comm::Call& call) {
  return 1u << ((call.in == call.out ? 1 : 0) + (call.device.staged ? 2 : 0));
}

bool NodeOrder::verified(const comm::Call& call) {
  return call.communicator.size() == 2 || (place(call.count)->verified & kind_of(call)) != 0;
}

Status NodeOrder::compare(const comm::Call& call, bool* same) {
  comm::Communicator& communicator = call.communicator;
  // takes() has made the entry.
  Count& known = *place(call.count);
  Probe probe(call);
  *same = caught([&] { return probe.reserve(); }) == Status::ok;
  // MPI blocks, so all ranks must reach its call or none.
  SLIMPI_TRY(communicator.exchange().all_true(same));
  if (*same) {
    const mpi::Api& api = communicator.exchange().api();
    float one = 1;
    for (int i = 0; i < kWarmUpCalls && !warm_; ++i)
      SLIMPI_TRY(compared(api, api.Allreduce(mpi::abi.in_place, &one, 1, mpi::abi.type_float,
                                             mpi::abi.op_sum, communicator.user())));
    warm_ = true;
    SLIMPI_TRY(probe.run(same));
    // MPI may add in another order on some ranks only.
    SLIMPI_TRY(communicator.exchange().all_true(same));
  }
  known.refused = !*same;
  known.verified |= kind_of(call);
  if (!*same && communicator.rank() == 0)
    log_once(LogLevel::debug, "sums of " + std::to_string(call.count) +
                                  " floats inside the node go to MPI, which adds in another order");
  return Status::ok;
}

}  // namespace slimpi::intra
