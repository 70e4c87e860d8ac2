// SPDX-License-Identifier: BSD-3-Clause
#include "tools/bench/world.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <fstream>

namespace slimpi::bench {
namespace {

// Returns the name and version of the MPI, such as "MPICH 4.0.2".
std::string library_name() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  PMPI_Get_library_version(text, &length);
  const std::string all(text, std::size_t(length));
  const std::string key = "Version:";
  const std::size_t at = all.find(key);
  if (at == std::string::npos) return all.substr(0, all.find_first_of(",\n"));
  const std::size_t begin = all.find_first_not_of(" \t", at + key.size());
  return all.substr(0, all.find(' ')) + " " +
         all.substr(begin, all.find_first_of(" \t\n", begin) - begin);
}

}  // namespace

std::string load_mpi() {
  if (dlsym(RTLD_DEFAULT, "PMPI_Comm_rank") != nullptr) return "";
  for (const char* const name : {"$ORIGIN/../lib/libmpi.so.12", "libmpi.so.12", "libmpich.so.12"})
    if (dlopen(name, RTLD_LAZY | RTLD_GLOBAL) != nullptr) return "";
  return "no MPI with MPICH's ABI was found: pip install mpich, or name the directory of its "
         "libmpi.so.12 in LD_LIBRARY_PATH; --predict needs none";
}

World enter() {
  World world;
  PMPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
  MPI_Comm node;
  PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world.rank, MPI_INFO_NULL, &node);
  int place = 0;
  PMPI_Comm_rank(node, &place);
  PMPI_Comm_free(&node);
  world.speaks_for_node = place == 0;
  world.nodes = int(sum(place == 0));
  world.mpi = library_name();
  world.preloaded = statistics().has_value();
  return world;
}

MPI_Comm with_options(MPI_Comm comm, const SetOptions& options) {
  MPI_Info info;
  PMPI_Info_create(&info);
  for (const auto& [name, value] : options)
    PMPI_Info_set(info, ("slimpi_" + name).c_str(), value.c_str());
  MPI_Comm copy;
  MPI_Comm_dup_with_info(comm, info, &copy);  // slimpi takes the call and reads the keys
  PMPI_Info_free(&info);
  return copy;
}

double largest(double value) {
  PMPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return value;
}

std::uint64_t sum(std::uint64_t value) {
  PMPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return value;
}

bool all_equal(std::uint64_t value) {
  std::uint64_t least = value, most = value;
  PMPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
  PMPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  return least == most;
}

std::optional<slimpi_statistics_t> statistics() {
  static const auto get = reinterpret_cast<decltype(&slimpi_get_statistics)>(
      dlsym(RTLD_DEFAULT, "slimpi_get_statistics"));
  slimpi_statistics_t now{};
  now.size = sizeof now;
  if (!get || get(&now) != 0) return std::nullopt;
  return now;
}

std::optional<std::uint64_t> bytes_sent_by(const std::string& interface) {
  std::ifstream file("/sys/class/net/" + interface + "/statistics/tx_bytes");
  std::uint64_t bytes = 0;
  if (interface.empty() || !(file >> bytes)) return std::nullopt;
  return bytes;
}

}  // namespace slimpi::bench
