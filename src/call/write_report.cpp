// SPDX-License-Identifier: BSD-3-Clause
#include "call/write_report.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <set>
#include <utility>

#include "base/exceptions.h"
#include "base/files.h"
#include "base/float_environment.h"
#include "base/process.h"
#include "call/communicator_attribute.h"
#include "call/estimate.h"
#include "call/runtime.h"
#include "comm/call.h"
#include "comm/waiter.h"
#include "mpi/internal_comm.h"
#include "observe/log.h"
#include "observe/report.h"
#include "observe/trace.h"

namespace slimpi::call {

// Threads may offer communicators in a different order on every rank, so the ranks make no copy if
// any of them already has one, and rank 0 numbers the copies. If several threads make copies at
// once, the one with the lowest number is kept. Once any rank has opened a session, the copy is
// freed together with the communicator, so that it does not outlive the session.
Status JobReport::offer(comm::Communicator& communicator) {
  std::uint64_t words[] = {0, 0, 0, 0};
  if (communicator.without_world() || communicator.size() != runtime_.world_size) return Status::ok;
  if (runtime_.world_rank == 0) words[0] = ++offers_;
  words[1] = sessions_seen() != 0 ? 1 : 0;
  words[2] = comm() != mpi::abi.comm_null ? 1 : 0;
  words[3] = runtime_.config.report && runtime_.world_rank != 0 ? 1 : 0;
  SLIMPI_TRY(communicator.exchange().all_max(words));
  const auto [number, with_sessions, taken, reports] = words;
  if (reports != 0 && runtime_.world_rank == 0 && !runtime_.config.report)
    log_once(LogLevel::warn,
             "SLIMPI_REPORT is set on another rank and not on rank 0, which writes the report; "
             "set it on rank 0");
  if (taken != 0) return Status::ok;
  // MPI may make the copy on some ranks only. Either all ranks use it or none does, because they
  // wait for each other in write().
  mpi::Comm made = mpi::abi.comm_null;
  bool all_made =
      mpi::copy_internal(runtime_.api, communicator.exchange().comm(), 0, &made) == Status::ok;
  SLIMPI_TRY(communicator.exchange().all_true(&all_made));
  if (all_made) {
    const std::lock_guard lock(mutex_);
    if (comm_ == mpi::abi.comm_null || number < number_) {
      std::swap(comm_, made);
      number_ = number;
      owner_ = with_sessions != 0 ? &communicator : nullptr;
    }
  }
  if (made != mpi::abi.comm_null) runtime_.api.Comm_free(&made);
  return Status::ok;
}

namespace {
using HostName = std::array<char, 256>;
HostName host_name() {
  HostName name{};
  gethostname(name.data(), name.size() - 1);
  return name;
}
}  // namespace

mpi::Comm JobReport::comm() const {
  const std::lock_guard lock(mutex_);
  return comm_;
}

// Returns on rank 0 the hosts of the job, each once. Collective over `comm`.
std::vector<std::string> JobReport::gather_hosts(mpi::Comm comm, int rank, int size) const {
  HostName own = host_name();
  std::vector<HostName> all(rank == 0 ? std::size_t(size) : 0);
  if (runtime_.api.Gather(own.data(), int(own.size()), mpi::abi.type_char, all.data(),
                          int(own.size()), mpi::abi.type_char, 0, comm) != mpi::kSuccess)
    return {};
  std::vector<std::string> hosts;
  std::set<std::string> seen;
  for (const HostName& name : all)
    if (seen.insert(name.data()).second) hosts.emplace_back(name.data());
  return hosts;
}

// Returns this rank's part of the report. write() adds the counts of this rank and of the job, the
// hosts, and how many ranks were counted.
std::unique_ptr<Report> JobReport::describe_job() const {
  auto made = std::make_unique<Report>();
  Report& report = *made;
  report.version = SLIMPI_PACKAGE_VERSION;
  report.mpi = runtime_.mpi_version;
  report.algorithm = runtime_.config.algorithm;
  report.command = process_command();
  report.date = date_now();
  report.wall_seconds = seconds_since_load();
  for (std::size_t i = 0; i < option_rows().size(); ++i)
    if (runtime_.config.is_set(Option(i)))
      report.options.emplace_back(option_rows()[i].name, runtime_.config.given[i].text);
  runtime_.statistics.read(report.errors);
  report.codecs = comm::used_codec_names();
  report.choices = runtime_.statistics.choices.rows();
  report.ranks = std::max(runtime_.world_size.load(), 1);
  report.nodes = runtime_.nodes;
  // The communicators of rank 0 may all have fewer nodes than the job.
  report.nodes = std::max(report.nodes, comm::nodes_by_options(runtime_.config, report.ranks));
  report.unmatched_rules = unmatched(runtime_.rules);
  return made;
}

// Adds up the numbers of all ranks. Allocates only after it has taken part in the reductions, so
// that a rank without memory keeps no other rank waiting.
void JobReport::add_up(mpi::Comm comm, Totals& totals) const {
  static Counts own;  // not on the stack, which may be too small
  runtime_.statistics.read(own);
  totals.ranks = 0;
  totals.hosts.clear();
  int size = 1;
  if (runtime_.api.Comm_rank(comm, &totals.rank) == mpi::kSuccess &&
      runtime_.api.Comm_size(comm, &size) == mpi::kSuccess &&
      runtime_.api.Reduce(&own, &totals.counts, int(kCounts), mpi::abi.type_uint64_t,
                          mpi::abi.op_sum, 0, comm) == mpi::kSuccess)
    totals.ranks = size;
  totals.hosts = gather_hosts(comm, totals.rank, size);
}

// The ranks wait for each other only for a limited time, because a rank that never frees the
// communicator must not block the others. The report is about the largest
// communicator whose counts some rank has, so all ranks choose that one.
void JobReport::collect(comm::Communicator& communicator) {
  // Once MPI_Finalize has written the report (`finished`), the communicators of sessions that are
  // still open are left to MPI.
  if (runtime_.finished || !communicator.without_world() || !communicator.reports() ||
      !communicator.connected() || communicator.failed())
    return;
  const OwnFloats environment;
  const std::lock_guard lock(writing_);
  const mpi::Comm comm = communicator.exchange().comm();
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  auto largest = std::make_unique<int>(totals_.ranks);
  mpi::Request request = mpi::abi.request_null;
  int done = 0;
  if (runtime_.api.Iallreduce(mpi::abi.in_place, largest.get(), 1, mpi::abi.type_int,
                              mpi::abi.op_max, comm, &request) != mpi::kSuccess)
    return;
  for (comm::Waiter waiter(comm::Waiter::Poll::mpi); done == 0; waiter.rest())
    if (runtime_.api.Test(&request, &done, mpi::abi.status_ignore) != mpi::kSuccess ||
        (done == 0 && std::chrono::steady_clock::now() > limit)) {
      (void)largest.release();  // MPI may still write there
      return;
    }
  if (communicator.size() >= *largest) add_up(comm, totals_);
}

// Writes the report. With Scope::job, the ranks first add up their numbers.
void JobReport::write(Scope scope) {
  const OwnFloats environment;
  const std::lock_guard lock(writing_);
  static Counts own;
  if (const mpi::Comm comm = this->comm(); scope == Scope::job && comm != mpi::abi.comm_null)
    add_up(comm, totals_);
  else if (runtime_.has_world)
    totals_.ranks = 0;
  runtime_.statistics.read(own);
  const bool summed = scope == Scope::job && totals_.ranks != 0;
  const int rank = summed ? totals_.rank : std::max(runtime_.world_rank.load(), 0);
  if (rank != 0 || !(runtime_.config.report || runtime_.config.estimate)) return;
  const std::unique_ptr<Report> report = describe_job();
  report->own = own;
  report->job = summed ? totals_.counts : own;
  report->hosts = summed ? totals_.hosts : std::vector<std::string>();
  report->ranks_counted = summed ? totals_.ranks : 1;
  if (runtime_.config.report &&
      write_to(*runtime_.config.report, "SLIMPI_REPORT",
               is_text(*runtime_.config.report) ? to_text(*report) : to_json(*report)) !=
          Status::ok)
    log_error(failure_text());
  if (runtime_.config.estimate && write_estimate(*report) != Status::ok) log_error(failure_text());
}

Status JobReport::write_estimate(const Report& job) const {
  const CallEstimate* const running = CallEstimate::running();
  if (running == nullptr) return Status::ok;
  const std::unique_ptr<const Estimate> estimate(new Estimate(running->result(job)));
  return write_to(*runtime_.config.estimate, "SLIMPI_ESTIMATE",
                  is_text(*runtime_.config.estimate) ? to_text(*estimate) : to_json(*estimate));
}

// Warns at the start of the job about a file that cannot be written, since at the end it would be
// too late.
void JobReport::check_writability() const {
  const auto look = [](const char* variable, const std::string& path) {
    if (const std::string reason = why_not_writable(path); !reason.empty())
      log_warn(std::string(variable) + "=" + path + " cannot be written yet: " + reason);
  };
  if (runtime_.config.report && !is_stream(*runtime_.config.report))
    look("SLIMPI_REPORT", *runtime_.config.report);
  if (!runtime_.config.trace) return;
  const std::string path = trace_path(), unnumbered = path.substr(0, path.rfind('.'));
  struct stat status {};
  // Someone who names a pipe, a device or a directory expects the trace there.
  if (*runtime_.config.trace == unnumbered && stat(unnumbered.c_str(), &status) == 0 &&
      !S_ISREG(status.st_mode))
    log_warn("SLIMPI_TRACE=" + unnumbered + " is not a regular file; each rank writes a file of " +
             "its own instead, this rank " + path);
  look("SLIMPI_TRACE", path);
}

std::string JobReport::trace_path() const {
  const std::string& pattern = *runtime_.config.trace;
  const std::string rank = std::to_string(std::max(runtime_.world_rank.load(), 0));
  std::string path;
  bool of_one_rank = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char what = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[++i] : '\0';
    of_one_rank |= what == 'r' || what == 'p';
    if (what == '\0' || what == '%')
      path += pattern[i];
    else if (what == 'r')
      path += rank;
    else if (what == 'h')
      path += host_name().data();
    else if (what == 'p')
      path += std::to_string(getpid());
    else
      path += {'%', what};
  }
  return of_one_rank ? path : path + "." + rank;
}

void JobReport::save_trace() const {
  const Trace* const trace = Trace::running();
  if (trace == nullptr) return;
  const std::string path = trace_path();
  if (const int error = trace->write(path.c_str(), std::max(runtime_.world_rank.load(), 0));
      error != 0)
    log_error("SLIMPI_TRACE=" + path + " cannot be written: " + why_no_result(error));
}

mpi::Comm JobReport::release(const comm::Communicator& owner) {
  const std::lock_guard lock(mutex_);
  if (owner_ != &owner) return mpi::abi.comm_null;
  owner_ = nullptr;
  return std::exchange(comm_, mpi::abi.comm_null);
}

void JobReport::mpi_ended() {
  const std::lock_guard lock(mutex_);
  comm_ = mpi::abi.comm_null;
  owner_ = nullptr;
}

void JobReport::finish(bool mpi_works) {
  if (!mpi_works) mpi_ended();
  try {
    write(Scope::job);
  } catch (const std::bad_alloc&) {
    log_warn("no memory for the report");
  }
  save_trace();
  if (mpi::Comm last = comm(); last != mpi::abi.comm_null) {
    mpi_ended();
    runtime_.api.Comm_free(&last);
  }
}

}  // namespace slimpi::call
