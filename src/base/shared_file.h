// SPDX-License-Identifier: BSD-3-Clause
// Memory that several processes of one machine map.
//
// The memory is a file without a name: memfd_create, or, if that is refused, an unnamed file of
// /dev/shm. Thus a killed process leaves nothing behind, and a container's small /dev/shm does not
// limit a memfd. The descriptor is sent in an SCM_RIGHTS message over a Unix socket in the abstract
// namespace, which has no name in a file system either. Unlike opening /proc/PID/fd/N, the message
// needs no /proc, no ptrace permission and no common PID namespace. It cannot pass between
// different network namespaces; the ranks then exchange MPI messages instead.
//
// Memory is reserved with fallocate before it is accessed, so lack of memory is an error code and
// never SIGBUS. No function waits: the callers order the steps of two processes by messages.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/files.h"
#include "base/status.h"

namespace slimpi {

class SharedFile {
 public:
  // Makes a new file of `bytes` bytes. Reserves no memory yet.
  Status create(std::size_t bytes);

  // Reserves memory for these bytes of the file, on the NUMA node of the calling thread if this
  // node has free memory. Bytes that were never written read as 0.
  Status reserve(std::size_t offset, std::size_t bytes);

  // Maps the whole file for reading and writing. Bytes outside reserved ranges must not be
  // accessed. The mapping outlives this object; the caller ends it with munmap.
  Status map(std::size_t bytes, std::byte** memory);

  int descriptor() const { return file_.get(); }  // the file; -1: not open

 private:
  friend class FileRequest;
  Descriptor file_;
};

// The side that sends a file to other processes, which must be of the same user.
class FileOffer {
 public:
  // Opens the offer under `name`, a random number that the other processes also know.
  Status open(std::uint64_t name);

  // Sends the file to the next request that has `token` and is of the same user. Drops other
  // requests. Fails if no such request waits.
  Status give(const SharedFile& file, std::uint64_t token);

 private:
  Descriptor socket_;
};

// The side that requests a file.
class FileRequest {
 public:
  // Sends a request to the offer of this name. `token`: a number that the offering side expects.
  Status ask(std::uint64_t name, std::uint64_t token);

  // Receives the file, once the other side has sent it.
  Status take(SharedFile* file);

 private:
  Descriptor socket_;
};

}  // namespace slimpi
