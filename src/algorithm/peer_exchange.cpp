// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/peer_exchange.h"

#include <algorithm>

#include "algorithm/boxes.h"
#include "algorithm/communicator.h"
#include "algorithm/piece.h"

namespace slimpi::algorithm {

namespace {

// As in the two rounds: long enough that a message's fixed cost does not count.
constexpr std::uint64_t kSegmentBytes = 64 << 10;
// Messages under way at once may take this much, or as much as the encoded slice.
constexpr std::size_t kMemoryFloor = 16 << 20;

std::size_t message_bytes(const kernels::Format& format, std::uint64_t elements) {
  return codec::kHeaderBytes + (kernels::encoded_bytes(format, elements) + 3) / 4 * 4;
}

struct Cut {
  std::uint64_t elements;  // of a segment; whole buckets
  std::uint64_t segments;
  int slots;        // segments under way at once
  std::size_t box;  // bytes of one message, header included
  std::size_t total;
};

Cut cut(const kernels::Format& format, std::uint64_t count, int peers, bool staged) {
  const bool quantized = format.coding == kernels::Coding::quantized;
  const std::uint64_t whole = std::max<std::uint64_t>(count, 1);
  const std::size_t boxes = std::size_t(peers) + 1;
  Cut result{};
  result.slots = staged ? 6 : 4;
  if (quantized && format.bucket == 0) {
    result.elements = whole;
  } else {
    const std::uint64_t block = quantized ? format.bucket : 64;
    const std::uint64_t most =
        std::max<std::size_t>(kMemoryFloor, kernels::encoded_bytes(format, count)) /
        (boxes * std::size_t(result.slots));
    const std::uint64_t of_block = kernels::encoded_bytes(format, block);
    const std::uint64_t blocks =
        std::max<std::uint64_t>(1, std::min(kSegmentBytes, most) / of_block);
    result.elements = std::min(blocks * block, whole);
  }
  result.segments = (count + result.elements - 1) / result.elements;
  result.slots = int(std::clamp<std::uint64_t>(result.segments, 1, std::uint64_t(result.slots)));
  result.box = (message_bytes(format, result.elements) + 63) / 64 * 64;
  result.total = result.box * boxes * std::size_t(result.slots);
  return result;
}

class Pass {
 public:
  Pass(Call& call, const kernels::Format& format, Range slice, const std::vector<int>& ranks,
       Talk& talk)
      : call_(call),
        format_(format),
        slice_(slice),
        ranks_(ranks),
        talk_(talk),
        exchange_(call.communicator.exchange()),
        statistics_(call.communicator.statistics()),
        lanes_(call),
        staged_(call.device.staged),
        cut_(cut(format, slice.count, int(ranks.size()), staged_)),
        boxes_(call, lanes_, format.coding, cut_.box, cut_.total / cut_.box),
        requests_(2 * std::size_t(cut_.slots) * ranks.size(), MPI_REQUEST_NULL),
        said_(std::size_t(cut_.slots)),
        heard_(said_),
        theirs_(ranks.size()) {}

  Status run() { return exchange_.settle(run_steps(), requests_); }

 private:
  Status run_steps();
  bool exists(std::int64_t number) const {
    return number >= 0 && std::uint64_t(number) < cut_.segments;
  }
  Range part(std::int64_t number) const {
    const std::uint64_t first = std::uint64_t(number) * cut_.elements;
    return {first, std::min(cut_.elements, slice_.count - first)};
  }
  std::size_t slot(std::int64_t number) const { return std::size_t(number % cut_.slots); }
  // Box 0 is this rank's message, box 1 + i that of peer i.
  std::size_t place(std::int64_t number, std::size_t box) const {
    return slot(number) * (ranks_.size() + 1) + box;
  }
  MPI_Request& sent(std::int64_t number, std::size_t peer) {
    return requests_[slot(number) * ranks_.size() + peer];
  }
  MPI_Request& received(std::int64_t number, std::size_t peer) {
    return requests_[requests_.size() / 2 + slot(number) * ranks_.size() + peer];
  }
  codec::Message message(const Range& part, int sender) const {
    return message_about(call_, format_, slice_, part, sender);
  }
  Status post(std::int64_t number);
  Status say(std::int64_t number);
  Status send(std::int64_t number);
  Status hear(std::int64_t number);
  Status recycle(std::int64_t number);

