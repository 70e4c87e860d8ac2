// SPDX-License-Identifier: BSD-3-Clause
// The one object behind the intercepted functions. It starts at the first call of one of them,
// never earlier. It ends in the delete callback of an attribute of MPI_COMM_SELF, which
// MPI_Finalize calls, because slimpi cannot rely on intercepting MPI_Init or MPI_Finalize.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/described_tensor.h"
#include "call/request.h"
#include "comm/communicator.h"
#include "mpi/api.h"
#include "observe/activity.h"
#include "observe/report.h"
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

  // slimpi's state for the user's communicator; made at its first call. null for MPI_COMM_NULL, for
  // a communicator that is being freed or left alone, and for one that MPI does not know. In the
  // last case its error handler has run, and *raised, where given, is the code for the program.
  comm::Communicator* find(mpi::Comm comm, std::optional<int>* raised = nullptr);

  // The same where there is one already; makes none and calls no MPI function.
  comm::Communicator* find_made(mpi::Comm comm);

  // Drops what is kept of communicators that MPI has freed later than the program (forget()). Not
  // in MPI's progress.
  void drop_late();

  // The last session was finalized, and there is no MPI_COMM_WORLD. Every handle is invalid, also
  // of communicators that were never freed. MPI may start again.
  void mpi_ended();

  // Raises an MPI error on the user's communicator: its error handler runs, and the result is the
  // code for the program. `logs`: this rank logs the failure; false where another rank reported it.
  int raise(mpi::Comm comm, Status status, bool logs = true);

  // Ends the job because an option cannot be used. option_error is the one line that is logged.
  [[noreturn]] void end_job(mpi::Comm comm);

  // The rules of SLIMPI_RULES, or those that the program set on this communicator.
  const Rules& rules_of(comm::Communicator& communicator) const;

  // Keeps a communicator that spans the job, over which the report is summed. Collective.
  Status offer_for_report(comm::Communicator& communicator);

  // Counts a float sum that goes to MPI for this reason, and its bytes.
  void count_bypass(const comm::Communicator& communicator, BypassReason reason,
                    const Allreduce& request);

  // Writes the report to the target of SLIMPI_REPORT. `together`: with the bytes of all ranks;
  // collective over the job once offer_for_report found a communicator.
  void write_summary(bool together);
  // Writes what SLIMPI_ESTIMATE asks for, on rank 0.
  Status write_estimate(const Report& job) const;
  // Warns where the report or the trace could not be written.
  void check_writability();

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
  // By type that is not taken: the last communicator to whose ranks this one has said so, if that
  // was necessary. Its sums of the type are left to MPI, and nothing is looked up.
  std::array<std::atomic<mpi::Comm>, kElementTypes> refused_types{};
  std::atomic<bool> finished{false};
  std::atomic<bool> banner_logged{false};  // the banner was printed
  std::atomic<bool> rounding_told{false};  // the job was told that its sums are rounded
  // Without MPI_COMM_WORLD: of the largest communicator so far.
  std::atomic<int> world_rank{-1}, world_size{0};
  std::atomic<int> nodes{1};  // of the communicator with the most nodes

 private:
  bool is_fatal(mpi::Comm comm) const;
  [[noreturn]] void abort_job(mpi::Comm comm);
  void wait_for_finalize();
  void save_trace();
  // SLIMPI_TRACE with %r, %h and %p replaced; %% is a percent sign. Where neither %r nor %p is in
  // it, the rank is appended.
  std::string trace_path() const;
  std::vector<std::string> gather_hosts();
  std::unique_ptr<Report> describe_job() const;
  static Runtime* begin(mpi::Comm comm);
  static bool mpi_runs(const mpi::Api& api, mpi::Comm comm);
  Status configure(mpi::Found found);
  void start(Loaded loaded);
  void find_world();
  void warn_of_launcher() const;
  void warn_of_threads() const;
  void find_hidden_functions() const;
  void warn_of_types() const;
  void add_session(const comm::Communicator& communicator);
  void set_world(int rank, int size);
  void watch_for_the_end();
  class Pin;
  comm::Communicator* follow(mpi::Comm comm, std::optional<int>* raised);
  bool make_keyval(int* keyval);
  void handles_end();
  void unpin();
  int code_of(Status status, const std::string& text);
  void drop(comm::Communicator* communicator);
  static int forget(mpi::Comm comm, int keyval, void* value, void* runtime);
  static int end(mpi::Comm comm, int keyval, void* value, void* runtime);

  static inline std::atomic<Runtime*> started_{nullptr};
  int process_ = 0;                 // the process id; differs in a forked child
  std::atomic<bool> world_{false};  // MPI_COMM_WORLD exists
  int error_class_ = 0;
  // The MPI error codes of failures, by Status; 0: not made yet. Protected by mutex_.
  std::array<int, std::size_t(Status::internal) + 1> error_codes_{};
  std::atomic<bool> has_late_{false};
  std::atomic<bool> abandoned_{false};        // no communicator calls MPI any more: finish()
  std::atomic<std::uint64_t> generation_{1};  // incremented when a communicator is freed
  std::atomic<std::uint64_t> offers_{0};      // rank 0: communicators offered for the report
  std::mutex mutex_;                          // protects all members below
  std::set<comm::Communicator*> communicators_;
  std::set<comm::Communicator*> late_;    // freed by MPI, not dropped yet
  int keyval_ = mpi::abi.keyval_invalid;  // exists while a communicator is followed or pins_ > 0
  int pins_ = 0;                          // number of threads that use keyval_
  mpi::Comm report_comm_ = mpi::abi.comm_null;
  std::uint64_t report_number_ = 0;
  // With sessions: the communicator that report_comm_ was made from, and is freed with; else null.
  comm::Communicator* report_owner_ = nullptr;
};

// What a call of the communicator is named by, while its thread is in it.
ActiveCall::Subject subject(const comm::Communicator& communicator, const Allreduce& request,
                            bool init = false);

// Handles a failure in the middle of a call: reports it to the other ranks and raises an MPI error
// on the program's communicator. Returns the code for the program. Messages may still be in flight,
// so no later call on this communicator can be done, unless all ranks know the failure.
int fail_call(Runtime& runtime, comm::Communicator& communicator, Status status);

// At the end of a process without a Runtime: says so where slimpi-run was asked for a report, an
// estimate, a trace or lines of level info.
void report_no_sums();

}  // namespace slimpi::call
