// SPDX-License-Identifier: BSD-3-Clause
// The one object behind the intercepted functions. It holds the options, and starts and ends slimpi
// in this process. slimpi starts at the first intercepted call that needs it and finds MPI running.
// Because MPI_Init and MPI_Finalize may not be intercepted, slimpi ends in the delete callback of
// an attribute of MPI_COMM_SELF, which MPI_Finalize calls.
#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "call/communicator_attribute.h"
#include "call/raise_error.h"
#include "call/request.h"
#include "call/write_report.h"
#include "comm/communicator.h"
#include "mpi/api.h"
#include "observe/statistics.h"
#include "options/config.h"
#include "options/rules.h"

namespace slimpi::call {

// The rules (options for ranges of sizes) that the info key slimpi_rules has set for one
// communicator.
struct RulesOfInfo : comm::Attachment {
  std::optional<Rules> rules;  // empty: not set
};

class Runtime {
 public:
  // Returns the running object, which the first call between MPI_Init and MPI_Finalize starts.
  // Returns null before that, in a process without MPI, and under an unknown ABI. `comm` is the
  // communicator of the program's call, if it has one: in a program that has only sessions,
  // nothing else proves that MPI is running.
  static Runtime* get(std::optional<mpi::Comm> comm = {}) {
    Runtime* const runtime = started();
    return runtime != nullptr ? runtime : begin(comm);
  }

  // Returns the running object or null, without starting it or calling MPI. Once it is not null, it
  // stays so.
  static Runtime* started() { return started_.load(std::memory_order_acquire); }

  // Returns whether the process has an MPI that slimpi supports. Calls no function that needs
  // MPI_Init.
  static bool finds_mpi();

  // Forgets all handles. Called when the last session of a process without MPI_COMM_WORLD was
  // finalized, so that every handle is invalid, even those of communicators that were never freed.
  // MPI may start again.
  void mpi_ended();

  // Returns the rules that the program has set for this communicator, or else those of
  // SLIMPI_RULES.
  const Rules& rules_of(comm::Communicator& communicator) const;

  // Ends slimpi: writes report and trace, and leaves every later call to MPI. If MPI no longer
  // works, the report has only this process's numbers. Registry::wait_for_finalize() explains
  // `meet`.
  void finish(bool mpi_works = true, const std::function<std::optional<bool>()>& meet = {});

  // Ends slimpi in a process that did not finalize MPI. Does nothing in a forked child.
  void leave();

  mpi::Api api{};
  std::string mpi_version;
  std::string option_error;  // why the options cannot be used, or ""
  Config config;
  Rules rules;
  Statistics statistics;
  static inline std::atomic<bool> on{true};  // set by MPI_Pcontrol, even before MPI_Init
  std::atomic<bool> gathers{false};          // SLIMPI_CALLS or an info key names allgather
  std::atomic<bool> finished{false};
  std::atomic<bool> banner_logged{false};  // the banner was printed
  std::atomic<bool> rounding_told{false};  // the job was told that its sums are rounded
  // Rank and size of MPI_COMM_WORLD or, without it, of the largest communicator so far.
  std::atomic<int> world_rank{-1}, world_size{0};
  std::atomic<int> nodes{1};           // the most nodes of any communicator
  std::atomic<bool> has_world{false};  // MPI_COMM_WORLD exists

  Registry communicators{*this};
  Errors errors{*this};
  JobReport report{*this};

  // Called for each communicator of a program without MPI_COMM_WORLD, where the largest
  // communicator so far stands for the whole job.
  void add_session(const comm::Communicator& communicator);

 private:
  static Runtime* begin(std::optional<mpi::Comm> comm);
  static bool mpi_runs(const mpi::Api& api, std::optional<mpi::Comm> comm);
  Status configure(mpi::Found found);
  void start(Loaded loaded);
  void find_world();
  void warn_of_launcher() const;
  void warn_of_threads() const;
  void warn_of_types() const;
  void set_world(int rank, int size);
  void watch_for_the_end();
  static int end(mpi::Comm comm, int keyval, void* value, void* runtime);

  static inline std::atomic<Runtime*> started_{nullptr};
  int process_ = 0;  // differs in a forked child
};

}  // namespace slimpi::call
