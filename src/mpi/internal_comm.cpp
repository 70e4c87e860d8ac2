// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/internal_comm.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/fiber.h"

namespace slimpi::mpi {

namespace {

std::atomic<int> g_served{0}, g_lost{0};
std::atomic<int> g_highest_number{0};  // of this process's communicators and channels so far

// See make_hidden_world(); valid until MPI ends.
std::atomic<mpi::Comm> g_hidden_world{};
std::atomic<bool> g_has_hidden_world{false};

// Communicators that make_hidden_world() makes for MPI_COMM_WORLD in advance: its internal
// communicator, and a copy of that for the report. The first sum over MPI_COMM_WORLD then makes
// none. A program may make communicators while that sum is in flight, and Open MPI hangs if two
// threads of each rank make communicators at the same time, in an order that differs between the
// ranks.
struct Reserved {
  std::atomic<mpi::Comm> comm{};
  std::atomic<bool> has{false};

  bool make(const Api& api, mpi::Group group) {
    mpi::Comm made = mpi::abi.comm_null;  // inherits the error handler of g_hidden_world
    has = api.Comm_create(g_hidden_world, group, &made) == mpi::kSuccess;
    comm = made;
    return has;
  }
  bool take(mpi::Comm* made) {
    if (!has.exchange(false)) return false;
    *made = comm;
    return true;
  }
};
Reserved g_internal, g_copy;

// How many context ids (MPI's numbers of communicators) must be free on a rank before slimpi makes
// an internal communicator. Checked only in programs with threads; see make_internal() below.
constexpr int kEnoughRoom = 16;

// The largest tag that slimpi passes to MPI_Comm_create_group. It may equal the tag of a message of
// the program, because MPI keeps the two kinds of tags apart.
constexpr int kGroupTag = 31739;

bool is_threaded(const Api& api) {
  int level = mpi::abi.thread_multiple;
  return api.Query_thread(&level) != mpi::kSuccess || level == mpi::abi.thread_multiple;
}

// Makes a communicator of this rank alone, with MPI_ERRORS_RETURN. Only MPI_Comm_create_from_group
// (MPI 4.0) takes the error handler as an argument; without that function, returns MPI_COMM_NULL.
mpi::Comm make_own(const Api& api, mpi::Group group) {
  using Create = int(mpi::Group, const char*, mpi::Info, mpi::Errhandler, mpi::Comm*);
  static auto* const create =
      reinterpret_cast<Create*>(next_definition("PMPI_Comm_create_from_group"));
  int rank = 0;
  mpi::Group own = mpi::abi.group_null;
  mpi::Comm made = mpi::abi.comm_null;
  if (create == nullptr || api.Group_rank(group, &rank) != mpi::kSuccess ||
      api.Group_incl(group, 1, &rank, &own) != mpi::kSuccess)
    return mpi::abi.comm_null;
  // MPICH 4.0 may return success without a communicator.
  if (create(own, "slimpi", mpi::abi.info_null, mpi::abi.errors_return, &made) != mpi::kSuccess)
    made = mpi::abi.comm_null;
  api.Group_free(&own);
  return made;
}

// Finds out whether MPI can make `wanted` more communicators in this process, by making and freeing
// them. Returns true if there is no way to find out. Does not communicate, and runs no error
// handler of the program. Under Open MPI, making communicators would wait for slimpi's threads in
// MPI_Comm_create_group. So this function makes none there, and returns false if one of these
// threads was abandoned.
bool has_room(const Api& api, mpi::Group group, std::size_t wanted) {
  if (mpi::abi.create_group_is_seen) return g_abandoned == 0;
  std::vector<mpi::Comm> made(wanted, mpi::abi.comm_null);
  made[0] = make_own(api, group);
  mpi::Group own = mpi::abi.group_null;
  std::size_t count = made[0] != mpi::abi.comm_null ? 1 : 0;
  if (count == 1) api.Comm_group(made[0], &own);
  while (count != 0 && count < wanted &&
         api.Comm_create(made[0], own, &made[count]) == mpi::kSuccess &&
         made[count] != mpi::abi.comm_null)
    ++count;
  if (own != mpi::abi.group_null) api.Group_free(&own);
  for (std::size_t i = 0; i < count; ++i) api.Comm_free(&made[i]);
  return count == wanted || next_definition("PMPI_Comm_create_from_group") == nullptr;
}

// One of the kMostServed communicators that slimpi may serve. Given back unless keep() was called.
class ServedPlace {
 public:
  ServedPlace() : beyond_(g_served++ >= kMostServed) {}
  ~ServedPlace() {
    if (!kept_) --g_served;
  }
  ServedPlace(const ServedPlace&) = delete;
  ServedPlace& operator=(const ServedPlace&) = delete;

