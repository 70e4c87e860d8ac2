// SPDX-License-Identifier: BSD-3-Clause
// Replaces the functions of NCCL that slimpi uses. They work on the fake driver's memory and
// streams. Processes exchange data through a file in memory, which belongs to the process that
// makes the id. As with NCCL, a queued transfer delays its stream until the other ranks do their
// part. A communicator that does not block completes everything later: it must be asked for its
// state several times before it is ready.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "tests/helper/devices/fake_driver.h"
#include "tests/helper/devices/fake_state.h"
#include "tests/helper/devices/protected_memory.h"

using namespace slimpi::test;

namespace {

enum Result {
  success = 0,
  unhandled = 1,
  system_error = 2,
  bad_argument = 4,
  bad_use = 5,
  in_progress = 7
};

constexpr int kRanks = 8, kQuestions = 3;
constexpr std::size_t kRing = 16 << 10;

// Bytes in flight from one rank to another.
struct Ring {
  std::atomic<std::uint64_t> written, read;
  std::byte bytes[kRing];
};

struct Board {
  std::atomic<int> joined, finalized;
  std::atomic<int> bus[kRanks];  // of each rank's GPU; 0 until the rank has joined
  Ring rings[kRanks][kRanks];    // from, to
};

struct Id {
  int process, file;
  char rest[120];
};

struct Config {
  std::size_t size;
  unsigned magic, version;
  int blocking;
};

struct Transfer {
  const std::byte* out;
  std::byte* in;
  std::size_t bytes, done = 0;
  Ring* ring;
};

struct Comm {
  Board* board = nullptr;
  int file = -1, rank = 0, size = 0, device = 0;
  int questions = kQuestions;  // queries before an operation that has begun is complete
  bool joined = false, finalizing = false;
  std::shared_ptr<std::atomic<bool>> aborted = std::make_shared<std::atomic<bool>>(false);
  std::vector<Transfer> transfers;  // of the group that is open or has just been closed
  CUstream stream = nullptr;
};

thread_local int t_groups = 0;
thread_local Comm* t_comm = nullptr;  // communicator of the open group
int g_communicators = 0;
unsigned long g_pieces = 0;

// Moves as many bytes as can be moved now. The order of the two counters ensures that the other
// side sees only complete bytes. Returns whether the transfer is complete.
bool advance(Transfer& transfer) {
  const std::uint64_t written = transfer.ring->written.load(std::memory_order_acquire);
  const std::uint64_t read = transfer.ring->read.load(std::memory_order_acquire);
  const std::uint64_t at = transfer.out != nullptr ? written : read;
  const std::size_t room = transfer.out != nullptr ? kRing - (written - read) : written - read;
  const std::size_t bytes = std::min({room, transfer.bytes - transfer.done, kRing - at % kRing});
  if (bytes == 0) return transfer.done == transfer.bytes;
  std::byte* const there = transfer.ring->bytes + at % kRing;
  if (transfer.out != nullptr) {
    protected_copy(there, transfer.out + transfer.done, bytes);
    transfer.ring->written.store(written + bytes, std::memory_order_release);
  } else {
    protected_copy(transfer.in + transfer.done, there, bytes);
    transfer.ring->read.store(read + bytes, std::memory_order_release);
  }
  transfer.done += bytes;
  return transfer.done == transfer.bytes;
}

// All transfers of a group advance together; only those from one rank to the same other rank keep
// their order.
bool advance(std::vector<Transfer>& transfers) {
  bool all = true;
  std::vector<std::pair<const Ring*, bool>> held;
  for (Transfer& transfer : transfers) {
    // A message from a rank to itself has two transfers on the same ring, one in each direction.
    const std::pair<const Ring*, bool> way(transfer.ring, transfer.out != nullptr);
    if (std::find(held.begin(), held.end(), way) != held.end()) continue;
    if (advance(transfer)) continue;
    held.push_back(way);
    all = false;
  }
  return all;
}

void start(Comm& comm) {
  if (comm.transfers.empty()) return;
  for (const Transfer& transfer : comm.transfers) {
    const void* const memory =
        transfer.out != nullptr ? static_cast<const void*>(transfer.out) : transfer.in;
    const Allocation* const found = find_allocation(reinterpret_cast<std::uintptr_t>(memory));
    if (found == nullptr || (found->device != comm.device && !found->managed))
      die("NCCL is given memory that is not of its GPU");
  }
  ProtectedStream::of(queue_of(comm.stream))
      .queue_until([transfers = std::move(comm.transfers), aborted = comm.aborted]() mutable {
        return aborted->load() || advance(transfers);
      });
  comm.transfers.clear();
}

Board* map(int file) {
  void* const memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Board*>(memory);
}

int add_piece(Comm* comm, Transfer transfer, int type, int peer, int from, int to,
              CUstream stream) {
  if (t_groups == 0) die("NCCL's sends and receives stand outside of a group");
  if (comm->questions > 0 || !comm->joined)
    die("a communicator of NCCL is used before it is there");
  if (type != 1 || peer < 0 || peer >= comm->size) return bad_argument;
  if (!comm->transfers.empty() && comm->stream != stream) die("a group is on two streams");
  if (current_context() == nullptr || current_context()->device != comm->device)
    die("NCCL is called in the context of another GPU");
  transfer.ring = &comm->board->rings[from][to];
  comm->transfers.push_back(transfer);
  comm->stream = stream;
  t_comm = comm;
  ++g_pieces;
  return success;
}

void drop(Comm* comm) {
  munmap(comm->board, sizeof(Board));
  close(comm->file);
  --g_communicators;
  delete comm;
}

}  // namespace

