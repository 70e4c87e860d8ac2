// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>

#include "mpi/internal_comm.h"

namespace slimpi::mpi {

namespace {
Status checked(const Api& api, int code) {
  return code == mpi::kSuccess ? Status::ok : fail_by(api, "the first float sum", code);
}
}  // namespace

void FirstExchange::Leave::operator()(FirstExchange* exchange) const {
  int done = 0;
  if (exchange->request == mpi::abi.request_null ||
      (exchange->api_->Test(&exchange->request, &done, mpi::abi.status_ignore) == mpi::kSuccess &&
       done != 0))
    delete exchange;
}

Status FirstExchange::wait(const WaitFor& wait_for, bool limited) {
  const auto poll = [this](bool* done) {
    int complete = 0;
    const int code = api_->Test(&request, &complete, mpi::abi.status_ignore);
    *done = complete != 0;
    return checked(*api_, code);
  };
  return wait_for(poll, arrivals(), limited);
}

Status FirstExchange::begin(const Api& api, mpi::Comm comm, int number, Refusal refusal) {
  int size = 0, rank = 0;
  api_ = &api;
  api.Comm_size(comm, &size);
  api.Comm_rank(comm, &rank);
  if (size > kShownRanks) {
    maxima_[0] = std::uint64_t(number) << 32 | std::uint64_t(rank);
    maxima_[1] = std::uint64_t(refusal);
    return checked(api, api.Iallreduce(mpi::abi.in_place, maxima_, 2, mpi::abi.type_uint64_t,
                                       mpi::abi.op_max, comm, &request));
  }
  shown_ = std::size_t(size);
  own_ = number << 4 | int(refusal);
  std::fill_n(words_, kShownRanks, -1);
  std::fill_n(ones_, kShownRanks, 1);
  std::fill_n(zeros_, kShownRanks, 0);
  // A rank sends no message to itself. If MPI had no memory for that message, the rank would wait
  // for itself.
  words_[rank] = own_;
  ones_[rank] = 0;
  std::iota(places_, places_ + kShownRanks, 0);
  return checked(api, api.Ialltoallv(&own_, ones_, zeros_, mpi::abi.type_int, words_, ones_,
                                     places_, mpi::abi.type_int, comm, &request));
}

int FirstExchange::proposer() const {
  const auto less = [](int a, int b) { return a >> 4 < b >> 4; };
  return shown_ == 0 ? int(maxima_[0] & UINT32_MAX)
                     : int(std::max_element(words_, words_ + shown_, less) - words_);
}

int FirstExchange::number() const {
  return shown_ == 0 ? int(maxima_[0] >> 32) : words_[proposer()] >> 4;
}

Refusal FirstExchange::refusal() const {
  int last = int(maxima_[1]);
  for (const int word : arrivals()) last = std::max(last, word & 15);
  return Refusal(last);
}

}  // namespace slimpi::mpi
