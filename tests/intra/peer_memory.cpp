// SPDX-License-Identifier: BSD-3-Clause
#include "intra/peer_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "tests/helper/cmocka_cxx.h"

using namespace slimpi;
using namespace slimpi::intra;

namespace {

constexpr std::size_t kBytes = 1 << 20;

// A child that has offered its memory and then waits. `shared`: mapped by both.
struct Peer {
  struct Shared {
    PeerNote note;
    volatile int ready;
    char data[kBytes];
  };
  Shared* const shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pid_t child;

  Peer() {
    child = fork();
    if (child == 0) {
      static char own[kBytes];
      for (std::size_t i = 0; i < kBytes; ++i) own[i] = char(i * 7);
      offer_memory(&shared->note);
      shared->note.in = reinterpret_cast<const float*>(own);
      __atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
      alarm(30);
      for (;;) pause();
    }
    while (__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) == 0) usleep(100);
  }
  ~Peer() {
    end();
    munmap(shared, sizeof(Shared));
  }
  void end() {
    if (child == 0) return;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    child = 0;
  }
};

void reads_what_the_peer_holds(void**) {
  Peer peer;
  if (!can_read(peer.shared->note)) skip();  // not allowed here
  std::vector<char> got(kBytes + 2, 'x');
  assert_true(read_peer(peer.shared->note, peer.shared->note.in, got.data() + 1, kBytes) ==
              Status::ok);
  for (std::size_t i = 0; i < kBytes; ++i) assert_int_equal(got[i + 1], char(i * 7));
  assert_int_equal(got.front(), 'x');
  assert_int_equal(got.back(), 'x');
}

// The process that has this pid in our PID namespace is another one.
void another_process_under_the_pid_is_noticed(void**) {
  Peer peer;
  PeerNote note = peer.shared->note;
  note.token ^= 1;
  assert_false(can_read(note));
  note = peer.shared->note;
  note.token_address = 8;
  assert_false(can_read(note));
}

void an_unmapped_address_is_an_error(void**) {
  Peer peer;
  if (!can_read(peer.shared->note)) skip();
  std::vector<char> got(kBytes);
  assert_true(read_peer(peer.shared->note, reinterpret_cast<const void*>(8), got.data(), 64) ==
              Status::unsupported);
  assert_non_null(strstr(failure_text().c_str(), "Bad address"));
  assert_non_null(strstr(failure_text().c_str(), "SLIMPI_INTRA=shm"));
}

// The first pages can be read, a later one cannot.
void a_buffer_that_ends_early_is_an_error(void**) {
  Peer peer;
  if (!can_read(peer.shared->note)) skip();
  std::vector<char> got(1 << 30);
  assert_true(read_peer(peer.shared->note, peer.shared->note.in, got.data(), got.size()) ==
              Status::unsupported);
}

void a_peer_that_ended_is_an_error(void**) {
  Peer peer;
  peer.end();
  std::vector<char> got(64);
  assert_false(can_read(peer.shared->note));
  assert_true(read_peer(peer.shared->note, peer.shared->note.in, got.data(), 64) ==
              Status::unsupported);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(reads_what_the_peer_holds),
      cmocka_unit_test(another_process_under_the_pid_is_noticed),
      cmocka_unit_test(an_unmapped_address_is_an_error),
      cmocka_unit_test(a_buffer_that_ends_early_is_an_error),
      cmocka_unit_test(a_peer_that_ended_is_an_error),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
