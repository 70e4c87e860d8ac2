// SPDX-License-Identifier: BSD-3-Clause
#include "call/runtime.h"

#include <unistd.h>

#include "algorithm/policy.h"
#include "base/exceptions.h"
#include "base/float_environment.h"
#include "base/process.h"
#include "call/element_type.h"
#include "call/entry.h"
#include "call/estimate.h"
#include "call/held.h"
#include "call/hidden_functions.h"
#include "call/queue.h"
#include "device/device.h"
#include "device/plugins.h"
#include "mpi/internal_comm.h"
#include "observe/activity.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

std::atomic<bool> g_inert{false};  // this MPI is not supported, and slimpi said so

// Ends slimpi in processes that never call MPI_Finalize, such as those with sessions. An exit
// handler would run before exit handlers and static destructors that the program registered before
// its first sum and that may still call MPI_Finalize. This destructor of the library runs after
// them.
[[gnu::destructor]] void unload() {
  if (Runtime* const runtime = Runtime::started(); runtime != nullptr)
    runtime->leave();
  else if (!g_inert)
    (void)caught(report_no_sums);
}

// Makes the paths of files that are written at the end of the job absolute, because the process may
// have changed directory by then. In the path of the trace, percent signs of the directory are
// doubled, because that path has placeholders such as %r.
void keep_directory(Config& config) {
  for (std::optional<std::string>* const path : {&config.report, &config.estimate})
    if (*path && !is_stream(**path)) *path = path_from_start(**path);
  if (!config.trace) return;
  const std::string path = path_from_start(*config.trace);
  std::string directory = path.substr(0, path.size() - config.trace->size());
  for (std::size_t at = 0; (at = directory.find('%', at)) != directory.npos; at += 2)
    directory.insert(at, 1, '%');
  *config.trace = directory + *config.trace;
}

// Ends the job because slimpi cannot start on this rank. There is no communicator yet to tell the
// other ranks, which would wait for this one in a sum.
void cannot_start(std::optional<mpi::Comm> comm) {
  using Initialized = int(int*);
  using Abort = int(mpi::Comm, int);
  auto* const initialized =
      reinterpret_cast<Initialized*>(mpi::next_definition("PMPI_Initialized"));
  auto* const abort = reinterpret_cast<Abort*>(mpi::next_definition("PMPI_Abort"));
  int world = 0;
  if (initialized != nullptr) initialized(&world);
  log_error("slimpi cannot start: no host memory");
  if (world != 0) comm = mpi::abi.comm_world;
  if (abort == nullptr || !comm || *comm == mpi::abi.comm_null) return;
  usleep(kTimeToForward);
  abort(*comm, 2);
  _exit(2);
}

}  // namespace

bool Runtime::finds_mpi() {
  if (started() != nullptr) return true;
  mpi::Api found{};
  std::string version;
  return mpi::find(found, version) == mpi::Found::yes;
}

// Starts the runtime if that is possible now. Before MPI_Init, or without an MPI, the next call
// tries again; under an unknown ABI no later call does.
Runtime* Runtime::begin(std::optional<mpi::Comm> comm) {
  static std::mutex mutex;
  if (g_inert.load(std::memory_order_relaxed)) return nullptr;
  const OwnFloats environment;
  const std::lock_guard lock(mutex);
  if (started() != nullptr || g_inert) return started();
  mpi::Api api{};
  std::unique_ptr<Runtime> runtime;
  bool later = false;
  const Status status = caught([&] {
    std::string version;
    const mpi::Found found = mpi::find(api, version);
    later = found == mpi::Found::no_mpi || (found == mpi::Found::yes && !mpi_runs(api, comm));
    if (later) return Status::ok;
    runtime = std::make_unique<Runtime>();
    runtime->api = api;
    runtime->mpi_version = version;
    return runtime->configure(found);
  });
  if (later) return nullptr;
  if (status == Status::unsupported) {
    g_inert = true;
    return nullptr;
  }
  if (status != Status::ok) {
    cannot_start(comm);
    return nullptr;
  }
  // The object is never destroyed, because other threads and exit handlers may still call MPI after
  // static destruction.
  started_.store(runtime.get(), std::memory_order_release);
  return runtime.release();
}

// Returns whether MPI can be called now. In a program that has only sessions MPI_Initialized says
// no, but a communicator other than MPI_COMM_WORLD and MPI_COMM_SELF proves that a session is open.
bool Runtime::mpi_runs(const mpi::Api& api, std::optional<mpi::Comm> comm) {
  if (mpi::has_world(api)) return true;
  return comm && *comm != mpi::abi.comm_null && *comm != mpi::abi.comm_world &&
         *comm != mpi::abi.comm_self;
}

// Reads the options. Returns Status::unsupported if slimpi stays out of this process.
Status Runtime::configure(mpi::Found found) {
  Loaded loaded = load_config(slimpi_environment());
  set_log(loaded.config.log, -1);
  if (found == mpi::Found::yes) {
    start(std::move(loaded));
    return Status::ok;
  }
  if (is_first_process())
    log_warn("this process " +
             (found == mpi::Found::unclear
                  ? "has " + mpi_version + "; slimpi"
                  : "runs " + mpi_version + ", which slimpi does not know; it") +
             " leaves this process alone");
  return Status::unsupported;
}

