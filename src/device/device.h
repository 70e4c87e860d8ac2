// SPDX-License-Identifier: BSD-3-Clause
// A kind of memory that float buffers can lie in, and the operations on it. Host memory is one row
// of the device table, so no code above this layer asks "is it a GPU?".
//
// Work is queued on a Stream and runs in its order; the host row does it at once. Copies and
// kernels of different streams may overlap. Any thread may call these functions; a stream is used
// by one thread at a time.
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

// Where memory lies. Work on it needs a stream and scratch memory of the same location.
struct Location {
  Location();  // the host's memory
  // NOLINTNEXTLINE(google-explicit-constructor): a row with one memory is a location
  Location(const Device& row, int number = 0, void* own = nullptr)
      : device(&row), ordinal(number), context(own) {}

  const Device* device;  // the row; never null
  int ordinal;           // which of the row's GPUs; 0 where there is only one
  void* context;         // the row's own; null: the row finds one by the ordinal
  // Changes when the program resets the GPU: streams and memory of another generation are gone.
  std::uint64_t generation = 0;

  bool operator==(const Location& other) const {
    return device == other.device && ordinal == other.ordinal && generation == other.generation;
  }
};

enum class Place { device, staging };

// This process's member of a communicator between the GPUs of a node, one GPU per process. Opaque,
// made by its row.
struct NcclCommunicator;

// Sends and receives between GPUs, by a library of the GPUs' vendor. All functions but close()
// return at once.
struct NcclTransport {
  const char* library;  // "NCCL"

  // Whether this process can join a communicator for work at a location; if not, the status says
  // why.
  Status (*usable)(const Location& location);

  // An identity that all processes need to create one communicator; one of them makes it.
  struct UniqueId {
    std::byte bytes[128];
  };
  Status (*make_unique_id)(const Location& location, UniqueId* id);

  // Starts to create the communicator, as `rank` of `size`. ready() reports when that is complete.
  Status (*create_communicator)(const Location& location, const UniqueId& id, int rank, int size,
                                NcclCommunicator** communicator);

  // A range of memory to send to a peer, or to receive from it: one of the two pointers is null.
  struct Transfer {
    int peer;
    const void* out;
    void* in;
    std::size_t bytes;
  };
  // Queues transfers on the stream, as one group. Transfers between two processes match in the
  // order in which each process lists them. ready() must have been true before.
  Status (*exchange)(NcclCommunicator* communicator, const Transfer* transfers, int count,
                     Stream* stream);

  // Whether the last operation is so far that the communicator can be used again: all processes
  // have joined; or the transfers are on their stream, and an event can be recorded behind them.
  // Also fails when something goes wrong with them later.
  Status (*ready)(NcclCommunicator* communicator, bool* ready);

  // Ends it. `in_order`: every process does so now, and nothing is in flight. Otherwise what is in
  // flight is aborted.
  void (*close)(NcclCommunicator* communicator, bool in_order);
};

struct Device {
  const char* name;  // "host", "protected", "cuda"

  // True: work on this memory is asynchronous, and MPI may not be given it unless MPI says that it
  // takes it; see mpi_takes().
  bool staged;

  // Whether this row owns the memory at `pointer`; then it sets the location's ordinal and context.
  // Asks the driver once. Never called with null. The host row owns all.
  bool (*locate)(const void* pointer, Location* location);

  // Memory at the location (on the same GPU), aligned to 256 bytes. Place::device: memory of this
  // device. Place::staging: host memory that MPI may use and that copies quickly to and from this
  // device (pinned for a GPU). On a row that is not staged the two are the same.
  Status (*allocate)(const Location& location, std::size_t bytes, Place place, void** memory);
  void (*release)(void* memory, Place place);

  // A stream for memory at the location. Opening waits for nothing. The first work on a stream
  // starts after what the program has queued until then on its own default stream. So does the next
  // work on a stream whose last event query() has seen reached.
  Status (*open_stream)(const Location& location, Stream** stream);
  void (*close_stream)(Stream* stream);

  // Copies between this memory and itself, staging or ordinary host memory, in either direction.
  Status (*copy)(void* to, const void* from, std::size_t bytes, Stream* stream);

  // Records an event behind everything queued so far; events of a stream count up from 1;
  // the host row's is always 1.
  Status (*record)(Stream* stream, std::uint64_t* event);
  // Sets *reached to whether the stream has passed the event. Never blocks. Event 0 is always
  // reached, so its status says whether the stream can still be used.
  Status (*query)(Stream* stream, std::uint64_t event, bool* reached);
  // Makes work queued later on `stream` wait for `event` of `other`.
  Status (*wait_event)(Stream* stream, Stream* other, std::uint64_t event);

  // The arithmetic for this memory. The host row's is the best that the CPU can run.
  const kernels::Kernels* (*kernels)();

  // The PCI bus id of the GPU at the location, such as "0000:3b:00.0"; null where there is none.
  Status (*bus_id)(const Location& location, char* text, std::size_t bytes) = nullptr;

  // How its GPUs exchange data; null where there is no library for it.
  const NcclTransport* nccl = nullptr;

  // As copy, by non-temporal stores: for bytes that are read next by a core that shares no cache
  // with this one, or not soon. Null where a copy leaves nothing in this core's caches anyway.
  decltype(copy) copy_nontemporal = nullptr;

  // Pins host memory that the row has not allocated, such as a shared mapping, so that copies
  // between it and memory at the location run asynchronously and at full speed. ok if it is pinned
  // already. unpin() must come before the memory is unmapped; it does nothing for other memory, or
  // after the GPU was reset. Null where memory need not be pinned.
  Status (*pin)(const Location& location, void* memory, std::size_t bytes) = nullptr;
  void (*unpin)(void* memory) = nullptr;

  // Kernels of codecs may use encoded values in staging memory, each byte once, in one direction:
  // those of 16-bit and exact floats, and those of buckets of up to so many floats. 0: none may.
  std::uint32_t staging_bucket = 0;
};

// Where work is queued: a stream and its device.
struct DeviceStream {
  const Device& device;
  Stream* stream;  // null: the host's
};

// The row for ordinary memory.
const Device& host();

// Where the memory at `pointer` lies; the host's where no other row owns it. Costs nothing while
// the process has not loaded a GPU driver, and one query of the driver afterwards.
Location locate(const void* pointer);

// To be called when a call of the program begins on this thread, whose buffers stay where they are
// until it ends: from here to the next begin_call(), locate() asks once for each of them. Nothing
// is kept longer: a host buffer that is freed may be device memory the next time.
void begin_call();

// Adds a row in front of the others (tests; plugins), once. The row must stay valid.
Status add(const Device& device);

// How many rows there are beside the host's.
inline std::atomic<int> g_added{0};

// Whether there is any. Costs one load.
inline bool others() {
  return g_added.load(std::memory_order_relaxed) != 0;
}

// Sets whether the process's MPI says that it takes GPU memory; no until it is called.
void set_mpi_takes_device_memory(bool takes);

bool mpi_takes_device_memory();

// Whether MPI may be given memory of this row.
bool mpi_takes(const Device& device);

// Whether buffers may lie in memory that MPI cannot take. Costs one load where there is no GPU.
inline bool some_need_copies() {
  return others() && !mpi_takes_device_memory();
}

// All rows, for listing; the host row comes last.
int count();
const Device& at(int index);

inline Location::Location() : Location(host()) {}

}  // namespace slimpi::device
