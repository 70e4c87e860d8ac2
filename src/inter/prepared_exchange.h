// SPDX-License-Identifier: BSD-3-Clause
// The choice of a schedule, its need of memory and its layout, computed at the first exchange of a
// size and kept by the communicator. All follow from the size alone, so no option makes them stale.
#pragma once
#include <cstdint>
#include <map>
#include <memory>

#include "comm/attachment.h"
#include "comm/node_layout.h"
#include "inter/schedule.h"

namespace slimpi::comm {
class Communicator;
}  // namespace slimpi::comm

namespace slimpi::inter {

struct PreparedExchange {
  explicit PreparedExchange(const ExchangeSize& size);

  const Schedule* schedule;
  Need need;
  std::shared_ptr<const ExchangeLayout> layout;
};

class PreparedExchanges : public comm::Attachment {
 public:
  // Valid until the next call. Allocates at the first call with a size only. Not collective.
  const PreparedExchange& find(const ExchangeSize& size);

  std::uint64_t made() const { return made_; }  // so far, dropped ones included
  std::size_t bytes() const { return bytes_; }  // of memory, about

  // Beyond this many bytes all are dropped and made again as they are needed.
  static constexpr std::size_t kMostBytes = 4 << 20;

 private:
  using Entries = std::map<ExchangeSize, PreparedExchange>;
  Entries by_size_;
  const Entries::value_type* last_ = nullptr;  // what find() returned last, or null
  std::size_t bytes_ = 0;
  std::uint64_t made_ = 0;
};

// What the communicator keeps for a shard of `count` floats. Valid until the next call on it.
const PreparedExchange& prepared_exchange(comm::Communicator& communicator,
                                          const kernels::Format& format,
                                          const comm::InterNodeGroup& group, std::uint64_t count,
                                          bool staged);

}  // namespace slimpi::inter
