// SPDX-License-Identifier: BSD-3-Clause
// Saves and restores the states of a named tensor as bytes, for checkpoints: slimpi_get_state
// writes them and slimpi_set_state reads them. Only states of error feedback and of the low-rank
// algorithms are saved, because replicas of the decentralized algorithms must match those of the
// peers, and a hook keeps its own data.
#include "call/saved_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "algorithm/algorithm.h"
#include "call/entry.h"
#include "call/persistent.h"
#include "call/queue.h"
#include "call/runtime.h"
#include "comm/stream_wait.h"
#include "comm/tensor_state.h"

namespace slimpi::call {

namespace {

using comm::SavedState;
using comm::StateArray;

constexpr char kMagic[] = "slimpi2";  // the first word, with its zero byte

// Each saved state is a Header, followed by a Head and floats for each of its arrays.
struct Header {
  char magic[sizeof(std::uint64_t)];
  std::uint64_t rank, size;  // of this rank in the communicator
  std::uint64_t count, placement, calls, uninitialized, arrays;
  char algorithm[40];  // the name, zero-filled
};
struct Head {
  std::uint64_t what, elements;
};

bool is_kept(StateArray::What what) {
  return what == StateArray::residual || what == StateArray::low_rank_error ||
         what == StateArray::factor;
}

template <typename Type>
void append(std::vector<std::byte>& bytes, const Type* from, std::size_t count) {
  const auto* const first = reinterpret_cast<const std::byte*>(from);
  bytes.insert(bytes.end(), first, first + count * sizeof(Type));
}

// Moves values from the front of the bytes to `to`. Returns false if there are too few bytes.
template <typename Type>
bool take(std::span<const std::byte>& bytes, Type* to, std::uint64_t count) {
  if (count > bytes.size() / sizeof(Type)) return false;
  if (count != 0) std::memcpy(to, bytes.data(), count * sizeof(Type));
  bytes = bytes.subspan(count * sizeof(Type));
  return true;
}

void append_state(std::vector<std::byte>& bytes, const comm::Communicator& communicator,
                  const SavedState& state) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.rank = std::uint64_t(communicator.rank());
  header.size = std::uint64_t(communicator.size());
  header.count = state.count;
  header.placement = state.placement;
  header.calls = state.calls;
  header.uninitialized = state.uninitialized ? 1 : 0;
  header.arrays = state.arrays.size();
  std::strncpy(header.algorithm, state.algorithm->name, sizeof header.algorithm - 1);
  append(bytes, &header, 1);
  for (const auto& [which, floats] : state.arrays) {
    const Head head{std::uint64_t(which.what), floats.size()};
    append(bytes, &head, 1);
    append(bytes, floats.data(), floats.size());
  }
}

// Parses one state from the front of the bytes.
std::optional<SavedState> take_state(const comm::Communicator& communicator,
                                     std::span<const std::byte>& bytes) {
  Header header{};
  if (!take(bytes, &header, 1) || std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
      header.rank != std::uint64_t(communicator.rank()) ||
      header.size != std::uint64_t(communicator.size()) || header.uninitialized > 1)
    return {};
  header.algorithm[sizeof header.algorithm - 1] = '\0';
  SavedState state;
  state.algorithm = algorithm::find(header.algorithm);
  if (state.algorithm == nullptr) return {};
  state.count = header.count;
  state.placement = header.placement;
  state.calls = header.calls;
  state.uninitialized = header.uninitialized != 0;
  for (std::uint64_t i = 0; i < header.arrays; ++i) {
    Head head{};
    if (!take(bytes, &head, 1) || head.what > StateArray::replica_of) return {};
    const auto what = StateArray::What(head.what);
    if (!is_kept(what) || head.elements > bytes.size() / sizeof(float)) return {};
    std::vector<float>& floats = state.arrays[{what}];
    floats.resize(head.elements);
    if (!take(bytes, floats.data(), head.elements)) return {};
  }
  return state;
}

// Returns a copy of a state, or nothing if the memory of its arrays cannot be read.
std::optional<SavedState> copy_of(comm::Communicator& communicator,
                                  const comm::TensorState& state) {
  SavedState copy;
  copy.algorithm = state.algorithm();
  copy.count = state.key.count;
  copy.placement = state.key.placement;
  copy.calls = state.calls;
  copy.uninitialized = state.uninitialized;
  copy.arrays = state.restored();
  for (const auto& [which, array] : state.arrays()) {
    std::vector<float>& floats = copy.arrays[which];
    floats.resize(array.elements);
    if (array.elements == 0) continue;
    const device::Location location = array.memory.location();
    device::Stream* stream = nullptr;
    if (communicator.stream_for(location, &stream) != Status::ok ||
        comm::copy_and_wait({*location.device, stream}, "state", floats.data(), array.memory.data(),
                            array.elements * sizeof(float)) != Status::ok)
      return {};
  }
  return copy;
}

// Returns the communicator that owns the states of a name, once no sum is in flight on it: the one
// of the persistent sum of this name, or else the program's. Returns null if slimpi does not know
// `comm`.
comm::Communicator* find_owner(mpi::Comm comm, const std::string& name) {
  Runtime* const runtime = Runtime::get(comm);
  if (runtime == nullptr || runtime->finished) return nullptr;
  wait_for_sums_on(comm);
  comm::Communicator* const communicator = runtime->communicators.find_or_follow(comm);
  if (communicator == nullptr) return nullptr;
  comm::Communicator* const persistent = find_persistent(*communicator, name);
  if (persistent == nullptr) return communicator;
  wait_for_sums(*persistent);
  return persistent;
}

}  // namespace

std::optional<std::vector<std::byte>> save_state(mpi::Comm comm, const std::string& name) {
  comm::Communicator* const communicator = find_owner(comm, name);
  if (communicator == nullptr) return {};
  std::vector<std::byte> bytes;
  for (const SavedState& restored : communicator->states.find_restored(name))
    append_state(bytes, *communicator, restored);
  for (const comm::TensorState* const state : communicator->states.find_named(name)) {
    const auto& arrays = state->arrays();
    if (state->algorithm() == nullptr || state->algorithm()->id == AlgorithmId::hook ||
        !std::all_of(arrays.begin(), arrays.end(),
                     [](const auto& entry) { return is_kept(entry.first.what); }))
      continue;
    const auto copy = copy_of(*communicator, *state);
    if (!copy) return {};
    append_state(bytes, *communicator, *copy);
  }
  if (bytes.empty()) return {};
  return bytes;
}

bool restore_state(mpi::Comm comm, const std::string& name, std::span<const std::byte> bytes) {
  comm::Communicator* const communicator = find_owner(comm, name);
  if (communicator == nullptr || bytes.empty()) return false;
  std::vector<SavedState> states;
  while (!bytes.empty()) {
    auto state = take_state(*communicator, bytes);
    if (!state) return false;
    states.push_back(std::move(*state));
  }
  communicator->states.restore(name, std::move(states));
  return true;
}

bool drop_state(mpi::Comm comm, const std::string& name) {
  comm::Communicator* const communicator = find_owner(comm, name);
  if (communicator != nullptr) communicator->states.restore(name, {});
  return communicator != nullptr;
}

}  // namespace slimpi::call