void Runtime::start(Loaded loaded) {
  config = std::move(loaded.config);
  gathers = config.calls.has(Collective::allgather);
  option_error = loaded.error;
  keep_directory(config);
  if (option_error.empty() && config.rules)
    option_error = read_rules(path_from_start(*config.rules), config.written(Option::rules), rules);
  if (option_error.empty()) option_error = algorithm::refuse(config, rules);

  find_world();
  if (has_world && is_first_process()) warn_of_launcher();
  if (has_world ? world_rank == 0 : is_first_process()) {
    for (const std::string& warning : loaded.warnings) log_warn(warning);
    if (has_world) warn_of_threads();
    warn_of_types();
    if (option_error.empty()) report.check_writability();
    // The only purpose of this job is the estimate, so it ends here if that cannot be written.
    if (option_error.empty() && config.estimate && !is_stream(*config.estimate))
      if (const std::string why = why_not_writable(*config.estimate); !why.empty())
        option_error = config.written(Option::estimate) + "=" + *config.estimate +
                       " cannot be written: " + why;
  }
  if (config.buffers == Buffers::host) device::never_use_gpus();
  if (!option_error.empty() && has_world) errors.end_job(mpi::abi.comm_world, option_error);
  if (has_world) find_hidden_functions(*this);
  if (config.trace) Trace::start();
  if (config.estimate) CallEstimate::start(api, config);
  set_stall_limit(std::chrono::seconds(config.stall));
  start_activity();
  set_activity_rank(world_rank, world_size);
  if (has_world) watch_for_the_end();
  process_ = getpid();
}

// Warns if the process was started by another MPI's launcher. Every process is then a job of its
// own, and the sums of the ranks are wrong without any error.
void Runtime::warn_of_launcher() const {
  const LaunchedRanks launched = launched_ranks(world_size);
  if (launched.ranks > world_size)
    log_warn("MPI_COMM_WORLD has " + number_of(std::uint64_t(world_size), "rank") +
             ", but the launcher started " + std::to_string(launched.ranks) + " (" +
             launched.variable + "): it is not the launcher of the program's MPI, " + mpi_version);
}

void Runtime::warn_of_types() const {
  for (int type = 0; type < kElementTypes; ++type)
    if (config.types.has(ElementType(type)) && !mpi_has(ElementType(type)))
      log_info(std::string("SLIMPI_TYPES names ") + kElementRows[type].name +
               ", which slimpi does not know of " + mpi_version + ": nothing changes");
}

// Warns if SLIMPI_PROGRESS=thread is set but MPI does not provide MPI_THREAD_MULTIPLE, either
// because another tool has hidden MPI_Init from slimpi or because this MPI does not support the
// level.
void Runtime::warn_of_threads() const {
  int level = mpi::abi.thread_multiple;
  api.Query_thread(&level);
  if (config.progress == Progress::thread && level != mpi::abi.thread_multiple)
    log_warn("SLIMPI_PROGRESS=thread needs MPI_THREAD_MULTIPLE, which " + mpi_version +
             " does not give here; nonblocking sums are left to MPI");
}

void Runtime::leave() {
  if (process_ != getpid()) return;
  (void)caught([&] { finish(false); });
}

void Runtime::set_world(int rank, int size) {
  world_rank = rank;
  world_size = size;
  set_log_rank(rank);
  set_activity_rank(rank, size);
}

void Runtime::find_world() {
  if (!mpi::has_world(api)) return;
  int rank = -1, size = 0;
  api.Comm_rank(mpi::abi.comm_world, &rank);
  api.Comm_size(mpi::abi.comm_world, &size);
  set_world(rank, size);
  has_world = true;
}

// Lets the largest communicator so far stand for MPI_COMM_WORLD, which sessions lack. Threads may
// add their communicators at the same time.
void Runtime::add_session(const comm::Communicator& communicator) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (has_world) return;
  find_world();  // MPI_Init may have been called after sessions
  if (has_world)
    watch_for_the_end();
  else if (communicator.size() > world_size)
    set_world(communicator.rank(), communicator.size());
}

// Sets an attribute of MPI_COMM_SELF whose delete callback runs at the very start of MPI_Finalize,
// while MPI still works.
void Runtime::watch_for_the_end() {
  int keyval = mpi::abi.keyval_invalid;
  if (api.Comm_create_keyval(&mpi::copy_no_attribute, &Runtime::end, &keyval, this) !=
      mpi::kSuccess)
    return;
  api.Comm_set_attr(mpi::abi.comm_self, keyval, this);
  api.Comm_free_keyval(&keyval);  // MPI keeps it as long as the attribute exists
}

int Runtime::end(mpi::Comm, int, void*, void* runtime) {
  (void)caught([&] { static_cast<Runtime*>(runtime)->finish(); });
  return mpi::kSuccess;
}

const Rules& Runtime::rules_of(comm::Communicator& communicator) const {
  const RulesOfInfo& own = communicator.attachment<RulesOfInfo>();
  return own.rules ? *own.rules : rules;
}

void Runtime::mpi_ended() {
  end_helper();
  communicators.mpi_ended();
  report.mpi_ended();
  errors.mpi_ended();
  abandon_requests(true);
  mpi::forget_internal();
}

void Runtime::finish(bool mpi_works, const std::function<std::optional<bool>()>& meet) {
  if (finished.exchange(true)) return;
  const OwnFloats environment;
  if (mpi_works) {
    wait_for_all_sums();
    end_helper();
    (void)caught([&] {
      end_starts();
      mpi_works = communicators.wait_for_finalize(meet);
    });
  }
  report.finish(mpi_works);
  communicators.abandon(mpi_works);
  abandon_requests(false);
}

}  // namespace slimpi::call
