// SPDX-License-Identifier: BSD-3-Clause
#include "base/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>

#include "tests/helper/base/unit_test.h"

using slimpi::FileOffer;
using slimpi::FileRequest;
using slimpi::SharedFile;
using slimpi::Status;

namespace {

constexpr std::size_t kBytes = 1 << 20;

std::uint64_t name() {
  return std::uint64_t(getpid()) << 20 ^ std::uint64_t(clock());
}

UNIT_TEST(what_one_writes_the_other_reads) {
  const std::uint64_t offered = name();
  SharedFile mine, theirs;
  FileOffer offer;
  FileRequest request;
  assert_true(mine.create(kBytes) == Status::ok);
  assert_true(mine.reserve(0, kBytes) == Status::ok);
  assert_true(offer.open(offered) == Status::ok);
  assert_true(request.ask(offered, 7) == Status::ok);
  assert_true(offer.give(mine, 7) == Status::ok);
  assert_true(request.take(&theirs) == Status::ok);
  std::byte *here = nullptr, *there = nullptr;
  assert_true(mine.map(kBytes, &here) == Status::ok);
  assert_true(theirs.map(kBytes, &there) == Status::ok);
  assert_int_equal(int(there[kBytes - 1]), 0);
  std::strcpy(reinterpret_cast<char*>(here), "shared");
  assert_string_equal(reinterpret_cast<char*>(there), "shared");
  munmap(here, kBytes);
  munmap(there, kBytes);
}

UNIT_TEST(a_stranger_gets_nothing) {
  const std::uint64_t offered = name();
  SharedFile mine, theirs;
  FileOffer offer;
  FileRequest stranger, request;
  assert_true(mine.create(kBytes) == Status::ok);
  assert_true(offer.open(offered) == Status::ok);
  assert_true(stranger.ask(offered, 8) == Status::ok);
  assert_true(request.ask(offered, 7) == Status::ok);
  assert_true(offer.give(mine, 7) == Status::ok);
  assert_true(stranger.take(&theirs) != Status::ok);
  assert_true(request.take(&theirs) == Status::ok);
}

UNIT_TEST(nothing_waits) {
  SharedFile mine, theirs;
  FileOffer offer;
  FileRequest request;
  const std::uint64_t offered = name();
  assert_true(request.ask(offered, 7) != Status::ok);  // nobody offers
  assert_true(mine.create(kBytes) == Status::ok);
  assert_true(offer.open(offered) == Status::ok);
  assert_true(offer.give(mine, 7) != Status::ok);  // nobody asks
  assert_true(request.ask(offered, 7) == Status::ok);
  assert_true(request.take(&theirs) != Status::ok);  // nothing was given
}

// A program may have closed the standard streams. What others write to these numbers must not go
// into the file.
UNIT_TEST(no_descriptor_is_a_standard_stream) {
  const int input = dup(STDIN_FILENO);
  const auto is_free = [] { return fcntl(STDIN_FILENO, F_GETFD) < 0; };
  const std::uint64_t offered = name();
  close(STDIN_FILENO);
  SharedFile mine, theirs;
  FileOffer offer;
  FileRequest request;
  bool all_free = mine.create(kBytes) == Status::ok && is_free();
  all_free = all_free && offer.open(offered) == Status::ok && is_free();
  all_free = all_free && request.ask(offered, 7) == Status::ok && is_free();
  all_free = all_free && offer.give(mine, 7) == Status::ok && is_free();
  all_free = all_free && request.take(&theirs) == Status::ok && is_free();
  std::byte* there = nullptr;
  const bool usable = theirs.map(kBytes, &there) == Status::ok;
  const int result = slimpi::open_result("/dev/null");
  all_free = all_free && result > STDERR_FILENO && is_free();
  close(result);
  dup2(input, STDIN_FILENO);
  close(input);
  assert_true(all_free);
  assert_true(usable);
  munmap(there, kBytes);
}

UNIT_TEST(lack_of_memory_is_an_error) {
  rlimit before{}, small{};
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = kBytes;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  SharedFile file;
  assert_true(file.create(2 * kBytes) == Status::no_memory);
  assert_true(file.create(kBytes) == Status::ok);
  assert_true(file.reserve(kBytes, 1) == Status::no_memory);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

}  // namespace
