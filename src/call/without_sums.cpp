// SPDX-License-Identifier: BSD-3-Clause
// Runs at the end of a process in which slimpi never started, because the program has no MPI or
// sums by other means. If slimpi-run was asked for output, silence would look like success.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/process.h"
#include "call/write_report.h"
#include "mpi/api.h"
#include "observe/log.h"
#include "options/config.h"

namespace slimpi::call {

namespace {

double processor_seconds(int whose) {
  rusage usage{};
  getrusage(whose, &usage);
  return double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// Returns whether the process that slimpi-run became does the work itself. A shell or a launcher
// leaves it to its children, which may well have MPI.
bool is_the_program() {
  return environment_variable("SLIMPIRUN_PID") == std::to_string(getpid()) &&
         processor_seconds(RUSAGE_SELF) >= processor_seconds(RUSAGE_CHILDREN);
}

std::string why() {
  mpi::Api api{};
  std::string version;
  const std::string stand_in = environment_variable("SLIMPIRUN_STAND_IN");
  switch (mpi::find(api, version)) {
    case mpi::Found::no_mpi: {
      // An MPI that was closed before the end, or is linked statically, leaves no trace.
      std::string program = process_command();
      program.resize(std::min(program.find(' '), program.size()));
      program.erase(0, program.rfind('/') + 1);
      if (!environment_variable("SLIMPIRUN_TORCH").empty())
        return program +
               " made no sums, as a driver whose workers are the ranks; of these, rank 0 reports "
               "when "
               "it ends by exit or by os._exit(0), not when a signal kills it";
      return "no MPI library is in " + program +
             " at its end, and slimpi sees only the sums of one that it finds there" +
             (program.starts_with("python")
                  ? "; slimpi-run --torch makes MPI sum the gradients of PyTorch's "
                    "DistributedDataParallel"
                  : ": give the program a shared MPI that stays loaded");
    }
    case mpi::Found::yes:
      if (stand_in.empty())
        return "the program has MPI, but called no MPI_Allreduce that slimpi sees; one that loads "
               "MPI by dlopen needs slimpi-run --stand-in";
      if (!mpi::has_loaded_from(stand_in))
        return "the program loads its MPI by a path, which slimpi-run --stand-in cannot replace; "
               "let it load MPI by name, such as libmpi.so";
      return "the program has MPI, but called no MPI_Allreduce";
    default:
      return "the program runs " + version + ", which this slimpi leaves alone";
  }
}

}  // namespace

void report_no_sums() {
  if (!is_the_program() || !is_first_process()) return;
  const Config config = load_config(slimpi_environment()).config;
  if (!config.report && !config.estimate && !config.trace && config.log < LogLevel::info) return;
  set_log(config.log, -1);
  log_warn("nothing to report: " + why());
}

}  // namespace slimpi::call
