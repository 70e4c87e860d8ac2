// SPDX-License-Identifier: BSD-3-Clause
// Agreements, where all ranks of a communicator compute minima, maxima or sums of a few words.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <string>

#include "base/hash.h"
#include "comm/exchange.h"
#include "comm/waiter.h"
#include "mpi/internal_comm.h"
#include "observe/activity.h"
#include "observe/log.h"
#include "observe/trace.h"

namespace slimpi::comm {

namespace {

// To find out whether the ranks are in different sums, each rank contributes a word: the high bits
// are ActiveCall::sum_word, which identifies the sum, and the low bits are the rank. If any two
// ranks' sums differ, so do those in the largest and the smallest word.
constexpr int kRankBits = 24, kSumBits = 64 - kRankBits;
constexpr std::uint64_t kRanks = 1 << kRankBits;
std::uint64_t sum_of(std::uint64_t word) {
  return word >> kRankBits;
}
std::uint64_t own_sum() {
  const ActiveCall* const call = ActiveCall::current();
  return call == nullptr ? 0 : call->sum_word(kSumBits);
}

// The words that agree() sends before the values: two ComparedWords, one of the word above and one
// of the number of values.
constexpr std::size_t kFront = 4;

}  // namespace

// Sends the first half of passed_ to rank `to`, and receives the second half from rank `from`.
Status Exchange::pass_words(int to, int from, std::size_t count) {
  const auto words = int(count);
  std::uint64_t* const data = passed_->data();
  const int tag = mpi_tag(Tag::agreement);
  int code = mpi::kSuccess;
  if (from >= 0)
    code =
        api_.Irecv(data + count, words, mpi::abi.type_uint64_t, from, tag, comm(), &agreement_[0]);
  if (to >= 0 && code == mpi::kSuccess)
    code = api_.Isend(data, words, mpi::abi.type_uint64_t, to, tag, comm(), &agreement_[1]);
  if (code != mpi::kSuccess) return mpi_failed("agreeing", code);
  agrees_with_ = from;
  SLIMPI_TRY(wait(agreement_[0]));
  agrees_with_ = to;
  return wait(agreement_[1]);
}

// Sends the words to rank `to`, and receives words from rank `from` into the second half of
// passed_; a negative rank means no message. After a failure passed_ is left to MPI, which may
// still use it.
Status Exchange::move_words(std::span<std::uint64_t> words, int to, int from) {
  if (passed_ == nullptr) passed_ = std::make_unique<std::vector<std::uint64_t>>();
  passed_->resize(2 * words.size());
  std::copy(words.begin(), words.end(), passed_->begin());
  const Status status = pass_words(to, from, words.size());
  if (status == Status::ok) return status;
  if (agreement_[0] != mpi::abi.request_null) api_.Cancel(&agreement_[0]);
  for (mpi::Request& request : agreement_)
    if (request != mpi::abi.request_null) api_.Request_free(&request);
  (void)passed_.release();
  return status;
}

// Replaces each word by its maximum over all ranks, by dissemination: in each step a rank sends its
// words to the rank `distance` after it and receives those of the rank `distance` before it, which
// doubles the number of ranks whose maxima it has. This is not a collective of MPI, because each
// rank may make the agreements of several channels in its own order.
Status Exchange::spread_maxima(std::span<std::uint64_t> words) {
  for (int distance = 1; distance < size_; distance *= 2) {
    SLIMPI_TRY(move_words(words, (rank_ + distance) % size_, (rank_ - distance + size_) % size_));
    const std::uint64_t* const theirs = passed_->data() + words.size();
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = std::max(words[i], theirs[i]);
  }
  return Status::ok;
}

// Replaces the values by their minima or maxima over all ranks. Words that exceed the first message
// follow in a second one, once all ranks know how many there are, so that no message is longer than
// its receive.
Status Exchange::agree(std::span<std::uint64_t> values, bool on_minimum) {
  const auto own = ComparedWord::of(own_sum() << kRankBits | std::uint64_t(rank_));
  const auto number = ComparedWord::of(values.size());
  agreed_.assign({own.words[0], own.words[1], number.words[0], number.words[1]});
  agreed_.resize(std::max(kAgreed, kFront + values.size()));
  // A minimum is the complement of the maximum of the complements.
  const std::uint64_t flip = on_minimum ? ~std::uint64_t(0) : 0;
  const auto complement = [&](std::uint64_t value) { return value ^ flip; };
  std::transform(values.begin(), values.end(), agreed_.begin() + kFront, complement);
  {
    const Slice slice("agreement", values.size_bytes());
    const std::span all(agreed_);
    SLIMPI_TRY(spread_maxima(all.first(kAgreed)));
    if (sum_of(agreed_[0]) != sum_of(~agreed_[1])) return fail_for_sums(agreed_[0], ~agreed_[1]);
    if (!ComparedWord{{agreed_[2], agreed_[3]}}.same())
      return fail_on_all_ranks(
          fail(Status::disagreement,
               "the ranks of a communicator are in different calls: all ranks must make the same "
               "collective calls in the same order"));
    if (all.size() > kAgreed) SLIMPI_TRY(spread_maxima(all.subspan(kAgreed)));
  }
  std::transform(agreed_.begin() + kFront, agreed_.begin() + kFront + std::ptrdiff_t(values.size()),
                 values.begin(), complement);
  return Status::ok;
}

int Exchange::make_by_mpi(const StartByMpi& start) {
  if (channel_ != 0 && sums_comm_ == mpi::abi.comm_null &&
      mpi::copy_internal(api_, comm(), channel_, &sums_comm_) != Status::ok)
    return mpi::abi.err_other;
  mpi::Request request = mpi::abi.request_null;
  int code = start(channel_ == 0 ? comm() : sums_comm_, &request);
  Waiter waiter(Waiter::Poll::mpi);
  for (int done = 0; code == mpi::kSuccess;) {
    code = api_.Test(&request, &done, mpi::abi.status_ignore);
    if (done != 0) break;
    waiter.rest();
  }
  return code;
}

int Exchange::sum_by_mpi(const void* in, void* out, std::uint64_t count, mpi::Datatype type,
                         std::size_t width) {
  constexpr std::uint64_t kMost = 1u << 30;  // MPI takes the count as an int
  int code = mpi::kSuccess;
  for (std::uint64_t first = 0; first < count && code == mpi::kSuccess; first += kMost) {
    const auto start = [&](mpi::Comm on, mpi::Request* request) {
      return api_.Iallreduce(
          in == mpi::abi.in_place ? in : static_cast<const std::byte*>(in) + first * width,
          static_cast<std::byte*>(out) + first * width, int(std::min(kMost, count - first)), type,
          mpi::abi.op_sum, on, request);
    };
    code = make_by_mpi(std::ref(start));  // by reference, so that std::function allocates nothing
  }
  return code;
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
Status Exchange::all_same(std::uint64_t word, bool* same) {
  *same = false;
  auto compared = ComparedWord::of(word);
  SLIMPI_TRY(all_max(compared.words));
  *same = compared.same();
  return Status::ok;
}

// Fails with a text that names another rank and its sum: the rank with the largest word or, if that
// word is for this rank's own sum, with the smallest.
Status Exchange::fail_for_sums(std::uint64_t most, std::uint64_t least) {
  const std::uint64_t other = sum_of(most) != own_sum() ? most : least;
  return fail_on_all_ranks(
      fail(Status::disagreement, describe_other_sum(int(other % kRanks), sum_of(other), kSumBits)));
}

Status Exchange::fail_on_all_ranks(Status status) {
  char text[FailureScope::kMost];  // of `status`; the wait below may replace it
  copy_failure_text(text);
  if (rank_ == 0) {
    log_error(failure_text());
    usleep(kTimeToForward);
  }
  // Holds the other ranks back until rank 0 has printed.
  std::array<std::uint64_t, kAgreed> published{};
  SLIMPI_TRY(spread_maxima(published));
  return fail(status, text);
}

// Shares two texts: that of rank 0, and that of the first rank with another value.
Status Exchange::fail_for_difference(const std::string& name, const std::string& value,
                                     const std::string& text, const std::string& remedy) {
  const std::uint64_t own = text_hash(value) >> 1;
  std::uint64_t of_first = rank_ == 0 ? own : 0;
  SLIMPI_TRY(all_max({&of_first, 1}));
  std::uint64_t differs = own == of_first ? 0 : std::uint64_t(size_ - rank_);
  SLIMPI_TRY(all_max({&differs, 1}));
  const int other = size_ - int(std::max<std::uint64_t>(differs, 1));
  char texts[2][120] = {};
  if (rank_ == 0 || rank_ == other) text.copy(texts[rank_ == 0 ? 0 : 1], sizeof texts[0] - 1);
  SLIMPI_TRY(share_texts({texts[0], sizeof texts}));
  return fail_on_all_ranks(fail(
      Status::disagreement, name + " differs between the ranks of a communicator: " + texts[0] +
                                " on rank 0, " + texts[1] + " on rank " + std::to_string(other) +
                                "; " + remedy));
}

// Adds the values along a binomial tree in a fixed order. Rank 0 then sends the sum back along the
// tree, so all ranks have the same bytes.
Status Exchange::all_sum(std::span<double> values) {
  if (layout_ != nullptr && layout_->local_rank() == 0)
    count_sent(2 * values.size_bytes() * std::size_t(layout_->nodes() - 1) /
               std::size_t(layout_->nodes()));
  agreed_.resize(values.size());
  const std::span words(agreed_);
  std::memcpy(words.data(), values.data(), values.size_bytes());
  const auto receive = [&](int from) {
    SLIMPI_TRY(move_words(words, -1, from));
    std::copy_n(passed_->begin() + std::ptrdiff_t(words.size()), words.size(), words.begin());
    return Status::ok;
  };
  int distance = 1;
  for (; distance < size_ && (rank_ & distance) == 0; distance *= 2) {
    if (rank_ + distance >= size_) continue;
    SLIMPI_TRY(receive(rank_ + distance));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += std::bit_cast<double>(words[i]);
    std::memcpy(words.data(), values.data(), values.size_bytes());
  }
  if (rank_ != 0) {
    SLIMPI_TRY(move_words(words, rank_ - distance, -1));
    SLIMPI_TRY(receive(rank_ - distance));
  }
  for (distance /= 2; distance > 0; distance /= 2)
    if (rank_ + distance < size_) SLIMPI_TRY(move_words(words, rank_ + distance, -1));
  std::memcpy(values.data(), words.data(), values.size_bytes());
  return Status::ok;
}

}  // namespace slimpi::comm
