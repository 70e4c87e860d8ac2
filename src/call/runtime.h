// SPDX-License-Identifier: BSD-3-Clause
// The one object behind the intercepted functions: the options, and the start and the end of
// slimpi in this process. It starts at the first call of one of these functions, never earlier. It
// ends in the delete callback of an attribute of MPI_COMM_SELF, which MPI_Finalize calls, because
// slimpi cannot rely on intercepting MPI_Init or MPI_Finalize.
#pragma once
#include <atomic>
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

// The rules of the info key slimpi_rules on one communicator.
struct RulesOfInfo : comm::Attachment {
  std::optional<Rules> rules;  // empty: not set
};

class Runtime {
 public:
  // The running object. It starts with the first call of the program between MPI_Init and
  // MPI_Finalize. Null before, in a process without MPI, and where MPI has another ABI. `comm` is
  // the communicator of the call: with sessions it is the only proof that MPI runs.
  static Runtime* get(mpi::Comm comm = mpi::abi.comm_null) {
    Runtime* const runtime = started();
    return runtime != nullptr ? runtime : begin(comm);
  }

  // The same, but starts nothing and calls no MPI function. Once not null, it stays so.
  static Runtime* started() { return started_.load(std::memory_order_acquire); }

  // Whether the process has an MPI that slimpi supports. Calls no function that needs MPI_Init.
  static bool finds_mpi();

  // The last session was finalized, and there is no MPI_COMM_WORLD. Every handle is invalid, also
  // of communicators that were never freed. MPI may start again.
  void mpi_ended();

  // The rules of SLIMPI_RULES, or those that the program set on this communicator.
  const Rules& rules_of(comm::Communicator& communicator) const;

  // The end: writes report and trace. After it every call goes to MPI. Where MPI does not work any
  // more, the report has this process's numbers only.
  void finish(bool mpi_works = true);

  // The end of a process that did not finalize MPI. Does nothing in a forked child.
  void leave();

  mpi::Api api{};
  std::string mpi_version;
  std::string option_error;  // why the options cannot be used; empty when they can
  Config config;
  Rules rules;
  Statistics statistics;
  static inline std::atomic<bool> on{true};  // set by MPI_Pcontrol, also before MPI_Init
  std::atomic<bool> finished{false};
  std::atomic<bool> banner_logged{false};  // the banner was printed
  std::atomic<bool> rounding_told{false};  // the job was told that its sums are rounded
  // Without MPI_COMM_WORLD: of the largest communicator so far.
  std::atomic<int> world_rank{-1}, world_size{0};
  std::atomic<int> nodes{1};           // of the communicator with the most nodes
  std::atomic<bool> has_world{false};  // MPI_COMM_WORLD exists

  Registry communicators{*this};
  Errors errors{*this};
  JobReport report{*this};

  // A communicator of a program without MPI_COMM_WORLD: the largest one stands for the job.
  void add_session(const comm::Communicator& communicator);

 private:
  static Runtime* begin(mpi::Comm comm);
  static bool mpi_runs(const mpi::Api& api, mpi::Comm comm);
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
  int process_ = 0;  // the process id; differs in a forked child
};

}  // namespace slimpi::call
