// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "tools/bench/report.h"
#include "tools/common/output.h"

namespace slimpi::bench {
namespace {

constexpr int kCount = 20'011, kCalls = 2, kBlock = 512;

// A sum is made by the first `ranks` ranks of the job. It is told that each `per_node` of them are
// a node.
struct Layout {
  int ranks, per_node;
};
constexpr Layout kLayouts[] = {{1, 1},  {2, 1},  {3, 1},  {4, 1}, {5, 1}, {8, 1},
                               {16, 1}, {32, 1}, {64, 1}, {4, 2}, {8, 4}};

struct Sum {
  std::string algorithm;
  std::string bits;  // "" if the algorithm has no bits
  SetOptions options;
  Collective collective = Collective::allreduce;
};

std::vector<Sum> sums(const Layout& layout) {
  std::vector<Sum> all{{"allreduce", "", {}}};
  if (layout.ranks == 1) return all;  // the input: MPI makes all sums
  for (const char* const value : {"fp16", "bf16"}) all.push_back({value, "", {}});
  for (const char* bits : {"1", "2", "3", "4", "8", "12", "16"})
    all.push_back({"bytegrad", bits, {}});
  for (const char* bits : {"2", "4", "8"}) all.push_back({"qsgd", bits, {}});
  for (const char* bits : {"1", "2", "2.5", "4", "8", "16"}) all.push_back({"packed", bits, {}});
  all.push_back({"bytegrad", "4", {{"bucket", "0"}}});
  all.push_back({"bytegrad", "5", {{"rounding", "stochastic"}, {"seed", "7"}}});
  for (const auto& [algorithm, bits] : {std::pair("bytegrad", "3"), std::pair("packed", "2.5")})
    all.push_back({algorithm, bits, {{"error_feedback", "1"}}});
  all.push_back({"powersgd", "", {{"start", "0"}, {"powersgd_rank", "2"}}});
  all.push_back({"batched_powersgd", "", {{"start", "0"}, {"powersgd_rank", "5"}}});
  all.push_back({"decentralized", "", {}});
  all.push_back({"decentralized", "", {{"peers", "shift_one"}}});
  all.push_back({"low_precision_decentralized", "8", {}});
  for (const auto& [algorithm, bits] :
       {std::pair("allreduce", ""), std::pair("fp16", ""), std::pair("bytegrad", "4"),
        std::pair("bytegrad", "8"), std::pair("packed", "4")})
    all.push_back({algorithm, bits, {}, Collective::reduce_scatter});
  if (layout.per_node == 1) return all;
  for (const char* const hierarchy : {"leader", "flat"})
    for (const auto& [algorithm, bits] :
         {std::pair("bytegrad", "4"), std::pair("packed", "3"), std::pair("fp16", "")})
      all.push_back({algorithm, bits, {{"hierarchy", hierarchy}}});
  return all;
}

// Returns a pseudo-random number of a bell-shaped distribution around 0. It is computed from
// integers and is exact in a float, so that rounding cannot make it depend on the machine.
float bell(int rank, int call, int i) {
  const std::uint64_t bits = splitmix64(
      std::uint64_t(rank) * 1'000'003 + std::uint64_t(call) * 7919 + std::uint64_t(i) * 64, 0);
  int sum = -2 * 65535;
  for (int part = 0; part < 4; ++part) sum += int(bits >> 16 * part & 0xffff);
  return float(sum) / 65536;
}

// The kinds of input. ugly: some blocks of 512 values contain denormals, NaNs, infinities, values
// whose sum overflows, and other values that are hard to quantize. finite: the same without values
// and sums that are not finite. models: the values differ little between ranks, as those of models
// that are averaged.
enum class Input { ugly, finite, models };

Input input_of(const Sum& sum) {
  if (!guarantees_same_bytes(sum.algorithm)) return Input::models;
  // Sums with options keep state, and a sum with values that are not finite would not be kept.
  return sum.options.empty() ? Input::ugly : Input::finite;
}

float input(Input kind, int rank, int call, int i) {
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float usual = bell(rank, call, i);
  if (kind == Input::models) return bell(0, 0, i) + usual / 16;
  const bool first = i % kBlock == 100, ugly = first && kind == Input::ugly;
  switch (i / kBlock) {
    case 1:
      return usual * 0x1p-130f;  // denormals among them
    case 2:
      return usual * 0x1p90f;
    case 3:
      return usual + 1e6f;
    case 4:
      return i % 97 == 0 ? -0.0f : 0.0f;
    case 5:
      return float(i / kBlock);  // a constant
    case 6:
      return float((i + rank) % 7);  // counts
    case 7:
      return ugly && rank == 0 ? std::numeric_limits<float>::quiet_NaN() : usual;
    case 8:
      return ugly ? (rank % 2 == 0 ? kInfinity : -kInfinity) : usual;
    case 9:
      return ugly ? kMost : usual;  // overflows
    case 10:
      return first ? 1e30f : usual;  // the rest is lost
    case 11:
      return i % 97 == 0 ? 0 : usual * 16;
    default:
      return usual;
  }
}

// Returns the SHA-256 digest of the values, which the program sha256sum computes; "" if there is no
// sha256sum.
std::string sha256(const std::vector<float>& values) {
  std::FILE* const file = std::tmpfile();
  if (file == nullptr) return "";
  std::fwrite(values.data(), sizeof(float), values.size(), file);
  std::fflush(file);
  const std::string command =
      fmt::format("LD_PRELOAD= sha256sum </proc/{}/fd/{}", getpid(), fileno(file));
  std::array<char, 65> text{};
  std::FILE* const hash = popen(command.c_str(), "r");
  const bool read = hash != nullptr && std::fread(text.data(), 1, 64, hash) == 64;
  if (hash != nullptr) pclose(hash);
  std::fclose(file);
  return read ? text.data() : "";
}

MPI_Comm communicator(MPI_Comm ranks, const Layout& layout, const Sum& sum) {
  SetOptions all{{"algorithm", sum.algorithm},
                 {"min_size", "0"},
                 {"bucket", "512"},
                 {"seed", "0"},
                 {"ranks_per_node", std::to_string(layout.per_node)}};
  if (!sum.bits.empty()) all.emplace_back("bits", sum.bits);
  all.insert(all.end(), sum.options.begin(), sum.options.end());
  return with_options(ranks, all);
}

// Returns at rank 0 the results of all ranks, ordered by call and then by rank.
std::vector<float> results(MPI_Comm comm, int rank, int ranks, const Sum& sum) {
  const Input kind = input_of(sum);
  const bool scatters = sum.collective == Collective::reduce_scatter;
  std::vector<float> in(kCount), out(kCount), all;
  const auto first = [&](int of) { return int(std::int64_t(kCount) * of / ranks); };
  std::vector<int> blocks, lengths, places;
  for (int one = 0; one < ranks; ++one) {
    blocks.push_back(first(one + 1) - first(one));
    lengths.push_back(scatters ? blocks.back() : kCount);
    places.push_back(scatters ? first(one) : one * kCount);
  }
  const std::size_t length = std::size_t(places.back() + lengths.back());
  for (int call = 0; call < kCalls; ++call) {
    for (int i = 0; i < kCount; ++i) in[std::size_t(i)] = input(kind, rank, call, i);
    std::fill(out.begin(), out.end(), -7.0f);
    if (scatters)
      MPI_Reduce_scatter(in.data(), out.data(), blocks.data(), MPI_FLOAT, MPI_SUM, comm);
    else
      MPI_Allreduce(in.data(), out.data(), kCount, MPI_FLOAT, MPI_SUM, comm);
    if (rank == 0) all.resize(all.size() + length);
    PMPI_Gatherv(out.data(), lengths[std::size_t(rank)], MPI_FLOAT,
                 rank == 0 ? all.data() + all.size() - length : nullptr, lengths.data(),
                 places.data(), MPI_FLOAT, 0, comm);
  }
  return all;
}

// Keeps the results of one rank for each call and drops the others. Returns false if the ranks'
// results differ.
bool keep_one(std::vector<float>& all, int ranks) {
  std::vector<float> one;
  for (int call = 0; call < kCalls; ++call) {
    const float* const its = all.data() + std::ptrdiff_t(call) * ranks * kCount;
    for (int rank = 1; rank < ranks; ++rank)
      if (std::memcmp(its, its + std::ptrdiff_t(rank) * kCount, kCount * sizeof(float)) != 0)
        return false;
    one.insert(one.end(), its, its + kCount);
  }
  all = std::move(one);
  return true;
}

std::string row(const Layout& layout, const Sum& sum, const std::string& digest) {
  std::string options;
  for (const auto& [name, value] : sum.options)
    options += (options.empty() ? "" : " ") + name + "=" + value;
  return fmt::format("{} x {},{},{},{},{},{}\n", layout.ranks / layout.per_node, layout.per_node,
                     row_of(sum.collective).name, sum.algorithm, sum.bits, options, digest);
}

// Waits for all ranks of the job. A rank that took no part in a sum sleeps while it waits, so that
// it takes no processor time from those that did.
void wait_for_all() {
  MPI_Request request;
  PMPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; PMPI_Test(&request, &done, MPI_STATUS_IGNORE), !done;) usleep(500);
}

}  // namespace