  bool beyond() const { return beyond_; }  // whether all were taken
  void keep() { kept_ = true; }

 private:
  const bool beyond_;
  bool kept_ = false;
};

// Makes errors on the program's communicator return, for its lifetime. Used only in programs that
// do not call MPI from several threads at once, because there no other thread sees the changed
// handler.
class Quiet {
 public:
  Quiet(const Api& api, mpi::Comm comm, bool wanted) : api_(api), comm_(comm), wanted_(wanted) {
    if (!wanted_) return;
    api_.Comm_get_errhandler(comm_, &handler_);
    api_.Comm_set_errhandler(comm_, mpi::abi.errors_return);
  }
  ~Quiet() {
    if (!wanted_) return;
    api_.Comm_set_errhandler(comm_, handler_);
    api_.Errhandler_free(&handler_);
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  const Api& api_;
  mpi::Comm comm_;
  bool wanted_;
  mpi::Errhandler handler_ = mpi::abi.errhandler_null;
};

Status checked(const Api& api, int code) {
  if (code == mpi::kSuccess) return Status::ok;
  return fail_by(api, "making a communicator", code);
}

// Makes errors on a new communicator return, and converts MPI's code to a Status.
Status take_over(const Api& api, int code, mpi::Comm* made) {
  if (code == mpi::kSuccess) code = api.Comm_set_errhandler(*made, mpi::abi.errors_return);
  if (code == mpi::kSuccess) return Status::ok;
  *made = mpi::abi.comm_null;
  return fail(Status::mpi, "MPI did not make another communicator; it has room for about 2,000");
}

Status create(const Api& api, mpi::Comm parent, mpi::Group group, mpi::Comm* made) {
  int code = mpi::kSuccess;
  call_blocking([&] { code = api.Comm_create(parent, group, made); });
  return take_over(api, code, made);
}

// Runs the first or the second exchange of make_internal(), and returns its results.
Status find_maxima(const Api& api, mpi::Comm comm, const WaitFor& wait, bool limited, int* number,
                   Refusal* refusal, int* proposer) {
  const FirstExchange::Owner exchange = FirstExchange::make();
  SLIMPI_TRY(exchange->begin(api, comm, *number, *refusal));
  SLIMPI_TRY(exchange->wait(wait, limited));
  *number = exchange->number();
  *refusal = exchange->refusal();
  *proposer = exchange->proposer();
  return Status::ok;
}

// Runs the second exchange of make_internal(), where each rank learns whether a rank has given up.
// `status` is the result of the first exchange. A rank that gave up there (Status::absent) tells
// the others, without waiting for them.
Status confirm(const Api& api, mpi::Comm comm, const WaitFor& wait, Status status) {
  if (status == Status::absent) {
    (void)FirstExchange::make()->begin(api, comm, 0, Refusal::gave_up);
    return status;
  }
  if (status != Status::ok) return status;
  int none = 0;
  Refusal left = Refusal::none;
  SLIMPI_TRY(find_maxima(api, comm, wait, false, &none, &left, &none));
  return refuse(left);
}

// Returns a tag on g_hidden_world for `group`. Communicators that ranks make in different orders
// may have the same number, but then not the same proposer, because a process proposes each number
// once.
int hidden_tag(const Api& api, mpi::Group group, int number, int proposer) {
  mpi::Group all = mpi::abi.group_null;
  int place = 0, processes = 1;
  api.Comm_size(g_hidden_world, &processes);
  api.Comm_group(g_hidden_world, &all);
  api.Group_translate_ranks(group, 1, &proposer, all, &place);
  api.Group_free(&all);
  return int((std::int64_t(number) * processes + place) % kGroupTag);
}

// Calls MPI_Comm_create_group in a thread, from a fiber. The thread may never return, so its
// arguments are in memory that is never freed.
Status create_group(const Api& api, mpi::Comm parent, mpi::Group group, int tag,
                    const WaitFor& wait, mpi::Comm* made) {
  struct Creation {
    mpi::Comm made = mpi::abi.comm_null;
    int code = mpi::kSuccess;
  };
  const auto creation = std::make_shared<Creation>();
  SLIMPI_TRY(wait_for_blocking(
      [&api, parent, group, tag, creation] {
        creation->code = api.Comm_create_group(parent, group, tag, &creation->made);
      },
      [&](const std::atomic<bool>& ended) {
        return wait(
            [&](bool* done) {
              *done = ended.load(std::memory_order_acquire);
              return Status::ok;
            },
            {}, true);
      }));
  *made = creation->made;
  return take_over(api, creation->code, made);
}

}  // namespace

bool can_help(const Api& api) {
  int level = 0;
  return api.Query_thread(&level) == mpi::kSuccess && level == mpi::abi.thread_multiple &&
         !g_completions_hidden;
}

bool has_room_in_fiber(const Api& api, mpi::Comm comm) {
  if (comm == mpi::abi.comm_world && g_internal.has) return true;
  const int beyond = std::max(0, g_served - kMostServed);  // freed soon, or being made
  mpi::Group group = mpi::abi.group_null;
  if (api.Comm_group(comm, &group) != mpi::kSuccess) return true;
  const bool has = has_room(api, group, std::size_t(kEnoughRoom + beyond));
  api.Group_free(&group);
  return has;
}

int next_number() {
  return ++g_highest_number;
}

void use_number(int number) {
  for (int highest = g_highest_number; highest < number;)
    if (g_highest_number.compare_exchange_weak(highest, number)) break;
}

void make_hidden_world(const Api& api) {
  mpi::Group group = mpi::abi.group_null;
  mpi::Comm made = mpi::abi.comm_null;
  if (api.Comm_group(mpi::abi.comm_world, &group) != mpi::kSuccess) return;
  if (api.Comm_create(mpi::abi.comm_world, group, &made) == mpi::kSuccess &&
      api.Comm_set_errhandler(made, mpi::abi.errors_return) == mpi::kSuccess) {
    g_hidden_world = made;
    g_has_hidden_world = true;
    if (g_internal.make(api, group)) g_copy.make(api, group);
  }
  api.Group_free(&group);
}

// Open MPI's MPI_Comm_create_group fails if the parent communicator has lost a process, even if the
// group has lost none.
bool can_make_internal_in_fiber(const Api& api) {
  return !mpi::abi.create_group_is_seen ||
         (g_has_hidden_world && check_failed(api, g_hidden_world) == Status::ok);
}

Status refuse(Refusal why) {
  switch (why) {
    case Refusal::none:
      return Status::ok;
    case Refusal::no_more:
      return fail(Status::unsupported, "slimpi serves " + std::to_string(kMostServed) +
                                           " communicators at a time, and already does");
    case Refusal::no_room:
      return fail(Status::unsupported, "MPI has almost no free context ids for communicators left");
    case Refusal::single_threaded:
      return fail(Status::disagreement,
                  "some ranks have MPI_THREAD_MULTIPLE and others do not (or have SLIMPI_ESTIMATE "
                  "set), and the first float sum of a communicator is nonblocking; let all ranks "
                  "call MPI_Init_thread with the same level, or set SLIMPI_ALGORITHM=off");
    case Refusal::other_types:
      return fail(Status::disagreement,
                  "SLIMPI_TYPES differs between the ranks of a communicator (or some have "
                  "SLIMPI_ESTIMATE set): some sum a type that others leave to MPI; start all ranks "
                  "with the same value");
    case Refusal::gave_up:
      return fail(
          Status::absent,
          "some rank has waited for SLIMPI_TIMEOUT in the first float sum of a communicator "
          "and has left it");
  }
  return fail(Status::disagreement,
              "the ranks of a communicator are in different calls: all ranks must make the same "
              "collective calls in the same order");
}

// Makes the communicator. If MPI has no free context id, it calls the program's error handler,
// which slimpi must not replace in a program with threads, because another thread could see the
// change. So each rank first checks that MPI has kEnoughRoom free ids, which costs time. If the
// ranks nevertheless have no free id in common, the program's error handler runs.
Status make_internal(const Api& api, mpi::Comm user, const WaitFor& wait, bool in_fiber,
                     mpi::Comm* made, int* number, Refusal* refusal) {
  *made = mpi::abi.comm_null;
  mpi::Group group = mpi::abi.group_null;
  SLIMPI_TRY(checked(api, api.Comm_group(user, &group)));
  const bool threaded = in_fiber || is_threaded(api);
  *refusal = Refusal::none;
  if (!in_fiber && threaded && !has_room(api, group, kEnoughRoom)) *refusal = Refusal::no_room;
  ServedPlace place;
  if (place.beyond()) *refusal = Refusal::no_more;
  *number = next_number();
  int proposer = 0;
  Status status = find_maxima(api, user, wait, true, number, refusal, &proposer);
  use_number(*number);
  // If the refusal is single_threaded or larger, the ranks that refused are in MPI's own sum, and
  // make no second exchange.
  if (!in_fiber && *refusal < Refusal::single_threaded) status = confirm(api, user, wait, status);
  if (status == Status::ok && !(in_fiber && *refusal == Refusal::no_more))
    status = refuse(*refusal);
  const bool in_group = status == Status::ok && in_fiber;
  const bool exists = in_group && user == mpi::abi.comm_world && g_internal.take(made);
  if (in_group && !exists) {
    // MPI_Comm_create_group is the only function that makes a communicator and may run while the
    // program is in collectives on `user`.
    const bool seen = mpi::abi.create_group_is_seen;
    const mpi::Comm parent = seen ? g_hidden_world.load() : user;
    const int tag = seen ? hidden_tag(api, group, *number, proposer) : kGroupTag;
    status = create_group(api, parent, group, tag, wait, made);
    if (status == Status::absent) group = mpi::abi.group_null;  // the abandoned thread uses it
  } else if (status == Status::ok && !exists) {
    // If no context id is free on all ranks, create() fails on all ranks.
    const Quiet quiet(api, user, !threaded);
    status = create(api, user, group, made);
  }
  if (group != mpi::abi.group_null) api.Group_free(&group);
  if (status == Status::ok) place.keep();
  return status;
}

// Calls MPI_Comm_create_group and not MPI_Comm_create, because other threads, or sums in flight,
// may make a communicator from `internal` at the same time.
Status copy_internal(const Api& api, mpi::Comm internal, int tag, mpi::Comm* made) {
  *made = mpi::abi.comm_null;
  if (internal == g_internal.comm && tag == 0 && g_copy.take(made)) return Status::ok;
  mpi::Group group = mpi::abi.group_null;
  SLIMPI_TRY(checked(api, api.Comm_group(internal, &group)));
  int code = mpi::kSuccess;
  call_blocking([&] { code = api.Comm_create_group(internal, group, kGroupTag - tag, made); });
  api.Group_free(&group);
  return take_over(api, code, made);
}

void free_internal(const Api& api, mpi::Comm* comm) {
  if (*comm == g_internal.comm) g_internal.comm = mpi::Comm{};  // MPI may reuse the handle
  if (api.Comm_free(comm) == mpi::kSuccess) --g_served;
}

void lose_internal() {
  if (g_lost++ < kMostLost) --g_served;
}

void forget_internal() {
  g_served = 0;
  g_lost = 0;
}

}  // namespace slimpi::mpi