#define NCCL_ENTER(function)                     \
  const std::lock_guard lock(protected_mutex()); \
  if (const int told = int(fake_failure(#function)); told != success) return told

extern "C" {

int slimpi_fake_communicators(void) {
  return g_communicators;
}
unsigned long slimpi_fake_pieces(void) {
  return g_pieces;
}

int ncclGetVersion(int* version) {
  *version = 22809;
  return success;
}
const char* ncclGetErrorString(int result) {
  return result == system_error ? "unhandled system error" : "what the test wants to read of NCCL";
}
const char* ncclGetLastError(Comm*) {
  return "the last words of NCCL";
}

int ncclGetUniqueId(Id* id) {
  NCCL_ENTER(ncclGetUniqueId);
  const int file = memfd_create("nccl", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, sizeof(Board)) != 0) return system_error;
  *id = {getpid(), file, {}};
  return success;
}

int ncclCommInitRankConfig(Comm** made, int size, Id id, int rank, Config* config) {
  NCCL_ENTER(ncclCommInitRankConfig);
  if (config->magic != 0xcafebeef || config->version < 21400 || config->blocking != 0)
    die("a communicator of NCCL that blocks");
  if (size > kRanks || current_context() == nullptr) return bad_argument;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", id.process, id.file);
  auto* const comm = new Comm;
  // The communicator keeps the file of the id open. Only the process that made the id has its
  // descriptor; the others open it by its path.
  comm->file = id.process == getpid() ? id.file : open(path, O_RDWR | O_CLOEXEC);
  comm->board = comm->file < 0 ? nullptr : map(comm->file);
  if (comm->board == nullptr) {
    delete comm;
    return system_error;
  }
  comm->rank = rank;
  comm->size = size;
  comm->device = current_context()->device;
  // NCCL compares the hosts, by the names in this variable, and the PCI buses.
  const char* const host = std::getenv("NCCL_HOSTID");
  comm->board->bus[rank].store(fake_bus(comm->device) +
                               (host != nullptr ? 1000 * std::atoi(host) : 0));
  ++comm->board->joined;
  ++g_communicators;
  *made = comm;
  return in_progress;
}

int ncclCommGetAsyncError(Comm* comm, int* state) {
  NCCL_ENTER(ncclCommGetAsyncError);
  if (const int told = int(fake_failure("nccl")); told != success) {
    *state = told;
    return success;
  }
  *state = in_progress;
  if (comm->questions > 0) --comm->questions;
  if (comm->questions > 0) return success;
  if (!comm->joined) {
    for (int other = 0; other < comm->size; ++other)
      if (other != comm->rank && comm->board->bus[other] == comm->board->bus[comm->rank])
        *state = bad_use;  // two ranks on one GPU
    if (*state == bad_use || comm->board->joined < comm->size) return success;
    comm->joined = true;
  }
  if (comm->finalizing && comm->board->finalized < comm->size) return success;
  start(*comm);
  *state = success;
  return success;
}

int ncclGroupStart(void) {
  NCCL_ENTER(ncclGroupStart);
  ++t_groups;
  return success;
}
int ncclGroupEnd(void) {
  const std::lock_guard lock(protected_mutex());
  if (t_groups-- == 0) die("a group of NCCL ends that has not begun");
  if (const int told = int(fake_failure("ncclGroupEnd")); told != success) return told;
  if (t_comm == nullptr) return success;
  t_comm->questions = kQuestions;
  t_comm = nullptr;
  return in_progress;
}
int ncclSend(const std::byte* from, size_t count, int type, int peer, Comm* comm, CUstream stream) {
  NCCL_ENTER(ncclSend);
  return add_piece(comm, {from, nullptr, count, 0, nullptr}, type, peer, comm->rank, peer, stream);
}
int ncclRecv(std::byte* to, size_t count, int type, int peer, Comm* comm, CUstream stream) {
  NCCL_ENTER(ncclRecv);
  return add_piece(comm, {nullptr, to, count, 0, nullptr}, type, peer, peer, comm->rank, stream);
}

int ncclCommFinalize(Comm* comm) {
  NCCL_ENTER(ncclCommFinalize);
  comm->finalizing = true;
  comm->questions = kQuestions;
  ++comm->board->finalized;
  return in_progress;
}
int ncclCommDestroy(Comm* comm) {
  NCCL_ENTER(ncclCommDestroy);
  if (!comm->finalizing || comm->board->finalized < comm->size)
    die("a communicator of NCCL is destroyed that others still use");
  drop(comm);
  return success;
}
int ncclCommAbort(Comm* comm) {
  const std::lock_guard lock(protected_mutex());
  comm->aborted->store(true);
  drop(comm);
  return success;
}

}  // extern "C"
