// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/communicator.h"

#include <sched.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "algorithm/node_transports.h"
#include "base/log.h"

namespace slimpi::algorithm {

namespace {

// One thing that all ranks must have alike.
struct Entry {
  std::string name, value;
};

std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 14695981039346656037ull;  // FNV-1a
  for (const char c : text) value = (value ^ std::uint8_t(c)) * 1099511628211ull;
  return value;
}

std::vector<Entry> entries_to_agree(const Config& config, const std::string& rules) {
  std::vector<Entry> entries = {{"the version of slimpi", SLIMPI_PACKAGE_VERSION}};
  const auto& rows = option_rows();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].scope == Scope::agree) {
      // Paths keep their case; so do rules, below.
      const std::string& text = config.given[i].text;
      std::string value = text.starts_with("hook:") ? text : lower_case(text);
      entries.push_back({rows[i].variable, value.empty() ? "(unset)" : value});
    }
  entries.push_back({"SLIMPI_RULES", rules.empty() ? "(no rule)" : rules});
  return entries;
}

}  // namespace

Communicator::Communicator(const mpi::Api& api, Statistics& statistics, const Config& config,
                           MPI_Comm user)
    : api_(api), statistics_(statistics), config_(config), user_(user), exchange_(api, statistics) {
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
  for (const auto& [gpu, stream] : streams_) gpu.first->close_stream(stream);
  // Messages of a call that broke may still arrive: its communicator is not given back, so that
  // MPI never uses its context again.
  if (exchange_comm_ != MPI_COMM_NULL && !broken) api_.Comm_free(&exchange_comm_);
}

// The program's error handler has no say in it: MPI takes over when this fails.
Status Communicator::duplicate() {
  MPI_Errhandler theirs = MPI_ERRHANDLER_NULL;
  api_.Comm_get_errhandler(user_, &theirs);
  api_.Comm_set_errhandler(user_, MPI_ERRORS_RETURN);
  const int code = api_.Comm_dup(user_, &exchange_comm_);
  api_.Comm_set_errhandler(user_, theirs);
  api_.Errhandler_free(&theirs);
  if (code != MPI_SUCCESS) {
    exchange_comm_ = MPI_COMM_NULL;
    unusable_ = true;
    return fail(Status::mpi, "duplicating a communicator: " + mpi::error_text(api_, code));
  }
  api_.Comm_set_errhandler(exchange_comm_, MPI_ERRORS_RETURN);
  exchange_.set_comm(exchange_comm_);
  return Status::ok;
}

Status Communicator::agree(const std::string& rules) {
  if (exchange_comm_ == MPI_COMM_NULL) SLIMPI_TRY(duplicate());

  // The maximum of every hash and of its complement: alike on all ranks when they are complements.
  const std::vector<Entry> entries = entries_to_agree(config_, rules);
  std::vector<std::uint64_t> sums;
  for (const Entry& entry : entries) {
    sums.push_back(hash(entry.value));
    sums.push_back(~hash(entry.value));
  }
  SLIMPI_TRY(exchange_.all_max(sums));
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (sums[2 * i] != ~sums[2 * i + 1]) return name_disagreement(i, rules);
  agreed_ = true;
  return Status::ok;
}

