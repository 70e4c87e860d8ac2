// SPDX-License-Identifier: BSD-3-Clause
// A program that does random things with communicators and checks every sum, under the preload.
// Usage: fuzz SEED STEPS [seconds:N | WORD of disturbance.h]...
//   seconds:N   ends after so many seconds, whatever is left of the steps
//   threads:N   so many threads of each rank do so, each with communicators of its own
//   ways        also nonblocking and persistent sums
//   doubles     also sums of doubles: SLIMPI_TYPES must name them
//   watch       now and then all communicators are freed, and rank 0 says what the process holds
//   faults      an error of a sum ends the process, with status 3; others must end soon, too
//   plain       without the library: what MPI alone does with the same steps
//   empty       most blocks of MPI_Reduce_scatter have no elements
//   renew:N     so many communicators are made, summed on and freed before the steps
//   mesh        each rank is in two groups, whose sums are in flight together
// Options of the library come from the environment, and from info keys that the program draws. The
// last line on stdout has the digest of all results that the library made, the same in every run of
// the same seed and ranks.
#include <dirent.h>
#include <mpi.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/fuzz/communicators.h"
#include "tests/fuzz/run.h"
#include "tests/fuzz/sum.h"

namespace fuzz {

void Run::complain(const std::string& what) {
  if (!failed)
    std::fprintf(stderr, "fuzz: seed %llu, step %llu, rank %d of %d: %s\n",
                 static_cast<unsigned long long>(seed), static_cast<unsigned long long>(step), rank,
                 size, what.c_str());
  failed = true;
}

void Run::end_by(const std::string& error) const {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  std::fprintf(stderr, "fuzz: rank %d, step %llu, ends at %lld.%03ld by: %s\n", rank,
               static_cast<unsigned long long>(step), static_cast<long long>(now.tv_sec),
               now.tv_nsec / 1'000'000, error.c_str());
  sleep(3);
  std::_Exit(3);
}

namespace {

// Prints the memory in KiB, the open files, and the library's shared-memory segments.
void say_what_is_held(const Run& run) {
  long pages = 0, files = -3, segments = 0;  // the directory's entries . and .., and its own
  std::ifstream statm("/proc/self/statm"), maps("/proc/self/maps");
  statm >> pages >> pages;
  if (DIR* const directory = opendir("/proc/self/fd"); directory != nullptr) {
    while (readdir(directory) != nullptr) ++files;
    closedir(directory);
  }
  for (std::string line; std::getline(maps, line);)
    segments += line.find("/memfd:slimpi") != line.npos ? 1 : 0;
  std::printf("held by rank %d after %llu steps: %ld KiB, %ld files, %ld segments\n", run.rank,
              static_cast<unsigned long long>(run.step), pages * (sysconf(_SC_PAGESIZE) / 1024),
              files, segments);
  std::fflush(stdout);
}

// Sums on a communicator, and may free it, while messages of the program are under way on it.
void sum_beside_messages(Run& run, Communicators& communicators, Draws& draws) {
  Communicator& on = communicators.any(draws);
  const bool then_free = draws.one_in(2);
  Draws later(draws.number(), 0);  // ranks leave a sum with other numbers drawn
  std::vector<int> sent(500, run.rank), received(500, -1);
  MPI_Request pending[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int one = 1, all = 0, size = on.size;
  const bool messages = on.comm != MPI_COMM_NULL && !on.inter;
  std::vector<int> world = on.world;
  const int rank = on.rank;
  if (messages) {
    MPI_Irecv(received.data(), 500, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, on.comm, &pending[0]);
    MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, on.comm, &pending[1]);
  }
  sum_floats(run, on, draws);
  if (messages) MPI_Isend(sent.data(), 500, MPI_INT, (rank + 1) % size, 7, on.comm, &pending[2]);
  if (then_free) communicators.free(later, true);  // the same one, or another
  MPI_Waitall(3, pending, MPI_STATUSES_IGNORE);
  if (!messages) return;
  if (received[0] != world[std::size_t((rank + size - 1) % size)] || all != size)
    run.complain("the program's own messages were disturbed");
}

void renew(Run& run, Communicators& communicators, Draws& draws) {
  Draws sums(draws.number(), 0);
  communicators.renew(draws, [&](Communicator& on) {
    Draws one(sums.number(), 0);
    sum_floats(run, on, one);
  });
}

// Sums once on a communicator that is freed then.
void sum_and_free(Run& run) {
  MPI_Comm one;
  MPI_Comm_dup(run.world, &one);
  std::vector<float> in(20'000, 1), out(in.size(), -7);
  const int code = MPI_Allreduce(in.data(), out.data(), int(in.size()), MPI_FLOAT, MPI_SUM, one);
  for (const float value : out)
    if (code != MPI_SUCCESS || std::fabs(value - float(run.size)) > 0.1f * float(run.size))
      return run.complain("a new communicator: " + std::to_string(value));
  MPI_Comm_free(&one);
}

// Sums in two groups of each rank: a pair of ranks, and the ranks that have the same place in their
// pairs. A rank draws which of the two sums it begins first, and completes both together.
void cross(Run& run, Draws& draws) {
  const int pair = run.rank / 2, place = run.rank % 2;
  MPI_Comm comm[2];
  MPI_Comm_split(run.world, pair, run.rank, &comm[0]);
  MPI_Comm_split(run.world, place, run.rank, &comm[1]);
  for (int round = 0; round < 3; ++round) {
    const std::size_t count = 1 + draws.below(60'000);
    const std::uint64_t number = draws.number();
    std::vector<float> in[2], out[2];
    MPI_Request requests[2];
    for (const int turn : {0, 1}) {
      const int group = turn ^ int(Draws::of(number, std::uint64_t(run.rank)) % 2);
      // All elements of a rank have one value: the algorithms with buckets agree on its sum.
      in[group].assign(count, float(1 + (group == 0 ? place : pair)));
      out[group].assign(count, -7);
      MPI_Iallreduce(in[group].data(), out[group].data(), int(count), MPI_FLOAT, MPI_SUM,
                     comm[group], &requests[group]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (const int group : {0, 1}) {
      int ranks = 0;
      MPI_Comm_size(comm[group], &ranks);
      const float sum = float(ranks * (ranks + 1) / 2);
      for (const float value : out[group])
        if (!(std::fabs(value - sum) <= 0.2f * sum))
          return run.complain("sums of crossing groups: " + std::to_string(value));
    }
  }
  for (MPI_Comm& one : comm) MPI_Comm_free(&one);
}

void control(Run& run, bool on) {
  MPI_Pcontrol(on ? 1 : 0);
  run.on = on;
}

// MPI connects ranks at their first messages, which no limit of a call should meet.
void connect_all(const Run& run) {
  std::vector<float> values(kMostElements);
  std::vector<int> to(std::size_t(run.size)), from(to.size());
  PMPI_Alltoall(to.data(), 1, MPI_INT, from.data(), 1, MPI_INT, MPI_COMM_WORLD);
  PMPI_Allreduce(MPI_IN_PLACE, values.data(), int(values.size()), MPI_FLOAT, MPI_SUM,
                 MPI_COMM_WORLD);
}

void take_step(Run& run, Communicators& communicators) {
  Draws draws(run.seed, run.step);
  run.disturbance.between_steps(draws);
  if (draws.one_in(4) && !run.on) control(run, true);
  const std::size_t action = draws.below(100);
  if (action < 58) {
    const bool then_free = draws.one_in(12);
    Draws later(draws.number(), 0);
    sum_floats(run, communicators.any(draws), draws);
    if (then_free) communicators.free(later);
  } else if (action < 66) {
    reduce_others(run, communicators.any(draws), draws);
  } else if (action < 80) {
    communicators.make(draws);
  } else if (action < 83) {
    communicators.free(draws);
  } else if (action < 87) {
    renew(run, communicators, draws);
  } else if (action < 92) {
    communicators.set_options(draws);
  } else if (action < 98) {
    sum_beside_messages(run, communicators, draws);
  } else if (run.alone) {
    control(run, false);
  }
}

// Returns whether some rank failed, or rank 0 has no time left; the same on all ranks.
bool ends(const Run& run, double deadline) {
  int words[2] = {run.failed ? 1 : 0, run.rank == 0 && PMPI_Wtime() > deadline ? 1 : 0};
  PMPI_Allreduce(MPI_IN_PLACE, words, 2, MPI_INT, MPI_MAX, run.world);
  return words[0] != 0 || words[1] != 0;
}

void take_steps(Run& run, std::uint64_t steps, double deadline) {
  constexpr std::uint64_t kFirstWatch = 32;
  auto communicators = std::make_unique<Communicators>(run.world);
  for (long i = 0; i < run.renewed && !run.failed; ++i) sum_and_free(run);
  for (; run.step < steps; ++run.step) {
    if (Draws draws(~run.seed, run.step); run.mesh && draws.one_in(2)) cross(run, draws);
    if (run.watch && run.step >= kFirstWatch && std::has_single_bit(run.step)) {
      communicators->free_all();
      MPI_Comm_free(&run.world);
      say_what_is_held(run);
      MPI_Comm_dup(MPI_COMM_WORLD, &run.world);
      communicators = std::make_unique<Communicators>(run.world);
    }
    take_step(run, *communicators);
    if (ends(run, deadline)) break;
  }
  communicators->free_all();
  if (run.world != MPI_COMM_WORLD) MPI_Comm_free(&run.world);
  if (run.watch) say_what_is_held(run);
}

using Runs = std::vector<std::unique_ptr<Run>>;

// Prints a line on rank 0, and returns the exit status.
int finish(const Runs& runs) {
  const Run& first = *runs.front();
  std::uint64_t counts[3] = {}, digest = 0, steps = 0, all = 0;
  for (const auto& run : runs) {
    counts[0] += run->sums;
    counts[1] += run->taken;
    counts[2] += run->failed ? 1 : 0;
    steps += run->step;
    digest = digest * 1099511628211ull ^ run->digest;
  }
  std::vector<std::uint64_t> digests(static_cast<std::size_t>(first.size));
  PMPI_Allreduce(MPI_IN_PLACE, counts, 3, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  PMPI_Gather(&digest, 1, MPI_UINT64_T, digests.data(), 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  for (const std::uint64_t one : digests) all = all * 1099511628211ull ^ one;
  if (first.rank == 0)
    std::printf("%s seed %llu, %d ranks, %llu steps, %llu sums, %llu taken over, digest %016llx\n",
                counts[2] == 0 ? "ok" : "FAILED", static_cast<unsigned long long>(first.seed),
                first.size, static_cast<unsigned long long>(steps),
                static_cast<unsigned long long>(counts[0]),
                static_cast<unsigned long long>(counts[1]), static_cast<unsigned long long>(all));
  return counts[2] == 0 ? 0 : 1;
}

// Takes a word of the command line. Whether it is one.
bool take_word(Run& run, double* deadline, const std::string& word) {
  if (word.starts_with("seconds:")) return *deadline = PMPI_Wtime() + std::atof(&word[8]), true;
  if (word.starts_with("threads:")) return true;
  const auto is = [&](const char* name, bool& flag) { return word == name && (flag = true); };
  if (word.starts_with("renew:")) return run.renewed = std::atol(&word[6]), true;
  return is("plain", run.plain) || is("empty", run.empty) || is("mesh", run.mesh) ||
         is("ways", run.ways) || is("doubles", run.doubles) || is("faults", run.faults) ||
         is("watch", run.watch) || run.disturbance.take(word, run.rank);
}

int main(int argc, char** argv) {
  int threads = 1, provided = 0;
  bool multiple = false, understood = argc > 2;
  for (int i = 3; i < argc; ++i) {
    if (std::strncmp(argv[i], "threads:", 8) == 0) threads = std::atoi(argv[i] + 8);
    multiple |= threads > 1;
    for (const char* const word : {"ways", "mesh"}) multiple |= std::strcmp(argv[i], word) == 0;
  }
  MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  double deadline = 1e300;
  Runs runs;
  for (int thread = 0; thread < threads; ++thread) {
    Run& run = *runs.emplace_back(std::make_unique<Run>());
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.size);
    run.alone = threads == 1;
    for (int i = 3; i < argc; ++i) understood &= take_word(run, &deadline, argv[i]);
    if (run.watch || !run.alone) MPI_Comm_dup(MPI_COMM_WORLD, &run.world);
    if (argc > 2) run.seed = std::strtoull(argv[1], nullptr, 10) + std::uint64_t(thread) * 1000003;
  }
  if (!understood) {
    if (runs.front()->rank == 0) std::fprintf(stderr, "usage: see the top of fuzz.cpp\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const std::uint64_t steps = std::strtoull(argv[2], nullptr, 10);
  connect_all(*runs.front());
  runs.front()->disturbance.begin();
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < runs.size(); ++i)
    others.emplace_back([&, i] { take_steps(*runs[i], steps, deadline); });
  take_steps(*runs.front(), steps, deadline);
  for (std::thread& other : others) other.join();
  runs.front()->disturbance.end();
  const int status = finish(runs);
  MPI_Finalize();
  return status;
}

}  // namespace
}  // namespace fuzz

int main(int argc, char** argv) {
  return fuzz::main(argc, argv);
}
