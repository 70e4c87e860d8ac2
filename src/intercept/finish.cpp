// SPDX-License-Identifier: BSD-3-Clause
// The end of the job: numbers of all ranks summed, the report written.
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "base/report.h"
#include "intercept/runtime.h"

namespace slimpi::intercept {

// Threads may bring communicators in another order on every rank, so the ranks of each one agree
// whether it may serve, and number it. Of those that may, the one with the lowest number does.
Status Runtime::offer_for_report(algorithm::Communicator& communicator) {
  if (!world_ || communicator.size() != world_size) return Status::ok;
  std::uint64_t words[2] = {0, world_rank == 0 ? ++offers_ : 0};
  {
    const std::lock_guard lock(mutex_);
    words[0] = report_comm_ != MPI_COMM_NULL ? 1 : 0;
  }
  SLIMPI_TRY(communicator.exchange().all_max(words));
  const auto [taken, number] = words;
  MPI_Comm made = MPI_COMM_NULL;
  if (taken != 0 || api.Comm_dup(communicator.exchange().comm(), &made) != MPI_SUCCESS)
    return Status::ok;
  api.Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  const std::lock_guard lock(mutex_);
  if (report_comm_ != MPI_COMM_NULL && report_number_ < number) return Status::ok;
  report_comm_ = made;
  report_number_ = number;
  return Status::ok;
}

void Runtime::write_summary() {
  Report report;
  report.version = SLIMPI_PACKAGE_VERSION;
  report.mpi = mpi_version;
  report.algorithm = config.algorithm;
  report.own = report.job = statistics.counts();
  report.mean_error = statistics.mean_error();
  report.max_error = statistics.max_error();
  report.most_scratch = statistics.most_scratch();
  report.ranks = std::max(world_size, 1);
  report.ranks_counted = 1;
  report.nodes = nodes;
  int rank = std::max(world_rank, 0);
  if (report_comm_ != MPI_COMM_NULL) {
    algorithm::Layout layout;
    Counts sum;
    const Counts own = report.own;
    if (algorithm::find_layout(api, report_comm_, config.ranks_per_node, layout) == Status::ok &&
        api.Reduce(&own, &sum, int(kCounts), MPI_UINT64_T, MPI_SUM, 0, report_comm_) ==
            MPI_SUCCESS) {
      rank = layout.rank;
      report.job = sum;
      report.nodes = layout.nodes();
      report.ranks_counted = layout.size;
    }
  }
  if (rank != 0 || !config.report) return;
  if (write_report(report, *config.report) != Status::ok) log_error(failure_text());
}

// A file that can not be written is worth a word before hours of work, not only after them.
void Runtime::look_at_files() {
  const auto look = [](const char* variable, const std::string& path) {
    if (const std::string reason = why_not_writable(path); !reason.empty())
      log_warn(std::string(variable) + "=" + path + " can not be written yet: " + reason);
  };
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  if (config.report && *config.report != "stderr") look("SLIMPI_REPORT", *config.report);
  if (config.trace)
    look("SLIMPI_TRACE", trace_file_name(*config.trace, std::max(world_rank, 0), host, getpid()));
}

void Runtime::save_trace() {
  const Trace* const trace = Trace::running();
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const int rank = std::max(world_rank, 0);
  const bool collected = report_comm_ != MPI_COMM_NULL;
  // Whether to collect is asked of all: SLIMPI_TRACE is each rank's own business.
  int wanted = trace != nullptr && !trace_is_per_rank(*config.trace) ? 1 : 0;
  std::int64_t zero = trace == nullptr ? INT64_MAX : trace->start_time();
  if (collected) {
    api.Allreduce(MPI_IN_PLACE, &wanted, 1, MPI_INT, MPI_MAX, report_comm_);
    api.Allreduce(MPI_IN_PLACE, &zero, 1, MPI_INT64_T, MPI_MIN, report_comm_);
  }
  std::string events = trace == nullptr ? "" : trace->events(rank, host, zero);
  if (wanted != 0 && collected) {
    events = gather_text(events);
    if (events.empty()) return;
  }
  if (trace == nullptr) return;
  std::string path = trace_file_name(*config.trace, rank, host, int(getpid()));
  if (wanted != 0 && !collected && rank != 0) path += "." + std::to_string(rank);
  if (write_trace(path, std::move(events)) != Status::ok) log_error(failure_text());
}

// All ranks' texts one after the other, on rank 0 of the report's communicator; "" elsewhere.
std::string Runtime::gather_text(const std::string& mine) {
  constexpr int kTag = 1;
  int rank = 0, size = 1;
  api.Comm_rank(report_comm_, &rank);
  api.Comm_size(report_comm_, &size);
  std::uint64_t bytes = mine.size();
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(size));
  api.Gather(&bytes, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, 0, report_comm_);
  constexpr std::uint64_t kMost = 1u << 30;  // bytes of one message
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank != 0) {
    for (std::uint64_t at = 0; at < bytes; at += kMost) {
      api.Isend(mine.data() + at, int(std::min(kMost, bytes - at)), MPI_CHAR, 0, kTag, report_comm_,
                &request);
      api.Wait(&request, MPI_STATUS_IGNORE);
    }
    return "";
  }
  std::string all = mine;
  for (int from = 1; from < size; ++from) {
    std::string text(sizes[std::size_t(from)], ' ');
    for (std::uint64_t at = 0; at < text.size(); at += kMost) {
      api.Irecv(text.data() + at, int(std::min<std::uint64_t>(kMost, text.size() - at)), MPI_CHAR,
                from, kTag, report_comm_, &request);
      api.Wait(&request, MPI_STATUS_IGNORE);
    }
    all += text;
  }
  return all;
}

void Runtime::finish(bool mpi_works) {
  if (finished.exchange(true)) return;
  if (!mpi_works) report_comm_ = MPI_COMM_NULL;
  write_summary();
  save_trace();
  const std::lock_guard lock(mutex_);
  for (algorithm::Communicator* communicator : communicators_) communicator->abandon();
}

}  // namespace slimpi::intercept
