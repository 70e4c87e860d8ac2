// SPDX-License-Identifier: BSD-3-Clause
#include "tools/bench/candidate.h"

#include <fmt/core.h>

#include <climits>

#include "algorithm/algorithm.h"
#include "tools/bench/cost.h"

namespace slimpi::bench {
namespace {

bool uses_bits(const std::string& name) {
  const algorithm::Algorithm* const row = algorithm::find(name);
  return row != nullptr &&
         (row->codec == kernels::Codec::quantized || row->codec == kernels::Codec::packed);
}

MPI_Comm communicator(const Options& options, const std::string& algorithm, double bits) {
  SetOptions all = options.set;
  if (!algorithm.empty()) all.emplace_back("algorithm", algorithm);
  if (bits != 0) all.emplace_back("bits", fmt::format("{:g}", bits));
  return with_options(MPI_COMM_WORLD, all);
}

// Returns how many bytes this algorithm sends for each byte of floats, from the encoded size of a
// large vector; 0 if that is not known. `bucket` is the value of SLIMPI_BUCKET.
double coded_share(const std::string& algorithm, double bits, std::uint64_t bucket) {
  const algorithm::Algorithm* const row = algorithm::find(algorithm);
  if (row == nullptr) return algorithm == "plain" || algorithm == "off" ? 1 : 0;
  // The size of an encoded vector does not give the bytes of an algorithm that keeps state between
  // calls or exchanges models with peers.
  if (row->keeps_state || row->talks_to_peers) return 0;
  constexpr std::uint64_t kCount = 1 << 24;
  kernels::Format format{row->codec, std::uint8_t(bits), false, std::uint32_t(bucket)};
  if (row->codec == kernels::Codec::packed) {
    format.bits = std::uint8_t(2 * bits);
    format.bucket = kernels::longest_packed_tile(format.bits);
  }
  return double(kernels::encoded_bytes(format, kCount)) / (sizeof(float) * kCount);
}

// Returns the algorithms to measure: those of the command line, or else the two baselines and "",
// which stands for the algorithm that the environment sets.
std::vector<std::string> algorithms_of(const Options& options, const Config& config) {
  if (!options.algorithms.empty()) return options.algorithms;
  std::vector<std::string> all{""};
  for (const char* const baseline : {"allreduce", "fp16"})
    if (config.algorithm != baseline) all.emplace_back(baseline);
  return all;
}

}  // namespace

Config config_of(const Options& options) {
  Config config = load_config(slimpi_environment()).config;
  for (const auto& [name, value] : options.set)
    (void)config.set(lower_case(name), value, Source::info);
  return config;
}

void Candidate::run(const void* in, float* out, std::uint64_t count) const {
  const auto small = int(count);
  const auto large = MPI_Count(count);
  if (collective == Collective::reduce_scatter) {
    // Each function is called by name and not through a pointer to it, because the wheel's program
    // finds the functions of its MPI only when it first calls them.
    int ranks = 0;
    PMPI_Comm_size(comm, &ranks);
    const int block = int(count / std::uint64_t(ranks));
    if (plain())
      PMPI_Reduce_scatter_block(in, out, block, MPI_FLOAT, MPI_SUM, comm);
    else
      MPI_Reduce_scatter_block(in, out, block, MPI_FLOAT, MPI_SUM, comm);
    return;
  }
  if (plain()) {
    if (count <= INT_MAX)
      PMPI_Allreduce(in, out, small, MPI_FLOAT, MPI_SUM, comm);
    else
      PMPI_Allreduce_c(in, out, large, MPI_FLOAT, MPI_SUM, comm);
  } else if (count <= INT_MAX) {
    MPI_Allreduce(in, out, small, MPI_FLOAT, MPI_SUM, comm);
  } else {
    MPI_Allreduce_c(in, out, large, MPI_FLOAT, MPI_SUM, comm);
  }
}

bool guarantees_same_bytes(const std::string& algorithm) {
  const algorithm::Algorithm* const row = algorithm::find(algorithm);
  return row == nullptr || row->same_bytes;
}

double wire_limit(Collective collective, double bytes, double coded, int nodes, double wire) {
  return double(row_of(collective).phases) * (nodes - 1) / nodes * bytes * coded * 8 /
         (wire * cost::kPayload);
}

std::vector<Candidate> candidates(const Options& options, const World& world) {
  std::vector<Candidate> all(1);
  all[0] = {"plain", 0, 1, MPI_COMM_NULL, options.collective};
  PMPI_Comm_dup(MPI_COMM_WORLD, &all[0].comm);
  if (!world.preloaded) return all;
  const Config config = config_of(options);
  const std::vector<std::string> algorithms = algorithms_of(options, config);
  for (const std::string& algorithm : algorithms) {
    const std::string known = algorithm.empty() ? config.algorithm : algorithm;
    const std::vector<double> standard{config.bits};
    const bool quantizer = uses_bits(known);
    const std::vector<double>& widths = !quantizer             ? std::vector<double>{0}
                                        : options.bits.empty() ? standard
                                                               : options.bits;
    for (const double bits : widths)
      all.push_back({known, bits, coded_share(known, bits, config.bucket),
                     communicator(options, algorithm, bits), options.collective});
  }
  return all;
}

void release(std::vector<Candidate>& candidates) {
  for (Candidate& candidate : candidates) PMPI_Comm_free(&candidate.comm);
}

}  // namespace slimpi::bench
