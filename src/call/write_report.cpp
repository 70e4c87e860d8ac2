// SPDX-License-Identifier: BSD-3-Clause
// The end of the job: sums the numbers of all ranks and writes the report.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>

#include "base/exceptions.h"
#include "base/files.h"
#include "base/float_environment.h"
#include "base/process.h"
#include "call/communicator_attribute.h"
#include "call/element_type.h"
#include "call/entry.h"
#include "call/estimate.h"
#include "call/nonblocking.h"
#include "call/persistent.h"
#include "call/runtime.h"
#include "comm/call.h"
#include "comm/waiter.h"
#include "mpi/internal_comm.h"
#include "observe/log.h"
#include "observe/report.h"
#include "observe/trace.h"

namespace slimpi::call {

// Threads may offer communicators in a different order on every rank, so the ranks of each one
// agree whether it may be used, and number it. Of those that may be used, the one with the lowest
// number is used. Where a session was opened on some rank, the communicator for the report is freed
// with the one that it was made from, because otherwise it would outlive its session.
Status Runtime::offer_for_report(comm::Communicator& communicator) {
  std::uint64_t words[] = {0, 0, 0, 0};
  if (!world_ || communicator.size() != world_size) return Status::ok;
  if (world_rank == 0) words[0] = ++offers_;
  words[1] = sessions_seen() != 0 ? 1 : 0;
  {
    const std::lock_guard lock(mutex_);
    words[2] = report_comm_ != mpi::abi.comm_null ? 1 : 0;
  }
  words[3] = config.report && world_rank != 0 ? 1 : 0;
  SLIMPI_TRY(communicator.exchange().all_max(words));
  const auto [number, with_sessions, taken, reports] = words;
  if (reports != 0 && world_rank == 0 && !config.report)
    log_once(LogLevel::warn,
             "SLIMPI_REPORT is set on another rank and not on rank 0, which writes the report; "
             "set it on rank 0");
  mpi::Comm made = mpi::abi.comm_null;
  if (taken != 0 || mpi::copy_internal(api, communicator.exchange().comm(), 0, &made) != Status::ok)
    return Status::ok;
  {
    const std::lock_guard lock(mutex_);
    if (report_comm_ == mpi::abi.comm_null || number < report_number_) {
      std::swap(report_comm_, made);
      report_number_ = number;
      report_owner_ = with_sessions != 0 ? &communicator : nullptr;
    }
  }
  if (made != mpi::abi.comm_null) api.Comm_free(&made);
  return Status::ok;
}

void Runtime::count_bypass(const comm::Communicator& communicator, BypassReason reason,
                           const Allreduce& request) {
  statistics.bypassed(reason);
  const comm::NodeLayout& layout = communicator.layout();
  const std::uint64_t bytes = row_of(request.collective).phases * bytes_of(request);
  if (layout.nodes() == 0)
    statistics.count(&Counts::bytes_bypassed_elsewhere, bytes);
  else
    statistics.count(
        &Counts::bytes_bypassed,
        layout.part_of(std::uint64_t(layout.nodes() - 1) * bytes, communicator.config().hierarchy));
}

namespace {
using HostName = std::array<char, 256>;
HostName host_name() {
  HostName name{};
  gethostname(name.data(), name.size() - 1);
  return name;
}
}  // namespace

// The hosts of the job, each once. Collective over report_comm_.
std::vector<std::string> Runtime::gather_hosts() {
  HostName own = host_name();
  int rank = 0, size = 1;
  std::vector<HostName> all{own};
  if (report_comm_ != mpi::abi.comm_null) {
    api.Comm_rank(report_comm_, &rank);
    api.Comm_size(report_comm_, &size);
    all.resize(rank == 0 ? std::size_t(size) : 1);
    if (api.Gather(own.data(), int(own.size()), mpi::abi.type_char, all.data(), int(own.size()),
                   mpi::abi.type_char, 0, report_comm_) != mpi::kSuccess)
      return {};
  }
  std::vector<std::string> hosts;
  std::set<std::string> seen;
  for (const HostName& name : all)
    if (seen.insert(name.data()).second) hosts.emplace_back(name.data());
  return hosts;
}

// What the report says apart from numbers that the ranks add.
std::unique_ptr<Report> Runtime::describe_job() const {
  auto made = std::make_unique<Report>();
  Report& report = *made;
  report.version = SLIMPI_PACKAGE_VERSION;
  report.mpi = mpi_version;
  report.algorithm = config.algorithm;
  report.command = process_command();
  report.date = date_now();
  report.wall_seconds = seconds_since_load();
  for (std::size_t i = 0; i < option_rows().size(); ++i)
    if (config.is_set(Option(i)))
      report.options.emplace_back(option_rows()[i].name, config.given[i].text);
  statistics.read(report.errors);
  report.codecs = comm::used_codec_names();
  report.choices = statistics.choices.rows();
  report.ranks = std::max(world_size.load(), 1);
  report.nodes = nodes;
  // Rank 0's communicators may have fewer.
  if (config.ranks_per_node != 0)
    report.nodes = std::max(report.nodes, (report.ranks - 1) / int(config.ranks_per_node) + 1);
  report.unmatched_rules = unmatched(rules);
  return made;
}

// The sum over the ranks comes first and allocates nothing, so a rank that runs out of memory later
// has already taken part in it. The counts are not on the stack, which may be short.
void Runtime::write_summary(bool together) {
  const OwnFloats environment;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static Counts own, job;
  statistics.read(own);
  bool summed = false;
  int rank = std::max(world_rank.load(), 0), counted = 1;
  std::vector<std::string> hosts;
  if (together && report_comm_ != mpi::abi.comm_null) {
    int place = 0, size = 0;
    summed = api.Comm_rank(report_comm_, &place) == mpi::kSuccess &&
             api.Comm_size(report_comm_, &size) == mpi::kSuccess &&
             api.Reduce(&own, &job, int(kCounts), mpi::abi.type_uint64_t, mpi::abi.op_sum, 0,
                        report_comm_) == mpi::kSuccess;
    if (summed) {
      rank = place;
      counted = size;
    }
    hosts = gather_hosts();
  }
  if (rank != 0 || !(config.report || config.estimate)) return;
  const std::unique_ptr<Report> report = describe_job();
  report->own = own;
  report->job = summed ? job : own;
  report->hosts = std::move(hosts);
  report->ranks_counted = counted;
  if (config.report &&
      write_to(*config.report, "SLIMPI_REPORT",
               is_text(*config.report) ? to_text(*report) : to_json(*report)) != Status::ok)
    log_error(failure_text());
  if (config.estimate && write_estimate(*report) != Status::ok) log_error(failure_text());
}
Status Runtime::write_estimate(const Report& job) const {
  const CallEstimate* const running = CallEstimate::running();
  if (running == nullptr) return Status::ok;
  const std::unique_ptr<const Estimate> estimate(new Estimate(running->result(job)));
  return write_to(*config.estimate, "SLIMPI_ESTIMATE",
                  is_text(*config.estimate) ? to_text(*estimate) : to_json(*estimate));
}

// A warning about a file that cannot be written is more useful at the start than at the end.
void Runtime::check_writability() {
  const auto look = [](const char* variable, const std::string& path) {
    if (const std::string reason = why_not_writable(path); !reason.empty())
      log_warn(std::string(variable) + "=" + path + " cannot be written yet: " + reason);
  };
  if (config.report && !is_stream(*config.report)) look("SLIMPI_REPORT", *config.report);
  if (config.trace) look("SLIMPI_TRACE", trace_path());
}

std::string Runtime::trace_path() const {
  const std::string& pattern = *config.trace;
  const std::string rank = std::to_string(std::max(world_rank.load(), 0));
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

void Runtime::save_trace() {
  const Trace* const trace = Trace::running();
  if (trace == nullptr) return;
  const std::string path = trace_path();
  if (const int error = trace->write(path.c_str(), std::max(world_rank.load(), 0)); error != 0)
    log_error("SLIMPI_TRACE=" + path + " cannot be written: " + why_no_result(error));
}

// Ranks that wait for this one get an error in place of a wait without end. MPI_Finalize waits for
// all ranks, too, but answers nobody.
void Runtime::wait_for_finalize() {
  struct End {
    comm::Communicator* communicator;
    int word = 0;
    mpi::Request request = mpi::abi.request_null;
  };
  std::vector<std::unique_ptr<End>> ends;  // MPI writes to them, until their requests are complete
  end_persistent();
  {
    const std::lock_guard lock(mutex_);
    for (comm::Communicator* communicator : communicators_)
      if (!communicator->freed) ends.push_back(std::make_unique<End>(End{communicator}));
  }
  for (auto& end : ends) end->communicator->begin_end(&end->word, &end->request);
  for (comm::Waiter waiter(comm::Waiter::Poll::mpi);; waiter.rest()) {
    std::erase_if(ends, [&](std::unique_ptr<End>& end) {
      int done = 1;
      if (end->request == mpi::abi.request_null ||
          api.Test(&end->request, &done, mpi::abi.status_ignore) != mpi::kSuccess || done != 0)
        return true;
      if (end->communicator->serve_end()) return false;
      (void)end.release();
      return true;
    });
    if (ends.empty()) return;
  }
}

void Runtime::finish(bool mpi_works) {
  if (finished.exchange(true)) return;
  const OwnFloats environment;
  if (!mpi_works) report_comm_ = mpi::abi.comm_null;
  if (mpi_works) {
    wait_for_all_sums();
    end_helper();
    (void)caught([&] { wait_for_finalize(); });
  }
  try {
    write_summary(true);
  } catch (const std::bad_alloc&) {
    log_warn("no memory for the report");
  }
  save_trace();
  if (report_comm_ != mpi::abi.comm_null) api.Comm_free(&report_comm_);
  const std::lock_guard lock(mutex_);
  communicators_.merge(late_);
  has_late_ = false;
  abandoned_ = true;
  for (comm::Communicator* communicator : communicators_) {
    if (mpi_works) communicator->exchange().drain_roll_call();
    communicator->abandon();
  }
  abandon_persistent();
}

}  // namespace slimpi::call
