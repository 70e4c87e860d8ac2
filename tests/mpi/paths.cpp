// SPDX-License-Identifier: BSD-3-Clause
// A plain MPI program for tests/mpi/paths.sh: sums inputs of all kinds, each a few times, and
// writes a digest of every result of every rank. Usage: `paths alike|own FILE`; `alike`: all ranks
// must hold the same bytes
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "tests/mpi/digest.h"
#include "tests/mpi/inputs.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1, failures = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
  const bool alike = std::strcmp(argv[1], "alike") == 0;
  std::FILE* const file = rank == 0 ? std::fopen(argv[2], "w") : nullptr;
  if (rank == 0 && file == nullptr) MPI_Abort(MPI_COMM_WORLD, 2);

  std::vector<float> buffer(200003);  // one address: state belongs to a count
  std::vector<std::uint64_t> digests(static_cast<std::size_t>(size));
  for (int family = 0; family <= int(Family::opposite_infinities); ++family)
    for (const std::size_t count : {std::size_t(77), std::size_t(5000), std::size_t(30001)})
      for (std::uint64_t call = 0; call < 3; ++call) {
        const Case test{Family(family), count, 40 + call, true, false, false, size};
        const std::vector<float> in = make_input(test, rank);
        std::copy(in.begin(), in.end(), buffer.begin());
        MPI_Allreduce(MPI_IN_PLACE, buffer.data(), int(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        const std::uint64_t mine = digest(buffer.data(), count);
        MPI_Gather(&mine, 1, MPI_UINT64_T, digests.data(), 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        if (rank != 0) continue;
        std::fprintf(file, "%s %zu %d:", family_name(test.family), count, int(call));
        for (const std::uint64_t one : digests)
          std::fprintf(file, " %016llx", static_cast<unsigned long long>(one));
        std::fprintf(file, "\n");
        for (const std::uint64_t one : digests)
          if (alike && one != mine && ++failures <= 3)
            std::fprintf(stderr, "%s, n = %zu, call %d: the ranks' bytes differ\n",
                         family_name(test.family), count, int(call));
      }
  if (file != nullptr) failures += std::fclose(file) != 0;
  MPI_Bcast(&failures, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
