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

bool is_kept(const comm::TensorState& state) {
  const auto& arrays = state.arrays();
  return state.algorithm() != nullptr && state.algorithm()->id != AlgorithmId::hook &&
         std::all_of(arrays.begin(), arrays.end(),
                     [](const auto& entry) { return is_kept(entry.first.what); });
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

// Returns the communicators that own states of a name, once no sum is in flight on them: the
// program's, then those of the persistent sums of this name. Returns none if slimpi does not know
// `comm`.
std::vector<std::shared_ptr<comm::Communicator>> find_owners(mpi::Comm comm,
                                                             const std::string& name) {
  Runtime* const runtime = Runtime::get(comm);
  if (runtime == nullptr || runtime->finished) return {};
  wait_for_sums_on(comm);
  comm::Communicator* const communicator = runtime->communicators.find_or_follow(comm);
  if (communicator == nullptr) return {};
  auto owners = find_persistent(*communicator, name);
  for (const auto& persistent : owners) wait_for_sums(*persistent);
  owners.emplace(owners.begin(), std::shared_ptr<void>(), communicator);
  return owners;
}

// Replaces the states of a name with those of `saved`, which the next sum of the name may take.
void replace(const std::vector<std::shared_ptr<comm::Communicator>>& owners,
             const std::string& name, std::vector<SavedState> saved) {
  for (const auto& owner : owners) owner->states.restore(name, {});
  owners.front()->states.restore(name, std::move(saved));
}

}  // namespace

std::optional<std::vector<std::byte>> save_state(mpi::Comm comm, const std::string& name) {
  const auto owners = find_owners(comm, name);
  if (owners.empty()) return {};
  std::vector<std::byte> bytes;
  owners.front()->states.for_restored(name, [&](const SavedState& restored) {
    append_state(bytes, *owners.front(), restored);
  });
  for (const auto& owner : owners)
    for (const comm::TensorState* const state : owner->states.find_named(name)) {
      if (!is_kept(*state)) continue;
      const auto copy = copy_of(*owner, *state);
      if (!copy) return {};
      append_state(bytes, *owner, *copy);
    }
  if (bytes.empty()) return {};
  return bytes;
}

bool restore_state(mpi::Comm comm, const std::string& name, std::span<const std::byte> bytes) {
  const auto owners = find_owners(comm, name);
  if (owners.empty() || bytes.empty()) return false;
  std::vector<SavedState> states;
  while (!bytes.empty()) {
    auto state = take_state(*owners.front(), bytes);
    if (!state) return false;
    states.push_back(std::move(*state));
  }
  replace(owners, name, std::move(states));
  return true;
}

bool drop_state(mpi::Comm comm, const std::string& name) {
  const auto owners = find_owners(comm, name);
  if (owners.empty()) return false;
  replace(owners, name, {});
  return true;
}

}  // namespace slimpi::call
