// SPDX-License-Identifier: BSD-3-Clause
#include "comm/communicator.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/exceptions.h"
#include "base/log.h"
#include "comm/call_scratch.h"
#include "comm/waiter.h"
#include "device/foreign.h"
#include "mpi/internal_comm.h"
#include "topology/cores.h"
#include "topology/topology.h"

namespace slimpi::comm {

namespace {

// One item that must be equal on all ranks: the value that is compared, and its text as written.
struct Entry {
  std::string name, value, text;
};

std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 14695981039346656037ull;  // FNV-1a
  for (const char c : text) value = (value ^ std::uint8_t(c)) * 1099511628211ull;
  return value;
}

std::vector<Entry> entries_to_agree(const Config& config, const std::string& rules) {
  constexpr const char* kVersion = SLIMPI_PACKAGE_VERSION;
  std::vector<Entry> entries = {{"the version of slimpi", kVersion, kVersion}};
  const auto& rows = option_rows();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].scope == Scope::agree || rows[i].scope == Scope::job) {
      // The case of letters counts in paths and in rules (below), and in nothing else.
      const std::string& text = config.given[i].text;
      const std::string published = text.find(":/") != text.npos ? text : lower_case(text);
      entries.push_back({rows[i].variable, config.value_text(Option(i)),
                         published.empty() ? "(unset)" : published});
    }
  entries.push_back({"SLIMPI_RULES", rules, rules.empty() ? "(no rule)" : rules});
  return entries;
}

// The distance of the buffer's GPU from a NIC. hwloc is slow to start, so only programs
// with device buffers use it.
topology::Distance distance_of(const void* buffer) {
  char bus_id[32] = "";
  if (buffer == nullptr) return topology::Distance::unknown;
  const device::Location location = device::locate(buffer);
  const device::Device& device = *location.device;
  if (device.bus_id == nullptr || device.bus_id(location, bus_id, sizeof bus_id) != Status::ok)
    return topology::Distance::unknown;
  topology::Topology machine;
  if (topology::load(machine) != Status::ok) return topology::Distance::unknown;
  return topology::distance_to_nic(machine, bus_id);
}

}  // namespace

// Not collective, and sends nothing: ranks make it at their own first call, at different times.
Communicator::Communicator(const mpi::Api& api, Statistics& statistics, const Config& config,
                           MPI_Comm user)
    : api_(api), statistics_(statistics), config_(config), user_(user), exchange_(api, statistics) {
  CallScratchPool::instance().add_user();
  int inter = 0;
  api.Comm_test_inter(user, &inter);
  inter_ = inter != 0;
  api.Comm_rank(user, &rank_);
  api.Comm_size(user, &size_);
}

void Communicator::read_name() {
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  if (api_.Comm_get_name(user_, name, &length) == MPI_SUCCESS) name_ = name;
}

Communicator::~Communicator() {
  // First: they may free what needs the internal communicator.
  attachments_.clear();
  CallScratchPool::instance().remove_user();
  for (const auto& [role, stream] : streams_) std::get<0>(role)->close_stream(stream);
  // Messages of a failed call may still arrive. Its communicator is not freed, so that MPI never
  // uses its context id again.
  if (exchange_comm_ != MPI_COMM_NULL && !failed_) release();
}

void Communicator::release() {
  exchange_.drain_roll_call();
  mpi::free_internal(api_, &exchange_comm_);
  exchange_.set_comm(MPI_COMM_NULL);
}

