// SPDX-License-Identifier: BSD-3-Clause
#include "intra/peer_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>

namespace slimpi::intra {

namespace {

// Read by other processes at any time until this one ends, so it has static storage. Of a process
// that forks, each has its own.
std::uint64_t g_token;
pid_t g_tokens_pid = 0;
std::mutex g_token_mutex;

// The kernel may copy less than was asked for: it stops before the first page that it cannot read.
bool read_all(std::int64_t pid, std::uint64_t from, void* to, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const iovec local{static_cast<char*>(to) + done, bytes - done};
    const iovec remote{reinterpret_cast<void*>(from + done), bytes - done};
    const ssize_t got = process_vm_readv(pid_t(pid), &local, 1, &remote, 1, 0);
    if (got == 0) errno = EFAULT;  // the kernel copied nothing and named no error
    if (got <= 0) return false;
    done += std::size_t(got);
  }
  return true;
}

}  // namespace

std::uint64_t process_token() {
  const std::lock_guard lock(g_token_mutex);
  // Without random numbers, which a sandbox may refuse, the time and the process tell it apart.
  if (g_tokens_pid != getpid() && getentropy(&g_token, sizeof g_token) != 0)
    g_token = std::uint64_t(std::chrono::system_clock::now().time_since_epoch().count()) << 20 ^
              std::uint64_t(getpid()) << 1;
  g_tokens_pid = getpid();
  return g_token;
}

void offer_memory(PeerNote* mine) {
  // One token serves all segments of the process: it says which process this is.
  const std::uint64_t token = process_token();
  *mine = {getpid(), reinterpret_cast<std::uint64_t>(&g_token), token, nullptr, nullptr, 0};
}

bool can_read(const PeerNote& peer) {
  std::uint64_t token = 0;
  return read_all(peer.pid, peer.token_address, &token, sizeof token) && token == peer.token;
}

Status read_peer(const PeerNote& peer, const void* from, void* to, std::size_t bytes) {
  if (read_all(peer.pid, reinterpret_cast<std::uint64_t>(from), to, bytes)) return Status::ok;
  // For example memory of a device that the kernel does not read for others.
  return fail(Status::unsupported, "the buffer of process " + std::to_string(peer.pid) +
                                       " on this node cannot be read: " + std::strerror(errno) +
                                       "; SLIMPI_INTRA=shm needs no such reading");
}

}  // namespace slimpi::intra
