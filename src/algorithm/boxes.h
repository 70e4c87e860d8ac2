// SPDX-License-Identifier: BSD-3-Clause
// Where the messages of one call lie: a header and an encoded piece each, in a box of its own. On
// the host that is one place. On a staged device kernels work on the piece in its memory, and MPI
// sends and receives the whole message there, too, where it says that it takes such memory;
// otherwise from and into staging memory. The host reads and writes headers in staging memory
// always. The message is the same whichever way it goes, so that any two ranks fit together.
#pragma once
#include <cstddef>
#include <vector>

#include "algorithm/lanes.h"
#include "codec/wire.h"

namespace slimpi::algorithm {

class Boxes {
 public:
  // `count` boxes of `bytes` in the communicator's scratch memory, for pieces of this coding.
  Boxes(const Call& call, Lanes& lanes, kernels::Coding coding, std::size_t bytes,
        std::size_t count);

  // The message, for MPI; its piece, for kernels; the same for the host, which does not see it
  // where MPI takes device memory.
  std::byte* message(std::size_t box) const { return wire_ + box * bytes_; }
  std::byte* piece(std::size_t box) const { return memory_ + box * bytes_ + codec::kHeaderBytes; }
  std::byte* host_piece(std::size_t box) const {
    return staging_ + box * bytes_ + codec::kHeaderBytes;
  }

  // Behind the kernel that makes the piece: `mark` is reached when the message may be sent.
  Status bring_out(std::size_t box, const codec::Message& about, Lanes::Mark* mark);

  // After a message of `received` bytes came, and before the kernels that use its piece. It is
  // checked at once, or, where only the device has it yet, by check().
  Status bring_in(std::size_t box, std::size_t received, const codec::Message& expected);

  // Checks what was brought in, when what was queued behind it is done.
  Status check(std::size_t box, const codec::Message& expected) const;
  bool checks_late() const { return direct_; }

 private:
  std::byte* header(std::size_t box) const { return staging_ + box * bytes_; }

  Lanes& lanes_;
  const bool direct_;  // MPI works in device memory
  const std::size_t bytes_;
  std::byte *memory_, *staging_, *wire_;
  std::vector<std::size_t> received_;  // by box, where checks come late
};

}  // namespace slimpi::algorithm
