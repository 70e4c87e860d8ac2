// SPDX-License-Identifier: BSD-3-Clause
// The device table. A row is a kind of memory in which float buffers can lie (the host's, or a CUDA
// GPU's), and the operations on it. Because host memory is a row as well, no code above this layer
// asks "is it a GPU?".
//
// Work is queued on a Stream and runs in the order of the stream; the host row does it at once.
// Copies and kernels of different streams may overlap. Any thread may call these functions, but
// only one thread at a time may use a stream.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "kernels/kernels.h"
#include "options/option_types.h"

namespace slimpi::device {

struct Stream;  // opaque, made by its row; the host row's is null
struct Device;

// A place of memory: a device, and which GPU. Work on memory needs a stream and scratch memory of
// the same location.
struct Location {
  Location();  // the host's memory
  // NOLINTNEXTLINE(google-explicit-constructor): a row with one memory is a location
  Location(const Device& row, int number = 0, void* own = nullptr)
      : device(&row), ordinal(number), context(own) {}

  const Device* device;  // the row; never null
  int ordinal;           // the number of the GPU in its row; 0 for the host
  void* context;         // meaning set by the row; null: the row finds a context by the ordinal
  // Changes when the program resets the GPU, whose streams and memory of older generations are then
  // gone.
  std::uint64_t generation = 0;

  bool operator==(const Location& other) const {
    return device == other.device && ordinal == other.ordinal && generation == other.generation;
  }
};

enum class Place { device, staging };

// This process's handle of a communicator between the GPUs of a node, one GPU per process. Opaque;
// the row makes it.
struct NcclCommunicator;

// Sends and receives between GPUs, by a library of the GPUs' vendor. Only close() waits for other
// processes.
struct NcclTransport {
  const char* library;  // "NCCL"

  // Returns ok if this process can join a communicator for work at a location; else an error.
  Status (*usable)(const Location& location);

  // The id that all processes need to create one communicator. One process makes it.
  struct UniqueId {
    std::byte bytes[128];
  };
  Status (*make_unique_id)(const Location& location, UniqueId* id);

  // Starts to create the communicator of `size` ranks. ready() says when it is complete.
  Status (*create_communicator)(const Location& location, const UniqueId& id, int rank, int size,
                                NcclCommunicator** communicator);

  // A range of memory to send to a peer, or to receive from it: one of the two pointers is null.
  struct Transfer {
    int peer;
    const void* out;
    void* in;
    std::size_t bytes;
  };
  // Queues transfers on the stream, as one group, after ready() has said true. Transfers between
  // two processes match in the order in which each process lists them.
  Status (*exchange)(NcclCommunicator* communicator, const Transfer* transfers, int count,
                     Stream* stream);

  // Sets *ready to whether the communicator can be used for the next operation: after
  // create_communicator(), once all processes have joined; after exchange(), once the transfers are
  // on their stream, so that an event can be recorded behind them. Fails if an operation or a
  // transfer failed.
  Status (*ready)(NcclCommunicator* communicator, bool* ready);

  // Ends the communicator. If `in_order`, every process does so now, and nothing may be in flight.
  // Otherwise aborts transfers in flight, and waits for no other process.
  void (*close)(NcclCommunicator* communicator, bool in_order);
};

struct Device {
  const char* name;  // "host", "protected", "cuda"

  // True if work on this memory is asynchronous. Then MPI gets copies of this memory, unless
  // mpi_takes() says that MPI accepts it.
  bool staged;

  // Returns whether this row owns the memory at `pointer`; if so, sets the location's ordinal,
  // context and generation. May ask the driver. Never called with null. The host row owns all
  // memory.
  bool (*locate)(const void* pointer, Location* location);

  // Allocates memory at the location (on the same GPU), aligned to 256 bytes. Place::device is
  // memory of this device; Place::staging is host memory that MPI can use and that copies quickly
  // to and from this device (pinned for a GPU). In a row that is not `staged`, both are the same
  // memory.
  Status (*allocate)(const Location& location, std::size_t bytes, Place place, void** memory);
  void (*release)(void* memory, Place place);

