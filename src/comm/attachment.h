// SPDX-License-Identifier: BSD-3-Clause
// What a layer above keeps for one communicator. That layer derives a type of its own and is the
// only one that uses it; the communicator owns one object of each type, made at first use, and
// destroys it with itself: communicator.attachment<Type>().
#pragma once

namespace slimpi::comm {

class Attachment {
 public:
  Attachment() = default;
  virtual ~Attachment() = default;
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  // The program changed options of the communicator. Not collective.
  virtual void options_changed() {}

  // The nodes are about to be found again. Collective.
  virtual void layout_changed() {}

  // MPI is about to end: drops all MPI handles without freeing them.
  virtual void abandon() {}
};

}  // namespace slimpi::comm