Status Communicator::name_disagreement(std::size_t which, const std::string& rules) {
  struct Value {
    std::uint64_t hash;
    char text[120];
  };
  const Entry entry = entries_to_agree(config_, rules)[which];
  Value mine{hash(entry.value), ""};
  std::strncpy(mine.text, entry.value.c_str(), sizeof mine.text - 1);
  std::vector<Value> values(static_cast<std::size_t>(size_));
  const int code = api_.Allgather(&mine, int(sizeof mine), MPI_CHAR, values.data(),
                                  int(sizeof mine), MPI_CHAR, exchange_comm_);
  if (code != MPI_SUCCESS) return fail(Status::mpi, mpi::error_text(api_, code));
  std::size_t other = 0;
  while (other + 1 < values.size() && values[other].hash == values[0].hash) ++other;
  const Status status =
      fail(Status::disagreement,
           entry.name + " differs between the ranks of a communicator: " + values[0].text +
               " on rank 0, " + values[other].text + " on rank " + std::to_string(other) +
               "; start all ranks with the same value");
  // Every rank knows; one says it, and is heard before an error handler ends the job.
  if (rank_ == 0) {
    log_error(failure_text());
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  std::uint64_t said = 0;
  SLIMPI_TRY(exchange_.all_max({&said, 1}));
  return status;
}

void Communicator::abandon() {
  exchange_comm_ = MPI_COMM_NULL;
  if (shared_ != nullptr) shared_->abandon();
  for (const auto& [path, hook] : hooks) hook->abandon();
}

void Communicator::options_changed() {
  agreed_ = laid_out_ = false;
  rails_.clear();
  prepared_.clear();
  tuners_.clear();
  slots.drop_all();
}

Status Communicator::find_nodes() {
  if (laid_out_) return Status::ok;
  shared_.reset();
  shared_tried_ = false;
  const Status found = find_layout(api_, exchange_comm_, config_.ranks_per_node, layout_);
  unusable_ = found != Status::ok;
  SLIMPI_TRY(found);
  exchange_.set_layout(&layout_);
  laid_out_ = true;
  return Status::ok;
}

const Rails& Communicator::rails(Hierarchy hierarchy) {
  const auto found = rails_.find(hierarchy);
  if (found != rails_.end()) return found->second;
  return rails_.emplace(hierarchy, make_rails(layout_, hierarchy)).first->second;
}

Status Communicator::open_shared() {
  const Intra intra = config_.intra;
  bool neighbours = false;
  for (const auto& node : layout_.members) neighbours = neighbours || node.size() > 1;
  if (shared_tried_ || !neighbours || (intra != Intra::automatic && intra != Intra::shm))
    return Status::ok;
  shared_tried_ = true;
  shared_ = std::make_unique<SharedMemory>(api_);
  bool ready = false;
  SLIMPI_TRY(shared_->open(exchange_, layout_, shared_box_bytes(), &ready));
  if (ready) return Status::ok;
  shared_.reset();
  if (rank_ == 0)
    log_once(intra == Intra::shm ? LogLevel::warn : LogLevel::debug,
             "the ranks of a node can not share memory; they exchange by messages");
  return Status::ok;
}

Status Communicator::prepare(const Plan& plan, std::uint64_t count, const device::Device& device,
                             const void* like, bool* ready) {
  std::uint64_t& largest =
      prepared_[{plan.algorithm, plan.format.bits, plan.format.bucket, plan.hierarchy, plan.hook}];
  const Status status = plan.algorithm->reserve(*this, plan, count, device, like);
  *ready = status == Status::ok;
  if (count <= largest) return status;
  if (!*ready)
    log_once(LogLevel::warn, "calls of this size go to MPI on all ranks: " + failure_text());
  std::uint64_t everyone = *ready ? 1 : 0;
  SLIMPI_TRY(exchange_.all_min({&everyone, 1}));
  *ready = everyone == 1;
  if (*ready) largest = count;
  return Status::ok;
}

Status Communicator::stream_for(const device::Device& device, const void* like,
                                device::Stream** stream) {
  *stream = nullptr;
  if (&device == &device::host()) return Status::ok;
  device::Stream*& known = streams_[{&device, device::unit_of(device, like)}];
  if (known == nullptr) SLIMPI_TRY(device.open_stream(like, &known));
  *stream = known;
  return Status::ok;
}

Status wait_for_stream(const device::Device& device, device::Stream* stream) {
  if (&device == &device::host()) return Status::ok;
  std::uint64_t mark = 0;
  SLIMPI_TRY(device.mark(stream, &mark));
  for (bool done = false; !done;) {
    SLIMPI_TRY(device.poll(stream, mark, &done));
    if (!done) sched_yield();
  }
  return Status::ok;
}

}  // namespace slimpi::algorithm
