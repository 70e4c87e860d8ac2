// SPDX-License-Identifier: BSD-3-Clause
#include "observe/activity.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "base/call_locals.h"
#include "base/files.h"
#include "base/hash.h"

namespace slimpi {

namespace {

std::atomic<ActivityFile*> g_file{nullptr};
std::atomic<std::int64_t> g_stall{60};

std::int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

// Returns a free record of the file or, if there is none, `own`, which no other process sees.
Activity* take_record(Activity* own) {
  ActivityFile* const file = g_file.load(std::memory_order_acquire);
  if (file == nullptr) return own;
  for (Activity& record : file->records) {
    std::uint32_t unused = 0;
    if (std::atomic_ref(record.in_use)
            .compare_exchange_strong(unused, 1, std::memory_order_acquire))
      return &record;
  }
  return own;
}

void copy_cut(std::span<char> to, std::string_view text) {
  to[text.copy(to.data(), to.size() - 1)] = '\0';
}

std::uint64_t hash_of(std::string_view name) {
  if (name.empty()) return 0;
  Fnv1a hash;
  hash.add(name);
  return hash.value() | 1;
}

}  // namespace

const char* to_string(WaitStage stage) {
  constexpr const char* kNames[] = {"none",
                                    "making the communicator",
                                    "agreement",
                                    "reduce-scatter",
                                    "all-gather",
                                    "reduce-scatter in the node",
                                    "all-gather in the node",
                                    "barrier in the node",
                                    "neighbor exchange",
                                    "device",
                                    "MPI_Finalize"};
  return std::size_t(stage) < std::size(kNames) ? kNames[std::size_t(stage)] : "unknown";
}

// Creates the file of the records and maps it. Both stay until the end of the process, because
// calls of other threads and of exit handlers may still write their records, and other processes
// find the file by its descriptor.
void start_activity() {
  if (g_file.load() != nullptr) return;
  void* memory = MAP_FAILED;
  const int file = within_file_size_limit(sizeof(ActivityFile))
                       ? above_standard_streams(memfd_create(ActivityFile::kName, MFD_CLOEXEC))
                       : -1;  // slimpi-info --attach does not find this process
  if (file >= 0 && ftruncate(file, sizeof(ActivityFile)) == 0)
    memory = mmap(nullptr, sizeof(ActivityFile), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0 && memory == MAP_FAILED) close(file);
  if (memory == MAP_FAILED) return;
  auto* const records = new (memory) ActivityFile;
  records->pid = getpid();
  records->stall = std::int32_t(g_stall.load());
  g_file.store(records, std::memory_order_release);
}

void set_activity_rank(int rank, int size) {
  ActivityFile* const file = g_file.load(std::memory_order_acquire);
  if (file == nullptr) return;
  file->rank = rank;
  file->size = size;
}

void set_stall_limit(std::chrono::seconds limit) {
  g_stall.store(limit.count(), std::memory_order_relaxed);
}

std::chrono::seconds stall_limit() {
  return std::chrono::seconds(g_stall.load(std::memory_order_relaxed));
}

// Changes the record and its version. Another process copies the record twice by a system call, and
// has a whole copy if both copies have the same, even version.
template <typename Change>
void ActiveCall::write(Change change) {
  const std::atomic_ref version(record_->version);
  const std::uint32_t before = version.load(std::memory_order_relaxed);
  version.store(before | 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  change(*record_);
  version.store((before | 1) + 1, std::memory_order_release);
}

ActiveCall::ActiveCall(const Subject& subject)
    : record_(take_record(&own_)),
      first_(subject.first),
      tensor_(hash_of(subject.tensor)),
      outer_(t_locals.active) {
  t_locals.active = this;
  write([&](Activity& record) {
    record.state = Activity::State::works;
    record.stage = WaitStage::none;
    record.rank = subject.rank;
    record.size = subject.size;
    record.communicator = subject.communicator;
    record.call = subject.call;
    record.count = subject.count;
    record.function = subject.function.word();
    record.since = nanoseconds(std::chrono::steady_clock::now());
    record.waits_since = 0;
    record.report[0] = '\0';
    copy_cut(record.name, subject.name);
    copy_cut(record.tensor, subject.tensor);
  });
}

ActiveCall::~ActiveCall() {
  t_locals.active = outer_;  // calls nest, by callbacks of MPI
  std::atomic_ref(record_->in_use).store(0, std::memory_order_release);
}

std::uint64_t ActiveCall::sum_word(int bits) const {
  const std::uint64_t named = std::uint64_t(1) << (bits - 1);
  const std::uint64_t function = record_->function;
  const int count_bits = bits - 1 - Function::kBits;
  if (tensor_ == 0)
    return function << count_bits | (count() & ((std::uint64_t(1) << count_bits) - 1));
  return named | ((tensor_ ^ count() ^ function << (64 - Function::kBits)) * 0x9e3779b97f4a7c15 >>
                  (65 - bits));
}

ActiveCall* ActiveCall::current() {
  return t_locals.active;
}

void ActiveCall::works() {
  write([](Activity& record) {
    record.state = Activity::State::works;
    record.stage = WaitStage::none;
    record.report[0] = '\0';
  });
}

void ActiveCall::in_mpi() {
  write([](Activity& record) {
    record.state = Activity::State::in_mpi;
    record.waits_since = nanoseconds(std::chrono::steady_clock::now());
  });
}

void ActiveCall::waits(WaitStage stage, std::chrono::steady_clock::time_point since) {
  write([&](Activity& record) {
    record.state = Activity::State::waits;
    record.stage = stage;
    record.waits_since = nanoseconds(since);
  });
}

void ActiveCall::reported(std::string_view report) {
  write([&](Activity& record) { copy_cut(record.report, report); });
}

std::string Function::text() const {
  constexpr const char* kNames[][2] = {{"MPI_Allreduce", "MPI_Allreduce"},
                                       {"MPI_Reduce_scatter", "MPI_Reduce_scatter_block"},
                                       {"MPI_Allgatherv", "MPI_Allgather"}};
  return std::string(kNames[int(collective) % kCollectives][equal_blocks ? 1 : 0]) +
         (init ? "_init of " : " of ") + row_of(type).name + "s";
}

std::string describe_count(std::uint64_t count, Function function) {
  return std::to_string(count) + " " + row_of(function.type).name + "s";
}

std::string describe_call(const Activity& record) {
  const std::string number = std::to_string(record.communicator);
  std::string text = record.call == 0 ? "the first call" : "call " + std::to_string(record.call);
  text += std::string(" on ") + (record.name[0] != '\0' ? record.name : "a communicator");
  text += " (";
  if (record.communicator != 0) text += "communicator " + number + ", ";
  text += "rank " + std::to_string(record.rank) + " of " + std::to_string(record.size) + ")";
  text += ", " + describe_count(record.count, Function::of(record.function));
  return record.tensor[0] == '\0' ? text : text + ", tensor " + record.tensor;
}

std::string describe_other_function(int rank, Function theirs) {
  const ActiveCall& call = *ActiveCall::current();
  return "rank " + std::to_string(rank) + " calls " + theirs.text() + ", and this rank " +
         call.function().text() + ", in " + describe_call(call.record()) +
         "; all ranks must make the same calls in the same order";
}

std::string describe_other_sum(int rank, std::uint64_t word, int bits) {
  const ActiveCall* const call = ActiveCall::current();
  const std::uint64_t named = std::uint64_t(1) << (bits - 1);
  const std::string own = call != nullptr ? describe_call(call->record()) : "this call";
  if ((word & named) != 0 || (call != nullptr && (call->sum_word(bits) & named) != 0))
    return "rank " + std::to_string(rank) + " sums another tensor in " + own +
           "; all ranks must sum the same tensors in the same order";
  const int count_bits = bits - 1 - Function::kBits;
  const Function theirs = Function::of(std::uint32_t(word >> count_bits));
  if (call != nullptr && theirs.word() != call->function().word())
    return describe_other_function(rank, theirs);
  return "rank " + std::to_string(rank) + " passes " +
         describe_count(word & ((std::uint64_t(1) << count_bits) - 1), theirs) + " in " + own +
         "; all ranks must pass the same count";
}

std::string describe_ranks(std::span<const int> ranks) {
  const std::size_t count = ranks.size(), named = std::min<std::size_t>(count, 16);
  std::string text = count == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < named; ++i) {
    if (i != 0) text += i + 1 == count ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (named < count) text += " and " + std::to_string(count - named) + " more";
  return text;
}

}  // namespace slimpi
