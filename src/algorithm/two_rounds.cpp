// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/two_rounds.h"

#include <algorithm>
#include <vector>

#include "algorithm/boxes.h"
#include "algorithm/communicator.h"
#include "algorithm/lanes.h"
#include "algorithm/overflow.h"
#include "algorithm/owner_sum.h"
#include "algorithm/piece.h"
#include "algorithm/turns.h"

namespace slimpi::algorithm {

namespace {

// Messages of one segment: one a round for scatter-reduce out and in and all-gather in, and the one
// message that goes to all.
enum class Box { scatter_out, scatter_in, gather_in, gather_out };

class Rounds {
 public:
  Rounds(Call& call, const Rails& rails, Range slice, const float* in, float* out, float* residual);
  Status run() { return exchange_.settle(run_turns(), requests_); }

 private:
  Status run_turns();

  // What happens in a turn.
  Status prepare(const Turn& turn);
  Status begin(const Turn& turn);
  Status finish(const Turn& turn);
  Status decode(const Turn& turn);
  Status finish_next();
  Status prepare_until(std::int64_t index);
  Status decode_arrived();

  Status post(std::int64_t number);
  Status recycle(std::int64_t number);
  Status encode(const Turn& turn);
  Status sum(std::int64_t number);
  void add_up(std::int64_t number, const Range& part);
  Status send(const Turn& turn, std::size_t message, const Range& part, Tag tag, Box box);
  Status check(Box box, std::int64_t number);
  Lanes::Mark& encoded(const Turn& turn) {
    return encoded_[slot_of(turn.number) * std::size_t(rounds_) + std::size_t(turn.round)];
  }
  void count_overflow(std::int64_t number, std::uint64_t count);

  // Where things are.
  Range segment(int member, std::int64_t number) const;
  Range sent_in(const Turn& turn) const {
    return segment(turn.gather ? me_ : pair(turn).to, turn.number);
  }
  Range received_in(const Turn& turn) const {
    return segment(turn.gather ? pair(turn).from : me_, turn.number);
  }
  std::size_t weight(const Turn& turn) const;
  const Pair& pair(const Turn& turn) const { return turns_.pair(turn.round); }
  int rank_of(int member) const { return rails_.peers[std::size_t(member)]; }
  std::size_t slot_of(std::int64_t number) const { return std::size_t(number % segments_.slots); }
  std::size_t place(Box box, std::int64_t number, int round) const;
  std::byte* code(Box box, std::int64_t number, int round) const {
    return boxes_.piece(place(box, number, round));
  }
  MPI_Request& request(Box box, const Turn& turn);
  kernels::Draw draw(const Range& part) const { return draw_for(call_, slice_, part); }
  codec::Message message(const Range& part, int sender) const {
    return message_about(call_, call_.plan.format, slice_, part, sender);
  }
  float* residual(const Range& part) const {
    return residual_ == nullptr ? nullptr : residual_ + part.first;
  }
  float* total(const Range& part) const {
    return call_.totals == nullptr ? nullptr
                                   : call_.totals + (part.first - chunks_[std::size_t(me_)].first);
  }