// A rank may come late to its first call, or never. The wait names those from which nothing has
// come
// (`arrivals`, as in mpi::WaitFor). It looks for no failure report: the communicator on which ranks
// report failures is what they are making.
Status Communicator::wait_for_ranks(MPI_Request& request, std::span<const int> arrivals) {
  Waiter waiter(Waiter::Poll::mpi, nullptr, WaitStage::new_communicator);
  waiter.stall().set_arrivals(arrivals);
  for (int done = 0;;) {
    const int code = api_.Test(&request, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return fail(Status::mpi, mpi::error_text(api_, code));
    if (done != 0) return Status::ok;
    SLIMPI_TRY(waiter.pause());
  }
}

Status Communicator::make_exchange_comm() {
  const auto wait = [this](MPI_Request& request, std::span<const int> arrivals) {
    return wait_for_ranks(request, arrivals);
  };
  // Before the first message: if this throws half way, recover() must not decline a second time.
  asked_ = unusable_ = true;
  SLIMPI_TRY(mpi::make_internal(api_, user_, wait, &exchange_comm_, &number_));
  unusable_ = false;
  exchange_.set_comm(exchange_comm_, number_);
  return Status::ok;
}

void Communicator::decline() {
  if (asked_) return;
  asked_ = unusable_ = true;
  mpi::decline_internal(api_, user_, [this](MPI_Request& request, std::span<const int> arrivals) {
    return wait_for_ranks(request, arrivals);
  });
}

Status Communicator::agree(const std::string& rules) {
  if (exchange_comm_ == MPI_COMM_NULL) SLIMPI_TRY(make_exchange_comm());

  // Reduces the maximum of each hash and of its complement. All ranks have the same value exactly
  // if the two maxima are complements of each other.
  const std::vector<Entry> entries = entries_to_agree(config_, rules);
  std::vector<std::uint64_t> sums;
  for (const Entry& entry : entries) {
    sums.push_back(hash(entry.value));
    sums.push_back(~hash(entry.value));
  }
  sums.push_back(device::foreign_possible() ? 1 : 0);
  SLIMPI_TRY(exchange_.all_max(sums));
  foreign_possible_ = sums.back() != 0;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (sums[2 * i] != ~sums[2 * i + 1])
      return describe_disagreement(entries[i].name, entries[i].value, entries[i].text,
                                   "start all ranks with the same value");
  agreed_ = true;
  return Status::ok;
}

Status Communicator::describe_disagreement(const std::string& name, const std::string& value,
                                           const std::string& text, const std::string& remedy) {
  struct Value {
    std::uint64_t hash;
    char text[120];
  };
  Value mine{hash(value), ""};
  std::strncpy(mine.text, text.c_str(), sizeof mine.text - 1);
  // Blocking is safe here: all ranks have learnt of the disagreement by the same reduction.
  std::vector<Value> values(static_cast<std::size_t>(size_));
  const int code = api_.Allgather(&mine, int(sizeof mine), MPI_CHAR, values.data(),
                                  int(sizeof mine), MPI_CHAR, exchange_comm_);
  if (code != MPI_SUCCESS) return fail(Status::mpi, mpi::error_text(api_, code));
  std::size_t other = 0;
  while (other + 1 < values.size() && values[other].hash == values[0].hash) ++other;
  const Status status = fail(
      Status::disagreement,
      name + " differs between the ranks of a communicator: " + values[0].text + " on rank 0, " +
          values[other].text + " on rank " + std::to_string(other) + "; " + remedy);
  return exchange_.publish_disagreement(status);
}

void Communicator::abandon() {
  exchange_comm_ = MPI_COMM_NULL;
  for (const auto& [key, attached] : attachments_) attached->abandon();
}

// The internal communicator stays: agree() compares the new options on it. Streams and attached
// memory stay, too; an attachment drops what it derived from the options itself.
void Communicator::options_changed() {
  agreed_ = laid_out_ = false;
  group_.clear();
  for (auto& autotuner : autotuners_) autotuner.reset();
  node_autotuners_.clear();
  made_for_node_.reset();
  states.drop_all();
  for (const auto& [key, attached] : attachments_) attached->options_changed();
}

// Every rank fills in one word and gets those of all, so all choose the same leaders.
Status Communicator::choose_leaders(const void* buffer) {
  const auto distance = distance_of(buffer);
  std::vector<std::uint64_t> all(std::size_t(size_), 0);
  all[std::size_t(rank_)] = std::uint64_t(distance);
  SLIMPI_TRY(exchange_.all_max(all));
  for (std::size_t node = 0; node < layout_.ranks_of.size(); ++node) {
    const std::vector<int>& ranks = layout_.ranks_of[node];
    const auto nearest = std::min_element(ranks.begin(), ranks.end(), [&](int a, int b) {
      return all[std::size_t(a)] < all[std::size_t(b)];
    });
    layout_.leaders[node] = int(nearest - ranks.begin());
  }
  const bool leads = layout_.leaders[std::size_t(layout_.node())] == layout_.local_rank();
  if (leads && distance != topology::Distance::unknown)
    log_once(LogLevel::info, std::string("leads its node: its GPU is nearest to a NIC (") +
                                 topology::to_string(distance) + ")");
  return Status::ok;
}

// MPI's own collectives block: a rank in one never learns that another rank has failed. So what can
// fail on one rank comes first, and the ranks agree before the first of them; or it comes after the
// last one.
Status Communicator::find_layout() {
  std::vector<int> keys;
  std::vector<topology::Cores> room;
  topology::Cores mine;
  std::uint64_t ready = caught([&] {
                          keys.resize(std::size_t(size_));
                          room.resize(std::size_t(size_));
                          mine = topology::own_cores();
                          return Status::ok;
                        }) == Status::ok;
  SLIMPI_TRY(exchange_.all_min({&ready, 1}));
  if (ready == 0) return fail(Status::no_memory, "no host memory on some rank");
  SLIMPI_TRY(find_node_keys(api_, exchange_comm_, config_.ranks_per_node, keys));
  bool core_each = false;
  SLIMPI_TRY(find_cores(api_, exchange_comm_, mine, room, &core_each));
  note_cores(core_each);
  layout_ = make_node_layout(rank_, keys);
  return Status::ok;
}

Status Communicator::find_nodes(const void* buffer) {
  if (laid_out_) return Status::ok;
  for (const auto& [key, attached] : attachments_) attached->layout_changed();
  const Status found = find_layout();
  // What another rank has reported is no common decision. With equal counts it may work next time.
  unusable_ = found != Status::ok && found != Status::disagreement && !exchange_.failure_reported();
  if (unusable_) release();
  SLIMPI_TRY(found);
  if (config_.hierarchy == Hierarchy::leader) SLIMPI_TRY(choose_leaders(buffer));
  exchange_.set_layout(&layout_);
  laid_out_ = true;
  return Status::ok;
}

const InterNodeGroup& Communicator::inter_node_group(Hierarchy hierarchy) {
  // One for each hierarchy at most. A reference is valid until the options change.
  const auto found = group_.find(hierarchy);
  if (found != group_.end()) return found->second;
  return group_.emplace(hierarchy, make_inter_node_group(layout_, hierarchy)).first->second;
}

Status Communicator::stream_for(const device::Location& location, device::Stream** stream,
                                StreamRole role) {
  *stream = nullptr;
  const device::Device& device = *location.device;
  if (&device == &device::host()) return Status::ok;
  // A GPU that was reset has a new generation, and gets new streams.
  device::Stream*& known = streams_[{&device, location.ordinal, location.generation, role}];
  if (known == nullptr) SLIMPI_TRY(device.open_stream(location, &known));
  *stream = known;
  return Status::ok;
}

// Of something that this rank made, or not: whether all ranks have it.
Status Communicator::agree_on_made(Status here, bool* all) {
  if (here != Status::ok)
    log_once(LogLevel::warn, "some sums go to MPI on all ranks: " + failure_text());
  std::uint64_t everyone = here == Status::ok ? 1 : 0;
  SLIMPI_TRY(exchange_.all_min({&everyone, 1}));
  *all = everyone == 1;
  return Status::ok;
}

Status Communicator::autotuner(int bits, int candidates, Autotuner** autotuner) {
  auto& known = autotuners_[std::size_t(bits)];
  if (!known) {
    std::unique_ptr<Autotuner> made;
    bool all = false;
    SLIMPI_TRY(agree_on_made(caught([&] {
                               made = std::make_unique<Autotuner>(candidates);
                               return Status::ok;
                             }),
                             &all));
    if (!all) made.reset();
    known = std::move(made);
  }
  *autotuner = known->get();
  return Status::ok;
}

// All sizes at once: one agreement instead of one at the first call of each size.
void Communicator::make_node_autotuners() {
  std::vector<Autotuner> made;
  made.reserve(kNodeSizeClasses);
  // The second candidate is slimpi's own sum.
  while (made.size() < kNodeSizeClasses) made.emplace_back(2, Autotuner::Start::careful);
  node_autotuners_ = std::move(made);
}

}  // namespace slimpi::comm
