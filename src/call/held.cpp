// SPDX-License-Identifier: BSD-3-Clause
#include "call/held.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <new>
#include <utility>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "call/entry.h"
#include "call/queue.h"
#include "call/runtime.h"

namespace slimpi::call {

namespace {

thread_local int t_completing = 0;  // number of Completing objects of this thread

bool has_statuses(const Completing::Completed& completed) {
  return completed.several && completed.statuses != nullptr &&
         completed.statuses != mpi::abi.status_ignore;
}

int raise_failure(const Held& held, const Failure& failure) {
  const mpi::Comm comm = held.comm_for_errors();
  if (failure.status == Status::ok)
    return programs_code([&, code = failure.code] {
      held.runtime.api.Comm_call_errhandler(comm, code);
      return code;
    });
  return held.runtime.errors.raise(comm, fail(failure.status, failure.text), failure.logging);
}

// Sets the error fields of the statuses to MPI_SUCCESS, because MPI leaves them unset if it returns
// no error.
void clear_errors(const Completing::Completed& completed) {
  for (int i = 0; i < completed.count; ++i) mpi::set_error(completed.statuses, i, mpi::kSuccess);
}

// Reads the handle only if some request is held, because the size of a handle is unknown under an
// MPI of unknown ABI.
std::shared_ptr<Held> held_at(const void* address) {
  HeldRequests& requests = HeldRequests::instance();
  return requests.empty() ? nullptr : requests.find(mpi::read<mpi::Request>(address));
}

// The start of one of the program's requests, which MPI may refuse. Unless accept() was called, the
// destructor takes the start back. `place` is the address of the request's handle.
class Start {
 public:
  explicit Start(void* its_place) : place(its_place), held_(held_at(its_place)) {}
  ~Start() {
    if (begins_) held_->taken_back();
  }
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;

  // Does everything that may fail, before MPI starts the request. Returns the code for the program.
  int prepare() { return held_ == nullptr ? mpi::kSuccess : held_->before_start(&begins_); }
  // Called once MPI has started the request.
  void accept() {
    if (std::exchange(begins_, false)) held_->started();
  }
  // Returns whether prepare() has found work for slimpi in this start.
  bool is_own() const { return begins_; }

  void* const place;

 private:
  const std::shared_ptr<Held> held_;
  bool begins_ = false;
};

// Starts all requests that slimpi has no work for, in one call of MPI. Copies their handles back,
// because MPI may change them.
int start_others(const std::deque<Start>& starts, std::ptrdiff_t own,
                 const std::function<int(int, void*)>& next) {
  const int count = int(std::ptrdiff_t(starts.size()) - own);
  if (count == 0) return mpi::kSuccess;
  std::vector<std::byte> others(mpi::handle_bytes() * std::size_t(count));
  const auto copy = [&](const auto& act) {
    int index = 0;
    for (const Start& start : starts)
      if (!start.is_own()) act(start.place, mpi::place_at(others.data(), index++));
  };
  copy([](const void* place, void* other) { std::memcpy(other, place, mpi::handle_bytes()); });
  const int code = programs_code([&] { return next(count, others.data()); });
  copy([](void* place, const void* other) { std::memcpy(place, other, mpi::handle_bytes()); });
  return code;
}

}  // namespace

Held::~Held() {
  set_in_flight(false);
}

mpi::Comm Held::comm_for_errors() const {
  if (of_comm == 0) return comm;
  mpi::Comm found = mpi::abi.comm_world;
  runtime.communicators.use(comm, of_comm, [&](const comm::Communicator&) { found = comm; });
  return found;
}

void Held::set_in_flight(bool in_flight) {
  if (in_flight_.exchange(in_flight) != in_flight) count_fibers(in_flight ? 1 : -1, &enter_fibers);
}

HeldRequests& HeldRequests::instance() {
  static auto* const table = new HeldRequests;
  return *table;
}

void HeldRequests::add(Entry& entry) noexcept {
  Bucket& bucket = bucket_of(entry.front()->handle);
  const std::lock_guard lock(mutex_);
  bucket.list.splice(bucket.list.begin(), entry);
  ++bucket.count;
  ++total_;
}

// The newest request comes first in its bucket.
std::shared_ptr<Held> HeldRequests::find(mpi::Request handle) {
  Bucket& bucket = bucket_of(handle);
  if (bucket.count.load(std::memory_order_acquire) == 0 || handle == mpi::abi.request_null)
    return nullptr;
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Held>& one : bucket.list)
    if (one->handle == handle) return one;
  return nullptr;
}

