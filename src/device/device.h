// SPDX-License-Identifier: BSD-3-Clause
// The device table. A row is a kind of memory that float buffers can be in (the host's, or a CUDA
// GPU's), with the operations on it. Because host memory has a row, too, no code above this layer
// asks "is it a GPU?".
//
// Work is queued on a Stream and runs in the order of the stream; the host's row runs all work at
// once. Copies and kernels of different streams may overlap. Any thread may call these functions,
// but only one at a time may use a stream.
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

// Where memory is: on which device, and on which GPU. Work on memory needs a stream and scratch
// memory of the same location.
struct Location {
  Location();  // the host's memory
  // NOLINTNEXTLINE(google-explicit-constructor): a row with one memory is a location
  Location(const Device& row, int number = 0, void* own = nullptr)
      : device(&row), ordinal(number), context(own) {}

  const Device* device;  // the row; never null
  int ordinal;           // the GPU's number in its row; 0 for the host
  void* context;         // for the row's own use; null: the row finds a context by the ordinal
  // Changes when the program resets the GPU. Streams and memory of an older generation are gone.
  std::uint64_t generation = 0;

  bool operator==(const Location& other) const {
    return device == other.device && ordinal == other.ordinal && generation == other.generation;
  }
};

enum class Place { device, staging };

// This process's handle of a communicator between the GPUs of a node, one GPU per process. Created
// by the row, opaque to others.
struct NcclCommunicator;

// Sends and receives between GPUs, by a library of their vendor. Only close() waits for other
// processes.
struct NcclTransport {
  const char* library;  // "NCCL"

  // Returns ok if this process can join a communicator for work at a location, or else an error.
  Status (*usable)(const Location& location);

  // The id that all processes need to create one communicator. One process makes it.
  struct UniqueId {
    std::byte bytes[128];
  };
  Status (*make_unique_id)(const Location& location, UniqueId* id);

  // Begins to create the communicator of `size` ranks. ready() says when it is complete.
  Status (*create_communicator)(const Location& location, const UniqueId& id, int rank, int size,
                                NcclCommunicator** communicator);

  // A range of memory to send to a peer or to receive from it; one of the two pointers is null.
  struct Transfer {
    int peer;
    const void* out;
    void* in;
    std::size_t bytes;
  };
  // Queues transfers on the stream as one group. ready() must have said true before. Transfers
  // between two processes match in the order in which each process lists them.
  Status (*exchange)(NcclCommunicator* communicator, const Transfer* transfers, int count,
                     Stream* stream);

  // Sets *ready to whether the communicator can be used for the next operation: after
  // create_communicator(), once all processes have joined; after exchange(), once the transfers are
  // on their stream, so that an event can be recorded after them. Fails if an operation or a
  // transfer failed.
  Status (*ready)(NcclCommunicator* communicator, bool* ready);

  // Ends the communicator. With `in_order`, every process does so now, and nothing may be in
  // flight. Otherwise transfers in flight are aborted, without waiting for other processes.
  void (*close)(NcclCommunicator* communicator, bool in_order);
};

struct Device {
  const char* name;  // "host", "protected", "cuda"

  // Whether work on this memory is asynchronous. If so, MPI gets copies of this memory, unless
  // mpi_takes() says that MPI accepts it.
  bool staged;

  // Returns whether this row owns the memory at `pointer` (not null); if so, sets the location's
  // ordinal, context and generation. May ask the driver. The host's row owns all memory.
  bool (*locate)(const void* pointer, Location* location);

  // Allocates memory at the location (on the same GPU), aligned to 256 bytes. Place::device is
  // memory of this device. Place::staging is host memory that MPI can use and that copies quickly
  // to and from this device (pinned for a GPU). In a row that is not `staged`, both are the same
  // memory.
  Status (*allocate)(const Location& location, std::size_t bytes, Place place, void** memory);
  void (*release)(void* memory, Place place);

  // Opens a stream for memory at the location, without waiting. Work that is queued on an idle
  // stream first waits for all work that the program has queued until then on its own default
  // stream. A stream is idle when it is new, and when query() has found its last event reached.
  Status (*open_stream)(const Location& location, Stream** stream);
  void (*close_stream)(Stream* stream);

