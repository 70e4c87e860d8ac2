// SPDX-License-Identifier: BSD-3-Clause
#include "intra/file_passing.h"

namespace slimpi::intra {

namespace {

// Whether everything went well so far. The words between the leader and one other rank, in order:
//   1. from the leader: begin
//   2. to the leader: the process has asked at the socket
//   3. from the leader: the file is in the socket
constexpr std::uint64_t kGood = 1, kFailed = 0;

std::uint64_t word_of(Status status) {
  return status == Status::ok ? kGood : kFailed;
}

}  // namespace

Status give_file(LeaderWords& words, FileOffer& offer, const SharedFile& file,
                 std::span<const std::uint64_t> processes, bool* good) {
  for (int local = 1; local < words.ranks(); ++local) {
    std::uint64_t word = kGood;
    SLIMPI_TRY(words.send(local, {&word, 1}));
    SLIMPI_TRY(words.receive(local, {&word, 1}));
    if (word == kGood) word = word_of(offer.give(file, processes[std::size_t(local)]));
    *good = *good && word == kGood;
    SLIMPI_TRY(words.send(local, {&word, 1}));
  }
  return Status::ok;
}

Status take_file(LeaderWords& words, std::uint64_t id, std::uint64_t process, SharedFile* file,
                 bool* good) {
  FileRequest request;
  std::uint64_t word = kGood;
  SLIMPI_TRY(words.receive(0, {&word, 1}));
  word = word_of(request.ask(id, process));
  SLIMPI_TRY(words.send(0, {&word, 1}));
  SLIMPI_TRY(words.receive(0, {&word, 1}));
  *good = *good && word == kGood && request.take(file) == Status::ok;
  return Status::ok;
}

}  // namespace slimpi::intra