  Call& call_;
  const Rails& rails_;
  const Range slice_;
  const float* in_;
  float* out_;
  float* residual_;
  Exchange& exchange_;
  Statistics& statistics_;
  const kernels::Kernels& kernels_;
  Overflow overflow_;
  const int members_, me_, rounds_;
  Lanes lanes_;
  const bool staged_;
  const Segments segments_;
  const Turns turns_;
  const std::int64_t ahead_;  // turns whose messages are made before their time
  Boxes boxes_;
  std::vector<Range> chunks_;  // by member
  std::vector<MPI_Request> requests_;
  std::vector<Lanes::Mark> encoded_, summed_, decoded_;           // by slot and round, by slot
  std::int64_t prepared_ = 0, finished_ = 0, decoded_turns_ = 0;  // turns before these are
  std::size_t in_flight_ = 0;
};

Rounds::Rounds(Call& call, const Rails& rails, Range slice, const float* in, float* out,
               float* residual)
    : call_(call),
      rails_(rails),
      slice_(slice),
      in_(in),
      out_(out),
      residual_(residual),
      exchange_(call.communicator.exchange()),
      statistics_(call.communicator.statistics()),
      kernels_(*call.device.kernels()),
      overflow_(call.plan.format.coding, statistics_),
      members_(int(rails.peers.size())),
      me_(rails.index),
      rounds_(members_ - 1),
      lanes_(call),
      staged_(call.device.staged),
      segments_(segments_for(call.plan.format, slice.count, members_, call.communicator.grain(),
                             staged_)),
      turns_(members_, me_, segments_.longest, segments_.slots, staged_ ? 2 : 1),
      ahead_(staged_ ? 2 * rounds_ : 1),
      boxes_(call, lanes_, call.plan.format.coding, segments_.message,
             segments_.total / segments_.message),
      requests_(std::size_t(segments_.slots) * 4 * std::size_t(rounds_), MPI_REQUEST_NULL),
      encoded_(std::size_t(segments_.slots) * std::size_t(rounds_)),
      summed_(std::size_t(segments_.slots)),
      decoded_(summed_) {
  for (int member = 0; member < members_; ++member)
    chunks_.push_back(part_of(slice.count, members_, member, segments_.align));
}

Range Rounds::segment(int member, std::int64_t number) const {
  const Range& chunk = chunks_[std::size_t(member)];
  if (number < 0 || std::uint64_t(number) * segments_.elements >= chunk.count) return {};
  const std::uint64_t first = std::uint64_t(number) * segments_.elements;
  return {chunk.first + first, std::min(segments_.elements, chunk.count - first)};
}

std::size_t Rounds::place(Box box, std::int64_t number, int round) const {
  const std::size_t rounds = std::size_t(rounds_), slot = slot_of(number);
  const std::size_t within =
      box == Box::gather_out ? 3 * rounds : std::size_t(box) * rounds + std::size_t(round);
  return slot * (3 * rounds + 1) + within;
}

MPI_Request& Rounds::request(Box box, const Turn& turn) {
  const std::size_t slot = slot_of(turn.number);
  return requests_[(slot * 4 + std::size_t(box)) * std::size_t(rounds_) + std::size_t(turn.round)];
}

// Receives for a segment are posted long before it is sent, so that it never waits in MPI.
Status Rounds::post(std::int64_t number) {
  for (int round = 0; round < rounds_; ++round) {
    const int from = rank_of(turns_.pair(round).from);
    const Turn scatter{false, number, round}, gather{true, number, round};
    if (received_in(scatter).count != 0)
      SLIMPI_TRY(exchange_.receive(from, Tag::scatter_reduce,
                                   boxes_.message(place(Box::scatter_in, number, round)),
                                   segments_.message, request(Box::scatter_in, scatter)));
    if (received_in(gather).count != 0)
      SLIMPI_TRY(exchange_.receive(from, Tag::all_gather,
                                   boxes_.message(place(Box::gather_in, number, round)),
                                   segments_.message, request(Box::gather_in, gather)));
  }
  return Status::ok;
}

// A slot whose segment is done takes the segment that comes `slots` later.
Status Rounds::recycle(std::int64_t number) {
  const bool again = number + segments_.slots < turns_.segments();
  if (number < 0 || !(again || boxes_.checks_late())) return Status::ok;
  SLIMPI_TRY(lanes_.wait(decoded_[slot_of(number)]));
  SLIMPI_TRY(check(Box::gather_in, number));
  return again ? post(number + segments_.slots) : Status::ok;
}

// Checks a segment's messages that could not be when they came.
Status Rounds::check(Box box, std::int64_t number) {
  for (int round = 0; round < rounds_ && boxes_.checks_late(); ++round) {
    const Turn turn{box == Box::gather_in, number, round};
    if (const Range part = received_in(turn); part.count != 0)
      SLIMPI_TRY(boxes_.check(place(box, number, round), message(part, rank_of(pair(turn).from))));
  }
  return Status::ok;
}

Status Rounds::prepare(const Turn& turn) {
  if (turn.number < 0) return Status::ok;
  if (!turn.gather) return encode(turn);
  return turn.round == 0 ? sum(turn.number) : Status::ok;
}

Status Rounds::encode(const Turn& turn) {
  const Range part = sent_in(turn);
  if (part.count == 0) return Status::ok;
  const std::size_t box = place(Box::scatter_out, turn.number, turn.round);
  const Timed timed(statistics_, Stage::encode, "encode", 4 * part.count);
  kernels_.encode(call_.plan.format, draw(part), in_ + part.first, residual(part), part.count,
                  boxes_.piece(box), call_.stream);
  return boxes_.bring_out(box, message(part, call_.communicator.rank()), &encoded(turn));
}

Status Rounds::sum(std::int64_t number) {
  const Range part = segment(me_, number);
  if (part.count == 0) return Status::ok;
  const Timed timed(statistics_, Stage::decode, "sum", 4 * part.count);
  add_up(number, part);
  return boxes_.bring_out(place(Box::gather_out, number, 0),
                          message(part, call_.communicator.rank()), &summed_[slot_of(number)]);
}

void Rounds::add_up(std::int64_t number, const Range& part) {
  if (!staged_) overflow_.keep(in_ + part.first, part.count, kernels_);
  const Owned piece{members_,          me_,        in_ + part.first,
                    residual(part),    part.count, code(Box::gather_out, number, 0),
                    out_ + part.first, total(part)};
  sum_at_owner(call_, draw(part), piece, [&](int member) {
    return code(Box::scatter_in, number, turns_.round_from(member));
  });
}

void Rounds::count_overflow(std::int64_t number, std::uint64_t count) {
  if (!overflow_.counts()) return;
  std::vector<const std::byte*> addends;
  for (int round = 0; round < rounds_; ++round)
    addends.push_back(boxes_.host_piece(place(Box::scatter_in, number, round)));
  overflow_.summed(boxes_.host_piece(place(Box::gather_out, number, 0)), addends, count);
}

Status Rounds::begin(const Turn& turn) {
  const Range part = sent_in(turn);
  if (part.count == 0) return Status::ok;
  if (turn.gather) {
    if (turn.round == 0) {
      SLIMPI_TRY(lanes_.wait(summed_[slot_of(turn.number)]));
      SLIMPI_TRY(check(Box::scatter_in, turn.number));
      count_overflow(turn.number, part.count);
    }
    return send(turn, place(Box::gather_out, turn.number, 0), part, Tag::all_gather,
                Box::gather_out);
  }
  const std::size_t box = place(Box::scatter_out, turn.number, turn.round);
  SLIMPI_TRY(lanes_.wait(encoded(turn)));
  overflow_.encoded(boxes_.host_piece(box), staged_ ? nullptr : in_ + part.first, part.count);
  return send(turn, box, part, Tag::scatter_reduce, Box::scatter_out);
}

Status Rounds::send(const Turn& turn, std::size_t message, const Range& part, Tag tag, Box box) {
  return exchange_.send(rank_of(pair(turn).to), tag, boxes_.message(message),
                        message_bytes(call_.plan.format, part.count), request(box, turn));
}

Status Rounds::finish(const Turn& turn) {
  if (turn.number < 0) return Status::ok;
  if (MPI_Request& sent = request(turn.gather ? Box::gather_out : Box::scatter_out, turn);
      sent != MPI_REQUEST_NULL) {
    const Timed timed(statistics_, Stage::exchange, "send", 4 * sent_in(turn).count);
    SLIMPI_TRY(exchange_.wait(sent));
  }
  const Range part = received_in(turn);
  if (part.count == 0) return Status::ok;
  const Box box = turn.gather ? Box::gather_in : Box::scatter_in;
  std::size_t received = 0;
  {
    const Timed timed(statistics_, Stage::exchange, "receive",
                      kernels::encoded_bytes(call_.plan.format, part.count));
    SLIMPI_TRY(exchange_.wait(request(box, turn), &received));
  }
  // What was in the place before has been decoded: only then was the message asked for.
  return boxes_.bring_in(place(box, turn.number, turn.round), received,
                         message(part, rank_of(pair(turn).from)));
}

Status Rounds::decode(const Turn& turn) {
  if (!turn.gather || turn.number < 0) return Status::ok;
  if (const Range part = received_in(turn); part.count != 0) {
    const Timed timed(statistics_, Stage::decode, "decode", 4 * part.count);
    kernels_.decode(call_.plan.format, code(Box::gather_in, turn.number, turn.round), part.count,
                    out_ + part.first, call_.stream);
  }
  if (turn.round != rounds_ - 1) return Status::ok;
  SLIMPI_TRY(lanes_.mark(&decoded_[slot_of(turn.number)], 4 * received_in(turn).count));
  return recycle(staged_ ? turn.number - 1 : turn.number);
}

Status Rounds::finish_next() {
  const Turn next = turns_.at(finished_);
  SLIMPI_TRY(finish(next));
  in_flight_ -= weight(next);
  ++finished_;
  return Status::ok;
}

Status Rounds::prepare_until(std::int64_t end) {
  for (; prepared_ < std::min(end, turns_.count()) && turns_.ready(prepared_, finished_);
       ++prepared_)
    SLIMPI_TRY(prepare(turns_.at(prepared_)));
  return Status::ok;
}

Status Rounds::decode_arrived() {
  for (; decoded_turns_ < finished_; ++decoded_turns_)
    SLIMPI_TRY(decode(turns_.at(decoded_turns_)));
  return Status::ok;
}

// Bytes of a turn's messages on this rank's link, whichever way carries more.
std::size_t Rounds::weight(const Turn& turn) const {
  const std::uint64_t most = std::max(sent_in(turn).count, received_in(turn).count);
  return most == 0 ? 0 : message_bytes(call_.plan.format, most);
}

Status Rounds::run_turns() {
  SLIMPI_TRY(lanes_.open());
  for (std::int64_t number = 0; number < segments_.slots; ++number) SLIMPI_TRY(post(number));
  for (std::int64_t index = 0; index < turns_.count(); ++index) {
    const Turn now = turns_.at(index);
    while (finished_ < index &&
           (in_flight_ + weight(now) > segments_.in_flight || !turns_.ready(index, finished_)))
      SLIMPI_TRY(finish_next());
    SLIMPI_TRY(prepare_until(index + 1));
    SLIMPI_TRY(begin(now));
    in_flight_ += weight(now);
    SLIMPI_TRY(prepare_until(index + 1 + ahead_));
    if (now.gather) SLIMPI_TRY(decode_arrived());
  }
  while (finished_ < turns_.count()) SLIMPI_TRY(finish_next());
  SLIMPI_TRY(decode_arrived());
  // Whoever uses the staging memory next may write there at once.
  SLIMPI_TRY(lanes_.finish());
  return recycle(turns_.segments() - 1);
}

}  // namespace

Status run_rounds(Call& call, const Rails& rails, Range slice, const float* in, float* out,
                  float* residual) {
  Rounds rounds(call, rails, slice, in, out, residual);
  return rounds.run();
}

}  // namespace slimpi::algorithm
