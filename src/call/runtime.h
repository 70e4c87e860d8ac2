// SPDX-License-Identifier: BSD-3-Clause
// The one object behind the intercepted functions. It starts at the first of them that is called,
// never earlier, and ends with a callback that MPI_Finalize makes for an attribute of
// MPI_COMM_SELF, because no caught MPI_Init or MPI_Finalize can be relied on.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/config.h"
#include "base/statistics.h"
#include "comm/communicator.h"
#include "mpi/api.h"
#include "policy/rules.h"

namespace slimpi::call {

class Runtime {
 public:
  // The running object, which starts with the first call of the program between MPI_Init and
  // MPI_Finalize; null before, in a process without MPI, and where MPI has another ABI. `comm` is
  // what the call names: with sessions it alone shows that MPI runs.
  static Runtime* get(MPI_Comm comm = MPI_COMM_NULL);

  // The same, but starts nothing and calls nothing of MPI. Not null any more once it was not.
  static Runtime* started() { return started_.load(std::memory_order_acquire); }

  // Has the process an MPI that slimpi can serve? Calls nothing that MPI_Init has to precede.
  static bool finds_mpi();

  // What slimpi keeps for the user's communicator; made at first sight. null for MPI_COMM_NULL, for
  // a communicator that is being freed, and for one that MPI does not know: then its error handler
  // has run, and *raised, where it is given, is the code for the program.
  comm::Communicator* find(MPI_Comm comm, std::optional<int>* raised = nullptr);

  // The last session was finalized, and there is no world: every handle is void, also of
  // communicators that were never freed. MPI may start anew.
  void mpi_ended();

  // Turns a failure into an MPI error on the user's communicator: its error handler runs, and what
  // it returns is the code for the program. `say`: the failure is this rank's own, not one that
  // another rank told it.
  int raise(MPI_Comm comm, Status status, bool say = true);

  // Ends the job because an option cannot be used, with option_error as its one line.
  [[noreturn]] void end_job(MPI_Comm comm);

  // The rows of SLIMPI_RULES, or those that the program put on this communicator.
  const policy::Rules& rules_of(const comm::Communicator& communicator) const;

  // Remembers a communicator that spans the job, over which the report is summed. Collective.
  Status offer_for_report(comm::Communicator& communicator);

  // Writes the report where SLIMPI_REPORT says. `together`: with the bytes of all ranks; collective
  // over the job once offer_for_report found a communicator.
  void write_summary(bool together);
  // Warns of a report or trace that could not be written.
  void check_writability();

  // The end: report, trace. After it every call goes to MPI. Where MPI does not work any more the
  // report has this process's numbers only.
  void finish(bool mpi_works = true);

  // The end of a process that did not finalize MPI; nothing in a forked child.
  void leave();

  mpi::Api api{};
  std::string mpi_version;
  std::string option_error;  // why the options cannot be used; empty when they can
  Config config;
  policy::Rules rules;
  Statistics statistics;
  static inline std::atomic<bool> on{true};  // MPI_Pcontrol, which may come before MPI_Init
  std::atomic<bool> finished{false};
  std::atomic<bool> banner_logged{false};  // the line at the first compressed call was said
  int world_rank = -1, world_size = 0;     // without MPI_COMM_WORLD: in the largest communicator
  std::atomic<int> nodes{1};               // of the communicator that spans most

 private:
  bool is_fatal(MPI_Comm comm) const;
  [[noreturn]] void abort_job(MPI_Comm comm);
  void save_trace();
  static Runtime* begin(MPI_Comm comm);
  bool runs(MPI_Comm comm) const;
  bool start(Loaded loaded);
  void meet_world();
  void meet_session(const comm::Communicator& communicator);
  void watch_for_the_end();
  comm::Communicator* follow(MPI_Comm comm, std::optional<int>* raised);
  void unpin();
  static int forget(MPI_Comm comm, int keyval, void* value, void* runtime);
  static int end(MPI_Comm comm, int keyval, void* value, void* runtime);

  static inline std::atomic<Runtime*> started_{nullptr};
  int process_ = 0;     // a forked child is another
  bool world_ = false;  // MPI_COMM_WORLD exists
  int error_class_ = 0;
  std::map<std::string, int> error_codes_;    // by text; protected by mutex_
  std::atomic<std::uint64_t> generation_{1};  // grows when a communicator is freed
  std::atomic<std::uint64_t> offers_{0};      // rank 0: communicators offered for the report
  std::mutex mutex_;                          // guards all below
  std::set<comm::Communicator*> communicators_;
  int keyval_ = MPI_KEYVAL_INVALID;  // exists while a communicator is followed or a thread looks
  int pins_ = 0;                     // threads that use keyval_
  MPI_Comm report_comm_ = MPI_COMM_NULL;
  std::uint64_t report_number_ = 0;
  // With sessions the report's communicator goes with the one it was made from; else null.
  comm::Communicator* report_owner_ = nullptr;
};

}  // namespace slimpi::call
