// SPDX-License-Identifier: BSD-3-Clause
// Names buffers by the order of calls where their addresses say nothing: programs that allocate an
// array anew in every step, as NumPy programs do. malloc gives such an array an address that it has
// never had, or that of another array which was freed before. Finds the period of a communicator's
// float sums from their counts. All decisions come from counts and from what the ranks agreed, so
// they are the same on every rank. Allocates nothing, so no rank can fail alone.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "comm/attachment.h"

namespace slimpi::comm {

class CallSequence : public Attachment {
 public:
  // A float sum of `count` elements begins; to be called wherever TensorStates::count_call is.
  void add(std::uint64_t count);

  // The smallest period of all sums so far; 0 while it is not known, or where it is longer than
  // kLongest. It has been seen three times.
  std::uint64_t period() const;

  // How this rank has used the buffer of the last add() before, as far as it remembers. irregular:
  // after another number of sums than the last time. So its address may name two tensors, or the
  // program has skipped or added a sum.
  enum class Use : std::uint8_t { known, first, irregular };
  Use note_use(const void* address, std::uint64_t count);

  // The maximum of what the ranks noted.
  void agreed(Use use);
  // Of the call of agreed(): whether its state may be another tensor's. Only among the first
  // kLearning sums; later a program that skips sums would lose too much.
  bool suspect() const { return suspect_; }
  // Irregular uses are frequent, and the order of calls cannot name the buffers.
  bool unnamed() const { return often_irregular() && !by_order_; }

  // The period by which buffers are named from now on; 0: they are named by address. Changes in
  // update() only, which returns whether it did: then all state is to be dropped.
  std::uint64_t in_use() const { return in_use_; }
  bool update();

  static constexpr std::size_t kLeast = 16;      // sums before a period is believed
  static constexpr std::size_t kLongest = 1024;  // sums of the longest period
  static constexpr std::uint64_t kLearning = 3 * kLongest;
  static constexpr std::uint64_t kOften = 32;

 private:
  static constexpr std::size_t kMost = 4 * kLongest, kSeen = 1024;
  bool often_irregular() const { return irregular_ >= kOften; }
  bool has_unlike_counts(std::uint64_t period) const;
  std::uint64_t threshold(std::uint64_t period) const;

  std::size_t length_ = 0;   // sums in counts_
  std::size_t limit_ = 256;  // sums after which a sequence without a period starts over
  std::uint64_t in_use_ = 0;
  std::uint64_t calls_ = 0;  // of add()
  // Rises by 2 at a first use, falls by 1 at a known one.
  std::uint64_t score_ = 0;
  // Rises by 2 at an irregular use, falls by 1 at a known one. Where sums are skipped or added now
  // and then, it stays low.
  std::uint64_t irregular_ = 0;
  bool suspect_ = false;
  bool by_order_ = false;  // what the scores decided
  std::size_t seen_used_ = 0;
  struct Seen {
    std::uint64_t key = 0;       // 0: free
    std::uint64_t last_use = 0;  // number of the sum
    std::uint64_t distance = 0;  // sums between its last two uses; 0: used once
  };
  std::array<Seen, kSeen> seen_{};  // open addressing
  // border_[i]: length of the longest proper prefix of the first i + 1 counts that is their suffix.
  std::array<std::uint16_t, kMost> border_;
  std::array<std::uint64_t, kMost> counts_;
};

}  // namespace slimpi::comm
