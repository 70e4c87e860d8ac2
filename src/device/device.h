// SPDX-License-Identifier: BSD-3-Clause
// A kind of memory that float buffers can lie in, and what can be done with it. Host memory is one
// row among others, so nothing above this layer asks "is it a GPU?".
//
// Work is queued on a Stream and runs in its order; the host row does it at once. Copies and
// kernels of different streams may overlap. Functions may be called from any thread; a stream by
// one at a time.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "kernels/kernels.h"

namespace slimpi::device {

struct Stream;  // made and understood by its own row; null is a valid stream of the host row

enum class Place { device, staging };

// Memory that allocate(Place::device) gave, for the other processes of this machine to work in.
struct Ipc {
  // What they need to open it; plain bytes.
  struct Handle {
    std::byte bytes[192];
  };
  Status (*offer)(const void* memory, Handle* handle);
  // Opens another process's memory for work near `like`. To be closed before its owner releases it.
  Status (*open)(const void* like, const Handle& handle, void** memory);
  void (*close)(void* memory);
};

// This process's end of a link between the GPUs of a node's processes, each of which has one of its
// own; made and understood by its own row.
struct NcclCommunicator;

// Sends and receives over links, by a library of the GPUs' vendor. All but close() return at once.
struct NcclTransport {
  const char* library;  // "NCCL"

  // Whether this process can join for work near `like`; if not, the status says why.
  Status (*usable)(const void* like);

  // What the processes need to find each other; plain bytes, made by one of them.
  struct UniqueId {
    std::byte bytes[128];
  };
  Status (*make_unique_id)(const void* like, UniqueId* barrier);

  // Begins to join the others, as `rank` of `size`.
  Status (*create_communicator)(const void* like, const UniqueId& barrier, int rank, int size,
                                NcclCommunicator** communicator);

  // A range of memory for a peer, or from it: one of the two pointers is null.
  struct Transfer {
    int peer;
    const void* out;
    void* in;
    std::size_t bytes;
  };
  // Queues pieces that travel together. Between two processes they come in the order in which both
  // name them. The link must be settled.
  Status (*exchange)(NcclCommunicator* communicator, const Transfer* transfers, int count,
                     Stream* stream);

  // Whether what was begun last has come so far that the link can be used again: the others are
  // there, the pieces are on their stream, which may now be marked behind them. Also fails when
  // something goes wrong with them later.
  Status (*ready)(NcclCommunicator* communicator, bool* ready);

  // Ends it. In order: every process does so now, and nothing is under way; else what is stops.
  void (*close)(NcclCommunicator* communicator, bool in_order);
};

struct Device {
  const char* name;  // "host", "protected", "cuda"

  // True: MPI may not be given this memory unless it says that it takes it, see mpi_takes(), and
  // work on it is done behind the host's back.
  bool staged;

  // Does this row own the memory at `pointer`? Never called with null. The host row says yes to
  // all.
  bool (*owns)(const void* pointer);

  // Memory near `like` (on the same GPU), aligned to 256 bytes: of this device, or staging memory,
  // which is host memory that MPI may use and that copies quickly to and from this device (pinned
  // for a GPU). On a row that is not staged the two are the same.
  Status (*allocate)(const void* like, std::size_t bytes, Place place, void** memory);
  void (*release)(void* memory, Place place);

  // A stream for memory near `like`. open waits for nothing. Work queued on a stream that has
  // nothing left to do, as its last mark was seen to be reached, starts after what the program has
  // queued until then on its own default stream; so does the first.
  Status (*open_stream)(const void* like, Stream** stream);
  void (*close_stream)(Stream* stream);

  // Copies between this memory and itself, staging or ordinary host memory, in either direction.
  Status (*copy)(void* to, const void* from, std::size_t bytes, Stream* stream);

  // A mark behind everything queued so far; marks of a stream count up from 1.
  Status (*record)(Stream* stream, std::uint64_t* event);
  // Sets *reached to whether the stream has passed the mark. Never blocks.
  Status (*query)(Stream* stream, std::uint64_t event, bool* reached);
  // Makes work queued later on `stream` wait for `mark` of `other`.
  Status (*wait_event)(Stream* stream, Stream* other, std::uint64_t event);

  // The arithmetic for this memory. The host row's is chosen by use_cpu_path().
  const kernels::Kernels* (*kernels)();

  // Which of this row's GPUs the memory lies on. Work on memory of one is done by a stream and with
  // scratch memory near it. Null: there is only one.
  int (*ordinal)(const void* pointer) = nullptr;

  // How other processes come to this memory; null where they cannot.
  const Ipc* ipc = nullptr;

  // The PCI bus id of the GPU that the memory at `like` lies on, such as "0000:3b:00.0"; null where
  // there is none.
  Status (*bus_id)(const void* like, char* text, std::size_t bytes) = nullptr;

  // How its GPUs talk to each other; null where there is no library for it.
  const NcclTransport* nccl = nullptr;

  // As copy, for bytes that somebody reads next who shares no cache with this core, or nobody soon:
  // they go to memory at once. Null where a copy leaves nothing in this core's caches.
  decltype(copy) copy_nontemporal = nullptr;
};

// The same, and 0 where there is only one.
int ordinal_of(const Device& device, const void* pointer);

// The row for ordinary memory.
const Device& host();

// The row that owns `pointer`; host() when no other does. Costs nothing while the process has not
// loaded a GPU driver.
const Device& owner_of(const void* pointer);

// Adds a row in front of the others (tests; parts loaded on demand), once. The row must stay valid.
Status add(const Device& device);

// Is there any row but the host's? One load.
bool others();

// Whether the process's MPI says that it takes memory of GPUs; no until it is set.
void set_mpi_takes_device_memory(bool takes);

// May MPI be given memory of this row?
bool mpi_takes(const Device& device);

// All rows, for listing; the host row comes last.
int count();
const Device& at(int index);

}  // namespace slimpi::device
