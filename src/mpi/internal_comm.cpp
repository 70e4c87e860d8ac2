// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/internal_comm.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>

#include "base/exceptions.h"

namespace slimpi::mpi {

namespace {

std::atomic<int> g_served{0};
std::atomic<int> g_numbered{0};  // the highest number of a communicator so far

// Up to this many ranks, the first exchange on a communicator shows which ranks have arrived.
constexpr int kShownRanks = 64;

// How many free context ids a rank of a program with threads requires before it takes part in the
// search for a common one.
constexpr int kEnoughRoom = 16;

bool is_threaded(const Api& api) {
  int level = mpi::abi.thread_multiple;
  return api.Query_thread(&level) != mpi::kSuccess || level == mpi::abi.thread_multiple;
}

// A communicator of this rank alone with MPI_ERRORS_RETURN. Only MPI_Comm_create_from_group, of MPI
// 4.0, takes the error handler as an argument. Without that function there is no such communicator.
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

// Whether MPI can make some more communicators in this process. Local; runs no error handler of the
// program. True where it cannot be found out.
bool has_room(const Api& api, mpi::Group group) {
  mpi::Comm made[kEnoughRoom];
  std::fill_n(made, kEnoughRoom, mpi::abi.comm_null);
  const bool can_ask = next_definition("PMPI_Comm_create_from_group") != nullptr;
  made[0] = make_own(api, group);
  mpi::Group own = mpi::abi.group_null;
  int count = made[0] != mpi::abi.comm_null ? 1 : 0;
  if (count == 1) api.Comm_group(made[0], &own);
  while (count != 0 && count < kEnoughRoom &&
         api.Comm_create(made[0], own, &made[count]) == mpi::kSuccess &&
         made[count] != mpi::abi.comm_null)
    ++count;
  if (own != mpi::abi.group_null) api.Group_free(&own);
  for (int i = 0; i < count; ++i) api.Comm_free(&made[i]);
  return !can_ask || count == kEnoughRoom;
}

// While this object lives, errors on the program's communicator return. Only for programs that do
// not call MPI from several threads at once: there no other thread can see the changed handler.
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

Status failed(const Api& api, int code) {
  return fail(Status::mpi, "making a communicator: " + error_text(api, code));
}

Status create(const Api& api, mpi::Comm parent, mpi::Group group, mpi::Comm* made) {
  int code = api.Comm_create(parent, group, made);
  if (code == mpi::kSuccess) code = api.Comm_set_errhandler(*made, mpi::abi.errors_return);
  if (code == mpi::kSuccess) return Status::ok;
  *made = mpi::abi.comm_null;
  return fail(Status::mpi, "MPI did not make another communicator; it has room for about 2,000");
}

// Why a rank cannot serve one more communicator. The maximum over all ranks counts.
enum Refusal : int { none, no_more, no_room, declined };

// unsupported: nothing is wrong, and the program's calls go to MPI without a warning.
Status refuse(int why) {
  if (why == declined) return fail(Status::no_memory, "some rank has no host memory");
  return fail(Status::unsupported,
              why == no_more ? "slimpi serves " + std::to_string(kMostServed) +
                                   " communicators at a time, and already does"
                             : "MPI has almost no free context ids for communicators left");
}

// The maxima over all ranks of two words, both at least 0 and less than 2^24 and 2^4. On few ranks
// every rank sends its words to every other, so that arrivals are seen one by one. Allocates
// nothing.
Status find_maxima(const Api& api, mpi::Comm comm, const WaitFor& wait, int* number, int* refusal) {
  int size = 0;
  api.Comm_size(comm, &size);
  mpi::Request request = mpi::abi.request_null;
  if (size > kShownRanks) {
    int words[] = {*number, *refusal};
    const int code = api.Iallreduce(mpi::abi.in_place, words, 2, mpi::abi.type_int, mpi::abi.op_max,
                                    comm, &request);
    if (code != mpi::kSuccess) return failed(api, code);
    SLIMPI_TRY(wait(request, {}));
    *number = words[0];
    *refusal = words[1];
    return Status::ok;
  }
  const int own = *number << 4 | *refusal;
  int words[kShownRanks], ones[kShownRanks], zeros[kShownRanks] = {}, places[kShownRanks];
  std::fill_n(words, kShownRanks, -1);
  std::fill_n(ones, kShownRanks, 1);
  // No message to itself: without memory for that, a rank would wait for itself.
  int rank = 0;
  api.Comm_rank(comm, &rank);
  words[rank] = own;
  ones[rank] = 0;
  std::iota(places, places + kShownRanks, 0);
  const int code = api.Ialltoallv(&own, ones, zeros, mpi::abi.type_int, words, ones, places,
                                  mpi::abi.type_int, comm, &request);
  if (code != mpi::kSuccess) return failed(api, code);
  const std::span<const int> of_ranks(words, std::size_t(size));
  SLIMPI_TRY(wait(request, of_ranks));
  for (const int word : of_ranks) {
    *number = std::max(*number, word >> 4);
    *refusal = std::max(*refusal, word & 15);
  }
  return Status::ok;
}

}  // namespace

// In a program with threads another thread could see a changed error handler, so there all ranks
// first check whether MPI has free context ids. This costs more. 16 free ids on every rank may
// still include no common one; the error handler then runs.
Status make_internal(const Api& api, mpi::Comm user, const WaitFor& wait, mpi::Comm* made,
                     int* number) {
  *made = mpi::abi.comm_null;
  mpi::Group group = mpi::abi.group_null;
  const int code = api.Comm_group(user, &group);
  if (code != mpi::kSuccess) return failed(api, code);
  const bool threaded = is_threaded(api);
  int refusal = none;
  // What it throws must not keep this rank from the exchange.
  bool room = true;
  if (threaded && caught([&] { room = has_room(api, group); }) != Status::ok) room = false;
  if (!room) refusal = no_room;
  if (g_served >= kMostServed) refusal = no_more;
  *number = ++g_numbered;
  Status status = find_maxima(api, user, wait, number, &refusal);
  for (int highest = g_numbered; highest < *number;)
    if (g_numbered.compare_exchange_weak(highest, *number)) break;
  if (status == Status::ok && refusal != none) status = refuse(refusal);
  if (status == Status::ok) {
    // All ranks fail together: no context id is free on all of them.
    const Quiet quiet(api, user, !threaded);
    status = create(api, user, group, made);
  }
  api.Group_free(&group);
  if (status == Status::ok) ++g_served;
  return status;
}

void decline_internal(const Api& api, mpi::Comm user, const WaitFor& wait) {
  int number = 0, refusal = declined;
  (void)find_maxima(api, user, wait, &number, &refusal);
}

Status copy_internal(const Api& api, mpi::Comm internal, mpi::Comm* made) {
  *made = mpi::abi.comm_null;
  mpi::Group group = mpi::abi.group_null;
  const int code = api.Comm_group(internal, &group);
  if (code != mpi::kSuccess) return failed(api, code);
  const Status status = create(api, internal, group, made);
  api.Group_free(&group);
  return status;
}

void free_internal(const Api& api, mpi::Comm* comm) {
  if (api.Comm_free(comm) == mpi::kSuccess) --g_served;
}

void forget_internal() {
  g_served = 0;
}

}  // namespace slimpi::mpi
