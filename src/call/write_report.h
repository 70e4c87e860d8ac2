// SPDX-License-Identifier: BSD-3-Clause
// The report, estimate and trace of a job: adds the numbers of all ranks and writes the files.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "mpi/abi.h"
#include "observe/report.h"

namespace slimpi::call {

class Runtime;

class JobReport {
 public:
  explicit JobReport(Runtime& runtime) : runtime_(runtime) {}

  // Keeps a copy of the communicator for adding up the numbers of all ranks later, if the
  // communicator has all ranks of the job and there is no copy yet. Collective.
  Status offer(comm::Communicator& communicator);

  // Called on all ranks before MPI frees a communicator. In a program without MPI_COMM_WORLD, where
  // the end of the job is too late for MPI calls, adds up the numbers of the ranks. The report
  // shows those of the largest communicator that was freed last.
  void collect(comm::Communicator& communicator);

  // Returns the kept communicator and forgets it, if it must be freed together with `owner`;
  // otherwise returns null.
  mpi::Comm release(const comm::Communicator& owner);

  // Writes the report to the target of SLIMPI_REPORT, with the numbers of this process or the sums
  // over the job. With Scope::job it is collective, once offer() has kept a communicator.
  enum class Scope { process, job };
  void write(Scope scope);

  // Warns if the file of the report or of the trace cannot be written now.
  void check_writability() const;

  // Writes report, estimate and trace. If MPI no longer works, the report has only this process's
  // numbers.
  void finish(bool mpi_works);

  void mpi_ended();  // forgets the kept communicator

 private:
  // Sums of the counts over the ranks of a communicator, in which this process has the rank `rank`.
  struct Totals {
    Counts counts;
    int rank = 0, ranks = 0;  // ranks: 0 if there are no sums
    std::vector<std::string> hosts;
  };
  mpi::Comm comm() const;
  void add_up(mpi::Comm comm, Totals& totals) const;
  Status write_estimate(const Report& job) const;
  void save_trace() const;
  // Returns SLIMPI_TRACE with %r, %h and %p replaced, and %% by a percent sign. The rank is
  // appended if it has neither %r nor %p.
  std::string trace_path() const;
  std::vector<std::string> gather_hosts(mpi::Comm comm, int rank, int size) const;
  std::unique_ptr<Report> describe_job() const;

  Runtime& runtime_;
  std::atomic<std::uint64_t> offers_{0};  // rank 0: the communicators offered so far
  mutable std::mutex mutex_;              // protects all members below
  mpi::Comm comm_ = mpi::abi.comm_null;
  std::uint64_t number_ = 0;
  // With sessions, the communicator that comm_ was copied from and is freed with; otherwise null.
  const comm::Communicator* owner_ = nullptr;
  std::mutex writing_;  // protects totals_, those of the last collect() or write()
  Totals totals_;
};

// Called at the end of a process in which slimpi never started (without_sums.cpp). Prints that
// there is nothing to report, if the user asked slimpi-run for a report, an estimate, a trace or
// lines of level info.
void report_no_sums();

}  // namespace slimpi::call