  Call& call_;
  const kernels::Format& format_;
  const Range slice_;
  const std::vector<int>& ranks_;
  Talk& talk_;
  Exchange& exchange_;
  Statistics& statistics_;
  Lanes lanes_;
  const bool staged_;
  const Cut cut_;
  Boxes boxes_;
  std::vector<MPI_Request> requests_;      // to the peers, then from them
  std::vector<Lanes::Mark> said_, heard_;  // by slot
  std::vector<const std::byte*> theirs_;
};

Status Pass::post(std::int64_t number) {
  if (!exists(number)) return Status::ok;
  for (std::size_t peer = 0; peer < ranks_.size(); ++peer)
    SLIMPI_TRY(exchange_.receive(ranks_[peer], Tag::peers, boxes_.message(place(number, 1 + peer)),
                                 cut_.box, received(number, peer)));
  return Status::ok;
}

Status Pass::say(std::int64_t number) {
  if (!exists(number)) return Status::ok;
  const Range part = this->part(number);
  {
    const Timed timed(statistics_, Stage::exchange, "send", cut_.box);
    for (std::size_t peer = 0; peer < ranks_.size(); ++peer)
      SLIMPI_TRY(exchange_.wait(sent(number, peer)));
  }
  const Timed timed(statistics_, Stage::encode, "encode", 4 * part.count);
  const std::size_t box = place(number, 0);
  talk_.say(part, boxes_.piece(box));
  return boxes_.bring_out(box, message(part, call_.communicator.rank()), &said_[slot(number)]);
}

Status Pass::send(std::int64_t number) {
  if (!exists(number)) return Status::ok;
  SLIMPI_TRY(lanes_.wait(said_[slot(number)]));
  const Range part = this->part(number);
  for (std::size_t peer = 0; peer < ranks_.size(); ++peer)
    SLIMPI_TRY(exchange_.send(ranks_[peer], Tag::peers, boxes_.message(place(number, 0)),
                              message_bytes(format_, part.count), sent(number, peer)));
  return Status::ok;
}

Status Pass::hear(std::int64_t number) {
  if (!exists(number)) return Status::ok;
  const Range part = this->part(number);
  const std::size_t bytes = kernels::encoded_bytes(format_, part.count);
  for (std::size_t peer = 0; peer < ranks_.size(); ++peer) {
    std::size_t bytes_received = 0;
    {
      const Timed timed(statistics_, Stage::exchange, "receive", bytes);
      SLIMPI_TRY(exchange_.wait(received(number, peer), &bytes_received));
    }
    const std::size_t box = place(number, 1 + peer);
    theirs_[peer] = boxes_.piece(box);
    SLIMPI_TRY(boxes_.bring_in(box, bytes_received, message(part, ranks_[peer])));
  }
  const Timed timed(statistics_, Stage::decode, "decode", 4 * part.count);
  talk_.hear(part, boxes_.piece(place(number, 0)), theirs_);
  return lanes_.mark(&heard_[slot(number)], 4 * part.count);
}

Status Pass::recycle(std::int64_t number) {
  if (!exists(number)) return Status::ok;
  SLIMPI_TRY(lanes_.wait(heard_[slot(number)]));
  for (std::size_t peer = 0; peer < ranks_.size(); ++peer)
    SLIMPI_TRY(boxes_.check(place(number, 1 + peer), message(part(number), ranks_[peer])));
  return post(number + cut_.slots);
}

// A slot is said, sent, heard and recycled one step after the other, so it is free again before the
// segment that comes `slots` later is said.
Status Pass::run_steps() {
  SLIMPI_TRY(lanes_.open());
  const int lag = staged_ ? 1 : 0;
  for (std::int64_t number = 0; number < cut_.slots; ++number) SLIMPI_TRY(post(number));
  for (std::int64_t step = 0; step < std::int64_t(cut_.segments) + 2 + 2 * lag; ++step) {
    SLIMPI_TRY(say(step));
    SLIMPI_TRY(send(step - lag));
    SLIMPI_TRY(hear(step - 1 - lag));
    SLIMPI_TRY(recycle(step - 1 - 2 * lag));
  }
  const Timed timed(statistics_, Stage::exchange, "wait", 0);
  return exchange_.wait_all(requests_);
}

}  // namespace

Status exchange_with_peers(Call& call, const kernels::Format& format, Range slice,
                           const std::vector<int>& ranks, Talk& talk) {
  return Pass(call, format, slice, ranks, talk).run();
}

std::size_t peer_exchange_bytes(const kernels::Format& format, std::uint64_t count, int peers,
                                bool staged) {
  return cut(format, count, peers, staged).total;
}

}  // namespace slimpi::algorithm
