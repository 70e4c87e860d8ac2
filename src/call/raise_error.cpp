// SPDX-License-Identifier: BSD-3-Clause
#include "call/raise_error.h"

#include <unistd.h>

#include <utility>

#include "base/call_locals.h"
#include "base/exceptions.h"
#include "base/float_environment.h"
#include "call/entry.h"
#include "call/held_sum.h"
#include "call/queue.h"
#include "call/runtime.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

std::string describe_failure(Status status) {
  const std::string text = failure_text();
  return text.empty() ? to_string(status) : text;
}

// Lets the program's error handler run as outside of slimpi, for its lifetime. The handler may
// leave the failed call by longjmp, after which nothing of this call may be left in t_locals.
class OutsideCalls {
 public:
  OutsideCalls() : inside_(t_locals) { t_locals = {.trace_row = inside_.trace_row}; }
  ~OutsideCalls() { t_locals = inside_; }
  OutsideCalls(const OutsideCalls&) = delete;
  OutsideCalls& operator=(const OutsideCalls&) = delete;

 private:
  const CallLocals inside_;
};

}  // namespace

// Returns the MPI error code for a kind of failure, which is created at its first use. MPI has room
// for few codes, so all failures of a kind share one, whose text is that of the latest failure.
// Failures that ULFM has classes for get MPI's own codes, because programs ask for these classes.
// If MPI has no room, it may call the program's error handler, so this function runs in
// OutsideCalls and without a lock: of two codes that threads create at once, the first is kept.
int Errors::code_of(Status status, const std::string& text) {
  if (status == Status::rank_failed) return mpi::abi.err_proc_failed;
  if (status == Status::revoked) return mpi::abi.err_revoked;
  const mpi::Api& api = runtime_.api;
  const auto once = [](std::atomic<int>& kept, const auto& create) {
    int known = kept, made = 0;
    if (known != 0 || programs_code([&] { return create(&made); }) != mpi::kSuccess) return known;
    return kept.compare_exchange_strong(known, made) ? made : known;
  };
  const int of_class = once(class_, [&](int* made) { return api.Add_error_class(made); });
  if (of_class == 0) return mpi::abi.err_other;
  const int code = once(codes_[std::size_t(status)],
                        [&](int* made) { return api.Add_error_code(of_class, made); });
  if (code == 0) return mpi::abi.err_other;
  api.Add_error_string(code, text.substr(0, std::size_t(mpi::abi.max_error_string) - 1).c_str());
  return code;
}

// Raises an MPI error. If there is no memory for the text and the code, the error handler gets
// MPI_ERR_OTHER.
int Errors::raise(mpi::Comm comm, Status status, Logging logging) {
  // The failure of a sum in a fiber is kept until its request is completed. A fatal error ends the
  // job at once, because the program may be waiting for something else.
  if (HeldSum* const sum = running_sum(); sum != nullptr) {
    comm = sum->comm_for_errors();
    if (!is_fatal(comm)) return postpone_failure(*sum, status, logging);
  }
  const mpi::Api& api = runtime_.api;
  int code = mpi::abi.err_other, rank = 0;
  comm = existing(comm);
  if (comm != mpi::abi.comm_null) api.Comm_rank(comm, &rank);
  std::string text;
  const auto log_it = [&] { log_once(LogLevel::error, describe_failure(status)); };
  (void)caught([&] {
    text = "slimpi: " + describe_failure(status);
    // Every rank has found the same failed hook, so only rank 0 logs it.
    if (logging == Logging::here && (status != Status::hook || rank == 0)) log_it();
  });
  if (is_fatal(comm)) {
    // Another rank logs the failure and usually ends the job, so this rank waits 1 s before it logs
    // the failure as well. After a disagreement it does not, because rank 0 has logged that.
    if (logging == Logging::elsewhere && status != Status::disagreement) {
      sleep(1);
      (void)caught([&] { log_it(); });
    }
    abort_job(comm);
  }
  const CallersFloats environment;
  const OutsideCalls outside;
  if (!text.empty()) (void)caught([&] { code = code_of(status, std::exchange(text, {})); });
  if (comm == mpi::abi.comm_null) return code;
  return programs_code([&] {  // the error handler
    api.Comm_call_errhandler(comm, code);
    return code;
  });
}

// Returns `comm` or, for MPI_COMM_WORLD in a program without it, the largest communicator that
// slimpi knows; null if there is none.
mpi::Comm Errors::existing(mpi::Comm comm) const {
  if (comm != mpi::abi.comm_world || mpi::has_world(runtime_.api)) return comm;
  return runtime_.communicators.largest();
}

bool Errors::is_fatal(mpi::Comm comm) const {
  const mpi::Api& api = runtime_.api;
  if (comm == mpi::abi.comm_null) return false;
  mpi::Errhandler handler = mpi::abi.errhandler_null;
  if (api.Comm_get_errhandler(comm, &handler) != mpi::kSuccess) return false;
  if (handler == mpi::abi.errors_are_fatal) return true;
  if (handler != mpi::abi.errors_return) api.Errhandler_free(&handler);
  return false;
}

void Errors::end_job(mpi::Comm comm, const std::string& why) const {
  // Often every rank has the same failure, such as a bad option. Rank 0 logs it at once, while the
  // others first wait, because rank 0 may end the job meanwhile.
  if (runtime_.world_rank > 0) sleep(1);
  log_error(why);
  abort_job(comm);
}

// Ends the job like MPI_ERRORS_ARE_FATAL, but by MPI_Abort of MPI_COMM_WORLD: with MPICH 4.2,
// MPI_Comm_call_errhandler and MPI_Abort of a smaller communicator may end the job with status 0.
// MPI_Abort of MPICH 4.2 may also return, so _exit() follows.
void Errors::abort_job(mpi::Comm comm) const {
  usleep(kTimeToForward);
  comm = existing(runtime_.has_world ? mpi::abi.comm_world : comm);
  if (comm != mpi::abi.comm_null) runtime_.api.Abort(comm, 2);
  _exit(2);
}

void Errors::mpi_ended() {
  class_ = 0;
  for (auto& code : codes_) code = 0;
}

// If there is no memory for the text, the line that is logged is empty.
void end_for(mpi::Comm comm, Status status) {
  Runtime* const runtime = Runtime::started();
  if (runtime == nullptr) return;
  std::string why;
  (void)caught([&] { why = status == Status::no_memory ? "no host memory" : failure_text(); });
  runtime->errors.end_job(comm, why);
}

int fail_on(mpi::Comm comm, Status status) {
  Runtime* const runtime = Runtime::started();
  return runtime == nullptr ? mpi::abi.err_other : runtime->errors.raise(comm, status);
}

}  // namespace slimpi::call