  // Opens a stream for memory at the location, without waiting. The first work on a stream, and the
  // next work after query() has found the last event reached, starts after all work that the
  // program has queued until then on its own default stream.
  Status (*open_stream)(const Location& location, Stream** stream);
  void (*close_stream)(Stream* stream);

  // Copies in either direction: from memory of this row, staging memory or ordinary host memory, to
  // any of these.
  Status (*copy)(void* to, const void* from, std::size_t bytes, Stream* stream);

  // Records an event behind everything queued so far, and sets *event to its number. The events of
  // a stream are numbered from 1; the host row's number is always 1.
  Status (*record)(Stream* stream, std::uint64_t* event);
  // Sets *reached to whether the stream has passed the event. Never blocks. Event 0 is always
  // reached, so a query of it only returns whether the stream can still be used.
  Status (*query)(Stream* stream, std::uint64_t event, bool* reached);
  // Makes work queued later on `stream` wait for `event` of `other`.
  Status (*wait_event)(Stream* stream, Stream* other, std::uint64_t event);

  // Returns the kernels for this memory. The host row returns the fastest that the CPU can run.
  const kernels::Kernels* (*kernels)();

  // Writes the PCI bus id of the location's GPU, such as "0000:3b:00.0". Null in rows without GPUs.
  Status (*bus_id)(const Location& location, char* text, std::size_t bytes) = nullptr;

  // The library that exchanges data between GPUs of this row, or null.
  const NcclTransport* nccl = nullptr;

  // Copies by non-temporal stores, which leave nothing in the caches, for bytes that no core reads
  // soon, or that are next read by a core that shares no cache with this one. Null if `copy` leaves
  // nothing in this core's caches anyway.
  decltype(copy) copy_nontemporal = nullptr;

  // pin: pins host memory that the row has not allocated, such as a shared mapping, so that copies
  // between it and memory at the location are asynchronous and fast. Returns ok if it is pinned
  // already. unpin: call it before the memory is unmapped; does nothing for memory that is not
  // pinned, or after the GPU was reset. Both are null if memory need not be pinned.
  Status (*pin)(const Location& location, void* memory, std::size_t bytes) = nullptr;
  void (*unpin)(void* memory) = nullptr;

  // Kernels may read and write encoded values in staging memory if a bucket (values that share a
  // scale) has at most this many floats, because they then access each byte once. If this is not 0,
  // kernels for 16-bit floats and float32 may do so as well.
  std::uint32_t staging_bucket = 0;
};

// A stream and its device, on which work is queued.
struct DeviceStream {
  const Device& device;
  Stream* stream;  // null: the host's
};

// Returns the row for ordinary memory.
const Device& host();

// Returns the sum of the squares of `count` floats in host memory.
double squared_norm(const float* values, std::uint64_t count);

// Returns the location of the memory at `pointer`; the host's if no other row owns it. Costs next
// to nothing if the host's row is the only one; otherwise asks the other rows (Device::locate).
Location locate(const void* pointer);

// Begins a call of the program on this thread. Its buffers do not move until it ends, so locate()
// asks the rows once for each buffer until the next begin_call(). Answers are not kept longer,
// because the address of a freed host buffer may later be device memory.
void begin_call();

// Adds a row before all other rows, for plugins and tests. Does nothing if the table has the row.
// The row must stay valid.
Status add(const Device& device);

// The number of rows without the host's.
inline std::atomic<int> g_added{0};

// Returns whether there are rows besides the host's. Costs one load from memory.
inline bool others() {
  return g_added.load(std::memory_order_relaxed) != 0;
}

// Sets whether the process's MPI says that it takes GPU memory. False until this is called.
void set_mpi_takes_device_memory(bool takes);

bool mpi_takes_device_memory();

// Returns whether MPI can be given memory of this row.
bool mpi_takes(const Device& device);

// Returns whether some buffers may lie in memory that MPI cannot take, so that MPI needs copies.
// Costs one load from memory if there is no GPU.
inline bool some_need_copies() {
  return others() && !mpi_takes_device_memory();
}

// Return the number of rows, and the row `index`, to visit all rows. The host row is the last.
int count();
const Device& at(int index);

inline Location::Location() : Location(host()) {}

}  // namespace slimpi::device
