// SPDX-License-Identifier: BSD-3-Clause
// What all ranks of a communicator agree on.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/activity.h"
#include "base/log.h"
#include "base/round_up.h"
#include "base/trace.h"
#include "comm/exchange.h"
#include "comm/waiter.h"

namespace slimpi::comm {

namespace {

// Count and rank as one word, by which the maximum of all words is of the largest count.
constexpr int kRankBits = 24;
constexpr std::uint64_t kRanks = 1 << kRankBits, kMostCount = (std::uint64_t(1) << 40) - 1;
std::uint64_t count_of(std::uint64_t word) {
  return word >> kRankBits;
}
std::uint64_t own_count() {
  const ActiveCall* const call = ActiveCall::current();
  return call == nullptr ? 0 : std::min(call->count(), kMostCount);
}

// Ranks that pass different counts may agree on different things here. MPI must find the same
// number of words and the same operation.
constexpr std::size_t kAgreed = 16;

}  // namespace

// Does not use MPI_Allreduce: it blocks, and would wait forever for a rank that failed.
template <typename Value>
Status Exchange::reduce(std::span<Value> values, mpi::Datatype type, mpi::Op op) {
  static_assert(sizeof(Value) == sizeof(std::uint64_t));
  if (reduced_ == nullptr) reduced_ = std::make_unique<std::vector<std::uint64_t>>();
  reduced_->resize(values.size());
  std::memcpy(reduced_->data(), values.data(), values.size_bytes());
  mpi::Request request = mpi::abi.request_null;
  const int code = api_.Iallreduce(mpi::abi.in_place, reduced_->data(), int(values.size()), type,
                                   op, comm_, &request);
  if (code != mpi::kSuccess) return mpi_failed("agreeing", code);
  if (const Status status = wait(request); status != Status::ok) {
    (void)reduced_.release();
    return status;
  }
  std::memcpy(values.data(), reduced_->data(), values.size_bytes());
  return Status::ok;
}

// The words are filled up to a multiple of kAgreed. The first two are the maxima of count and rank,
// and of their complement, so that all ranks know the largest and the smallest count.
Status Exchange::agree(std::span<std::uint64_t> values, bool on_minimum) {
  const std::uint64_t own = own_count() << kRankBits | std::uint64_t(rank_);
  agreed_.assign(round_up(2 + values.size(), kAgreed), 0);
  agreed_[0] = own;
  agreed_[1] = ~own;
  // The minimum of values is the complement of the maximum of their complements. So both operations
  // are one for MPI, and ranks that disagree about the operation still match.
  const std::uint64_t flip = on_minimum ? ~std::uint64_t(0) : 0;
  std::transform(values.begin(), values.end(), agreed_.begin() + 2,
                 [&](std::uint64_t value) { return value ^ flip; });
  {
    const Slice slice("agreement", values.size_bytes());
    SLIMPI_TRY(reduce(std::span(agreed_), mpi::abi.type_uint64_t, mpi::abi.op_max));
  }
  if (count_of(agreed_[0]) != count_of(~agreed_[1]))
    return describe_counts(agreed_[0], ~agreed_[1]);
  std::transform(values.begin(), values.end(), agreed_.begin() + 2, values.begin(),
                 [&](std::uint64_t, std::uint64_t value) { return value ^ flip; });
  return Status::ok;
}

// No failure ends the wait: MPI may read and write the buffers until the sum is made.
int Exchange::sum_by_mpi(const void* in, void* out, std::uint64_t count, mpi::Datatype type,
                         std::size_t width) {
  constexpr std::uint64_t kMost = 1u << 30;  // MPI takes the count as an int
  for (std::uint64_t first = 0; first < count; first += kMost) {
    mpi::Request request = mpi::abi.request_null;
    int code = api_.Iallreduce(
        in == mpi::abi.in_place ? in : static_cast<const std::byte*>(in) + first * width,
        static_cast<std::byte*>(out) + first * width, int(std::min(kMost, count - first)), type,
        mpi::abi.op_sum, comm_, &request);
    Waiter waiter(Waiter::Poll::mpi);
    for (int done = 0; code == mpi::kSuccess;) {
      code = api_.Test(&request, &done, mpi::abi.status_ignore);
      if (done != 0) break;
      waiter.rest();
    }
    if (code != mpi::kSuccess) return code;
  }
  return mpi::kSuccess;
}

Status Exchange::share_texts(std::span<char> texts) {
  std::vector<std::uint64_t> words((texts.size() + 7) / 8, 0);
  for (char& c : texts)
    if ((c & 0x80) != 0) c = '?';
  std::memcpy(words.data(), texts.data(), texts.size());
  SLIMPI_TRY(all_max(words));
  std::memcpy(texts.data(), words.data(), texts.size());
  return Status::ok;
}

Status Exchange::all_min(std::span<std::uint64_t> values) {
  return agree(values, true);
}
Status Exchange::all_max(std::span<std::uint64_t> values) {
  return agree(values, false);
}
Status Exchange::all_true(bool* flag) {
  std::uint64_t all = *flag ? 1 : 0;
  *flag = false;
  SLIMPI_TRY(all_min({&all, 1}));
  *flag = all == 1;
  return Status::ok;
}

// Names the rank with the largest count or with the smallest, whichever is not this one's.
Status Exchange::describe_counts(std::uint64_t most, std::uint64_t least) {
  const std::uint64_t other = count_of(most) != own_count() ? most : least;
  return publish_disagreement(
      fail(Status::disagreement, describe_other_count(int(other % kRanks), count_of(other))));
}

Status Exchange::publish_disagreement(Status status) {
  char text[FailureScope::kMost];  // of `status`, whatever the wait below leaves
  copy_failure_text(text);
  if (rank_ == 0) {
    log_error(failure_text());
    usleep(kTimeToForward);
  }
  // Holds the other ranks back until rank 0 has printed.
  std::uint64_t published = 0;
  SLIMPI_TRY(reduce(std::span(&published, 1), mpi::abi.type_uint64_t, mpi::abi.op_max));
  return fail(status, text);
}

Status Exchange::all_sum(std::span<double> values) {
  // Counts the bytes of a ring over the first ranks of the nodes; what MPI really sends is not
  // known.
  if (layout_ != nullptr && layout_->local_rank() == 0)
    count_sent(2 * values.size_bytes() * std::size_t(layout_->nodes() - 1) /
               std::size_t(layout_->nodes()));
  return reduce(values, mpi::abi.type_double, mpi::abi.op_sum);
}

}  // namespace slimpi::comm