  // Copies between memory of this row, staging memory and ordinary host memory, in any direction.
  Status (*copy)(void* to, const void* from, std::size_t bytes, Stream* stream);

  // Records an event after everything queued so far, and sets *event to its number. The events of a
  // stream are numbered from 1 on; the host's row always returns 1.
  Status (*record)(Stream* stream, std::uint64_t* event);
  // Sets *reached to whether the stream has passed the event, without blocking. Event 0 is always
  // reached, so a query of it only tells whether the stream can still be used.
  Status (*query)(Stream* stream, std::uint64_t event, bool* reached);
  // Makes work queued later on `stream` wait for `event` of `other`.
  Status (*wait_event)(Stream* stream, Stream* other, std::uint64_t event);

  // Returns the kernels for this memory. The host's row returns the fastest that the CPU can run.
  const kernels::Kernels* (*kernels)();

  // Writes the PCI bus id of the location's GPU, such as "0000:3b:00.0". Null in rows without GPUs.
  Status (*bus_id)(const Location& location, char* text, std::size_t bytes) = nullptr;

  // The library that exchanges data between GPUs of this row, or null.
  const NcclTransport* nccl = nullptr;

  // Copies with non-temporal stores, which leave nothing in the caches. Used for bytes that no core
  // reads soon, or that are read next by a core that shares no cache with this one. Null if `copy`
  // leaves nothing in this core's caches anyway.
  decltype(copy) copy_nontemporal = nullptr;

  // `pin` pins host memory that was not allocated through this Device, such as a shared mapping, so
  // that copies between it and memory at the location are asynchronous and fast; memory that is
  // already pinned is fine. `unpin` must be called before the memory is unmapped; it does nothing
  // for memory that is not pinned, or after the GPU was reset. Both are null if memory need not be
  // pinned.
  Status (*pin)(const Location& location, void* memory, std::size_t bytes) = nullptr;
  void (*unpin)(void* memory) = nullptr;

  // Kernels may read and write encoded values in staging memory if a bucket (values that share a
  // scale) has at most this many floats, because they then access each byte once. Unless this is 0,
  // kernels for 16-bit floats and float32 may do so, too.
  std::uint32_t staging_bucket = 0;
};

// The stream that work is queued on, with its device.
struct DeviceStream {
  const Device& device;
  Stream* stream;  // null: the host's
};

// Returns the row for ordinary memory.
const Device& host();

// Returns the sum of the squares of `count` floats in host memory.
double squared_norm(const float* values, std::uint64_t count);

// Returns the location of the memory at `pointer`, which is the host's if no other row owns it.
// Costs next to nothing if the host's row is the only one; otherwise asks the other rows
// (Device::locate).
Location locate(const void* pointer);

// Begins a call of the program on this thread. Until the next begin_call(), locate() asks the rows
// only once per buffer, because buffers do not move during a call. Answers are not kept longer,
// because the address of a freed host buffer may later be device memory.
void begin_call();

// Adds a row before all other rows, for plugins and tests, unless the table has it already. The row
// must stay valid.
Status add(const Device& device);

// The number of devices in the table besides the host.
inline std::atomic<int> g_added{0};

// Returns whether the table has a device besides the host, which is so once a plugin has been
// loaded. Costs one load from memory.
inline bool others() {
  return g_added.load(std::memory_order_relaxed) != 0;
}

// Records whether this process's MPI says that it takes GPU memory. Until this function is called,
// slimpi assumes that MPI does not.
void set_mpi_takes_device_memory(bool takes);

bool mpi_takes_device_memory();

// Returns whether MPI can be given memory of this row.
bool mpi_takes(const Device& device);

// Returns whether some buffers may be in memory that MPI cannot take, so that MPI needs copies.
// Costs one load from memory if there is no GPU.
inline bool some_need_copies() {
  return others() && !mpi_takes_device_memory();
}

// Return the number of rows, and row `index`, so that a caller can visit all rows. The host's row
// is the last.
int count();
const Device& at(int index);

inline Location::Location() : Location(host()) {}

}  // namespace slimpi::device