int print_digests(const World& world) {
  if (!world.preloaded) {
    if (world.rank == 0)
      fmt::print(stderr,
                 "slimpi-bench: --digests sums by slimpi, and libslimpi.so is not preloaded: start "
                 "slimpi-run slimpi-bench --digests\n");
    return 2;
  }
  int status = 0;
  for (const Layout& layout : kLayouts) {
    if (layout.ranks > world.ranks) continue;
    MPI_Comm ranks;
    const bool takes_part = world.rank < layout.ranks;
    PMPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, world.rank, &ranks);
    for (const Sum& sum : sums(layout)) {
      if (!takes_part || status != 0) break;
      MPI_Comm comm = communicator(ranks, layout, sum);
      std::vector<float> all = results(comm, world.rank, layout.ranks, sum);
      MPI_Comm_free(&comm);
      if (world.rank != 0) continue;
      const bool same = !guarantees_same_bytes(sum.algorithm) ||
                        sum.collective != Collective::allreduce || keep_one(all, layout.ranks);
      const std::string digest = sha256(all);
      if (!same || digest.empty()) status = 1;
      tools::put(row(layout, sum, same ? digest : "RANKS DIFFER"));
      if (digest.empty()) fmt::print(stderr, "slimpi-bench: --digests needs sha256sum\n");
    }
    if (takes_part) PMPI_Comm_free(&ranks);
    wait_for_all();
    status = int(largest(status));
  }
  return status;
}

}  // namespace slimpi::bench
