// SPDX-License-Identifier: BSD-3-Clause
// Reading another process's memory by cross-memory attach (process_vm_readv, Linux). The reader
// needs the permission to trace the other process, which Yama, seccomp, containers and PID
// namespaces may refuse. So every process tries it once, when a segment is opened.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace slimpi::intra {

// A random number; each process has another one, also a forked child.
std::uint64_t process_token();

// What a rank tells the others of its segment about its memory. It lies in the segment; only that
// rank writes it.
struct PeerNote {
  std::int64_t pid;             // in the process's own PID namespace
  std::uint64_t token_address;  // where the process keeps `token`
  std::uint64_t token;          // the process's
  // The buffers of a call; valid from its first barrier to its last.
  const float* in;
  const float* result;
  // Segments of this rank's shard that are in `result`. Written by release, read by acquire.
  std::uint64_t finished;

  void offer(const float* input, const float* output) {
    in = input;
    result = output;
    finished = 0;
  }
};

// Writes what does not change from call to call.
void offer_memory(PeerNote* mine);

// Whether this process can read that one's memory: the token is where the note says. In another PID
// namespace the same pid may be another process, which has another token or no such address.
bool can_read(const PeerNote& peer);

// Copies `bytes` from an address of the peer. An address that the peer has not mapped, or that the
// kernel does not read for others, is an error.
Status read_peer(const PeerNote& peer, const void* from, void* to, std::size_t bytes);

}  // namespace slimpi::intra
