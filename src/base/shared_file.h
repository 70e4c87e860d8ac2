// SPDX-License-Identifier: BSD-3-Clause
// Memory that several processes of one machine map.
//
// The memory is a file without a name, from memfd_create or, if that is refused, in /dev/shm. So a
// killed process leaves nothing behind, and a container's small /dev/shm does not limit a memfd.
// The descriptor is sent as an SCM_RIGHTS message over a Unix socket in the abstract namespace,
// which has no name in a file system either. Unlike opening /proc/PID/fd/N, that needs no /proc, no
// ptrace permission and no common PID namespace. It does not work between different network
// namespaces, where the ranks exchange MPI messages instead.
//
// Memory is reserved with fallocate before it is accessed, so lack of memory is an error code and
// never SIGBUS. No function waits: the callers order the steps of the two processes by messages.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/files.h"
#include "base/status.h"

namespace slimpi {

class SharedFile {
 public:
  // Creates a file of `bytes` bytes without reserving memory for them.
  Status create(std::size_t bytes);

  // Reserves memory for these bytes of the file, on the NUMA node of the calling thread as long as
  // it has free memory. Bytes that were never written read as 0.
  Status reserve(std::size_t offset, std::size_t bytes);

  // Maps the whole file for reading and writing. Only bytes in reserved ranges may be accessed. The
  // mapping outlives this object; the caller ends it with munmap().
  Status map(std::size_t bytes, std::byte** memory);

  int descriptor() const { return file_.get(); }  // the file; -1: not open

 private:
  friend class FileRequest;
  Descriptor file_;
};

// The side that sends a file to other processes of the same user.
class FileOffer {
 public:
  // Opens the offer under `name`, a random number that the other processes know, too.
  Status open(std::uint64_t name);

  // Sends the file to the next request that has `token` and comes from the same user, and drops
  // other requests. Fails if no such request is waiting.
  Status give(const SharedFile& file, std::uint64_t token);

 private:
  Descriptor socket_;
};

// The side that requests a file.
class FileRequest {
 public:
  // Sends a request to the offer of this name, with the `token` that the offering side expects.
  Status ask(std::uint64_t name, std::uint64_t token);

  // Receives the file. The other side must have sent it.
  Status take(SharedFile* file);

 private:
  Descriptor socket_;
};

}  // namespace slimpi