HeldRequests::Entry HeldRequests::take(const Held& held) noexcept {
  Entry taken;
  Bucket& bucket = bucket_of(held.handle);
  const std::lock_guard lock(mutex_);
  for (auto one = bucket.list.begin(); one != bucket.list.end(); ++one) {
    if (one->get() != &held) continue;
    taken.splice(taken.end(), bucket.list, one);
    --bucket.count;
    --total_;
    break;
  }
  return taken;
}

// When MPI_Startall fails, nothing tells which requests MPI has started, because a request that is
// complete at once looks like an inactive one. So MPI first starts the requests that slimpi has no
// work for, in one call. A request that MPI refuses is among these, so slimpi's own requests can
// follow one by one.
int start_requests(int count, void* handles, const std::function<int(int, void*)>& next) {
  const auto start_all = [&] { return programs_code([&] { return next(count, handles); }); };
  int first = 0;
  while (first < count && held_at(mpi::place_at(handles, first)) == nullptr) ++first;
  if (first >= count) [[likely]]
    return start_all();
  std::deque<Start> starts;
  for (int i = 0; i < count; ++i)
    if (const int code = starts.emplace_back(mpi::place_at(handles, i)).prepare();
        code != mpi::kSuccess)
      return code;
  const auto own = std::count_if(starts.begin(), starts.end(), std::mem_fn(&Start::is_own));
  if (own == 0) return start_all();
  if (const int code = start_others(starts, own, next); code != mpi::kSuccess) return code;
  for (Start& start : starts) {
    if (!start.is_own()) continue;
    const int code = programs_code([&] { return next(1, start.place); });
    if (code != mpi::kSuccess) return code;
    start.accept();
  }
  return mpi::kSuccess;
}

int refuse_to_cancel(const void* address) {
  const auto held = held_at(address);
  if (held == nullptr || !held->is_sum()) return mpi::kSuccess;
  return held->runtime.errors.raise(
      held->comm_for_errors(), fail(Status::unsupported, "MPI_Cancel: a sum cannot be cancelled"));
}

// Removes the request from the table before MPI frees it, because MPI may give the handle to
// another request at once. Puts it back if MPI fails, or if MPI still uses its buffers (freed()).
int free_request(void* address, const std::function<int(void*)>& next) {
  const auto held = held_at(address);
  if (held == nullptr) return next(address);
  held->before_free();
  struct Taken {
    ~Taken() {
      if (!entry.empty()) HeldRequests::instance().add(entry);
    }
    HeldRequests::Entry entry;
  } taken{HeldRequests::instance().take(*held)};
  const int code = next(address);
  if (code == mpi::kSuccess && held->freed()) taken.entry.clear();
  return code;
}

void end_starts() {
  for (const auto& held : HeldRequests::instance().find_all([](const Held&) { return true; }))
    held->end_starts();
}

void abandon_requests(bool mpi_has_ended) {
  const auto ends = [&](const Held& one) {
    return mpi_has_ended || (one.persistent && one.is_sum());
  };
  for (const auto& held : HeldRequests::instance().find_all(ends)) {
    if (mpi_has_ended) (void)HeldRequests::instance().take(*held);
    held->abandon();
  }
}

bool is_completing() {
  return t_completing != 0;
}

