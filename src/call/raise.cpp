// SPDX-License-Identifier: BSD-3-Clause
// How a failure becomes an MPI error on the program's communicator, or the end of the job.
#include <unistd.h>

#include "base/exceptions.h"
#include "base/float_environment.h"
#include "base/log.h"
#include "call/nonblocking.h"
#include "call/runtime.h"

namespace slimpi::call {

namespace {

std::string describe_failure(Status status) {
  const std::string text = failure_text();
  return text.empty() ? to_string(status) : text;
}

}  // namespace

// The MPI error code of a kind of failure, made at its first use. MPI has room for few codes, so
// the text of a code is that of the last failure of its kind.
int Runtime::code_of(Status status, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (error_class_ == 0) api.Add_error_class(&error_class_);
  int& code = error_codes_[std::size_t(status)];
  if (code == 0 &&
      (error_class_ == 0 || api.Add_error_code(error_class_, &code) != mpi::kSuccess)) {
    code = 0;
    return mpi::abi.err_other;
  }
  api.Add_error_string(code, text.substr(0, std::size_t(mpi::abi.max_error_string) - 1).c_str());
  return code;
}

// Without memory for the text and its code, the error handler gets MPI_ERR_OTHER.
int Runtime::raise(mpi::Comm comm, Status status, bool logs) {
  if (const std::optional<int> later = postpone_failure(status, logs)) return *later;
  int code = mpi::abi.err_other, rank = 0;
  api.Comm_rank(comm, &rank);
  const auto log_it = [&] { log_once(LogLevel::error, describe_failure(status)); };
  (void)caught([&] {
    code = code_of(status, "slimpi: " + describe_failure(status));
    // Every rank found the same failed hook; only rank 0 logs it.
    if (logs && (status != Status::hook || rank == 0)) log_it();
  });
  if (is_fatal(comm)) {
    // Another rank logs it, or all ranks know it and rank 0 has logged it.
    if (!logs && status != Status::disagreement) {
      sleep(1);
      (void)caught([&] { log_it(); });
    }
    abort_job(comm);
  }
  const CallersFloats environment;
  return programs_code([&] {  // the error handler
    api.Comm_call_errhandler(comm, code);
    return code;
  });
}

bool Runtime::is_fatal(mpi::Comm comm) const {
  mpi::Errhandler handler = mpi::abi.errhandler_null;
  if (api.Comm_get_errhandler(comm, &handler) != mpi::kSuccess) return false;
  if (handler == mpi::abi.errors_are_fatal) return true;
  if (handler != mpi::abi.errors_return) api.Errhandler_free(&handler);
  return false;
}

void Runtime::end_job(mpi::Comm comm) {
  // Usually every rank has the same bad value: rank 0 logs it, the others give it time to end the
  // job.
  if (world_rank > 0) sleep(1);
  log_error(option_error);
  abort_job(comm);
}

// Does what MPI_ERRORS_ARE_FATAL does. MPICH 4.2 may end the job with status 0 from
// MPI_Comm_call_errhandler, or from MPI_Abort of a smaller communicator, and its MPI_Abort may
// return.
void Runtime::abort_job(mpi::Comm comm) {
  usleep(kTimeToForward);
  api.Abort(world_ ? mpi::abi.comm_world : comm, 2);
  _exit(2);
}

}  // namespace slimpi::call
