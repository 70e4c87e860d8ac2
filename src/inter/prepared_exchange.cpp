// SPDX-License-Identifier: BSD-3-Clause
#include "inter/prepared_exchange.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "comm/communicator.h"

namespace slimpi::inter {

PreparedExchange::PreparedExchange(const ExchangeSize& size)
    : schedule(&schedule_for(size)), need(schedule->need(size)), layout(schedule->layout(size)) {}

const PreparedExchange& PreparedExchanges::find(const ExchangeSize& size) {
  // Most programs repeat a size. A map's entries do not move, so the pointer stays valid.
  if (last_ != nullptr && last_->first == size) return last_->second;
  auto found = by_size_.find(size);
  if (found == by_size_.end()) {
    // Before others are dropped: if this throws, they stay.
    PreparedExchange made(size);
    const std::size_t more = sizeof(Entries::value_type) + made.layout->bytes();
    if (bytes_ + more > kMostBytes) {
      // Everything is dropped, which costs one computation for each size that comes again. No order
      // of use has to be kept for that.
      last_ = nullptr;
      by_size_.clear();
      bytes_ = 0;
    }
    found = by_size_.emplace(size, std::move(made)).first;
    bytes_ += more;
    ++made_;
  }
  last_ = &*found;
  return found->second;
}

const PreparedExchange& prepared_exchange(comm::Communicator& communicator,
                                          const kernels::Format& format,
                                          const comm::InterNodeGroup& group, std::uint64_t count,
                                          bool staged) {
  PreparedExchanges& all = communicator.attachment<PreparedExchanges>();
  const std::uint64_t made = all.made();
  const PreparedExchange& prepared = all.find(
      {format, count, int(group.peers.size()), communicator.segment_class(), staged, group.index});
  if (all.made() != made && communicator.rank() == 0 && log_enabled(LogLevel::debug))
    log_once(LogLevel::debug, std::string("schedule between nodes: ") + prepared.schedule->name);
  return prepared;
}

}  // namespace slimpi::inter