Completing::Completing(int count, const void* handles) : array_(handles) {
  noted_.reserve(std::size_t(count));
  for (int i = 0; i < count; ++i) {
    const auto handle = mpi::read_at<mpi::Request>(handles, i);
    Noted& noted = noted_.emplace_back(Noted{handle, HeldRequests::instance().find(handle)});
    // A nonblocking call on copies leaves the table now, before MPI may free its request and give
    // the handle to another thread. The destructor puts it back if it is not complete.
    if (noted.held != nullptr && !noted.held->persistent && !noted.held->is_sum())
      noted.taken = HeldRequests::instance().take(*noted.held);
  }
  ++t_completing;  // last: after an exception, no destructor would undo it
}

Completing::~Completing() {
  end();
}

// Gives back to the table what MPI has not completed.
void Completing::end() {
  if (std::exchange(ended_, true)) return;
  for (Noted& noted : noted_)
    if (!noted.taken.empty()) HeldRequests::instance().add(noted.taken);
  --t_completing;
}

bool Completing::has_sums() const {
  return std::any_of(noted_.begin(), noted_.end(), [](const Noted& noted) {
    return noted.held != nullptr && noted.held->runs();
  });
}

// Returns what the constructor noted of completed request number i, or null if it noted nothing.
Completing::Noted* Completing::find(const Completed& completed, int i) {
  const int index = completed.indices == nullptr ? i : completed.indices[i] - completed.base;
  return index >= 0 && std::size_t(index) < noted_.size() ? &noted_[std::size_t(index)] : nullptr;
}

// Called when MPI has returned an error, perhaps for another request, and has not freed this
// request. Returns whether this is a persistent request that is complete. MPICH 5 may also keep a
// complete nonblocking sum; if slimpi knows that this sum has failed, its status must not say
// success.
bool Completing::completed_beside_error(const Noted& noted, int code,
                                        const Completed& completed) const {
  const bool failed = noted.held->failed();
  if (noted.held->is_sum() && !failed) return false;
  const int index = int(&noted - noted_.data());
  const bool success = code == mpi::abi.err_in_status && has_statuses(completed) &&
                       mpi::error_of(completed.statuses, index) == mpi::kSuccess;
  if (!noted.held->persistent) {
    if (success && failed) mpi::set_error(completed.statuses, index, mpi::abi.err_pending);
    return false;
  }
  int done = success ? 1 : 0;
  if (!success)
    noted.held->runtime.api.Request_get_status(noted.handle, &done, mpi::abi.status_ignore);
  return done != 0;
}

// Finishes the completed requests and notes their failures. raise() raises the errors afterwards,
// so that all these requests are finished before an error handler runs. `code` is the code that MPI
// returned.
void Completing::finish_completed(int code, const Completed& completed, bool ends) {
  for (int i = 0; i < completed.count; ++i) {
    Noted* const noted = find(completed, i);
    if (noted == nullptr || noted->held == nullptr) continue;
    // After an error, MPI may have completed only some of the requests.
    const bool kept = ends && code != mpi::kSuccess && completed.indices == nullptr &&
                      mpi::read_at<mpi::Request>(array_, i) == noted->handle;
    if (kept && !completed_beside_error(*noted, code, completed)) continue;
    noted->fails = noted->held->completed(ends);
    if (noted->fails) noted->failure.reset(new (std::nothrow) Failure(noted->held->failure));
    if (ends) noted->taken.clear();
  }
}

int Completing::raise(int code, const Completed& completed, bool ends) {
  finish_completed(code, completed, ends);
  if (std::none_of(noted_.begin(), noted_.end(), std::mem_fn(&Noted::fails))) return code;
  end();  // an error handler may leave this function by longjmp
  const bool statuses = has_statuses(completed);
  if (statuses && code == mpi::kSuccess) clear_errors(completed);
  for (int i = 0; i < completed.count; ++i) {
    Noted* const noted = find(completed, i);
    if (noted == nullptr || !std::exchange(noted->fails, false)) continue;
    const Held& held = *noted->held;
    const int raised = raise_failure(held, noted->failure ? *noted->failure : held.failure);
    if (statuses) mpi::set_error(completed.statuses, i, raised);
    if (code == mpi::kSuccess) code = completed.several ? mpi::abi.err_in_status : raised;
  }
  return code;
}

}  // namespace slimpi::call
