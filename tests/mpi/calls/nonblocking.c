// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking float sums: every way to complete them, several in flight, other calls between them.
// Compares each result, byte by byte, with that of the blocking call. Run by nonblocking.sh. With
// an argument no rank waits for another outside of MPI, where sums of MPI's own make no progress.
#include "tests/mpi/calls/nonblocking.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/mpi/calls/persistent.h"

static void complete_all(MPI_Comm comm) {
  MPI_Request r[kMany];
  MPI_Status s[kMany];
  int flag = 0, index;

  for (int turn = 0; turn < 2 * WAYS; ++turn) {
    const enum way way = (enum way)(turn % WAYS);
    begin_all(comm, r);
    must(complete(way, kMany, r, turn < WAYS ? s : NULL) == MPI_SUCCESS, kWayNames[way]);
    for (int i = 0; i < kMany; ++i) {
      int cancelled = 0;
      must(r[i] == MPI_REQUEST_NULL, "a null request is left");
      if (turn < WAYS) MPI_Test_cancelled(&s[i], &cancelled);
      must(!cancelled, "not cancelled");
    }
    same(kWayNames[way]);
  }
  MPI_Waitany(kMany, r, &index, MPI_STATUS_IGNORE);
  must(index == MPI_UNDEFINED, "Waitany of null requests");

  begin_all(comm, r);
  for (int i = kMany - 1; i >= 0; --i) MPI_Wait(&r[i], MPI_STATUS_IGNORE);
  same("Wait in another order");

  begin_all(comm, r);
  for (int i = 0; i < kMany; ++i) {
    for (flag = 0; !flag;) MPI_Request_get_status(r[i], &flag, &s[i]);
    must(r[i] != MPI_REQUEST_NULL, "Request_get_status leaves the request");
    same_of(i, "Request_get_status");
    clear(i);
    MPI_Wait(&r[i], MPI_STATUS_IGNORE);
    read_from(g_values, g_out[i], sizeof g_values);
    must(g_values[0] == 0 && g_values[kCount - 1] == 0, "Wait writes no result again");
  }
  begin_all(comm, r);  // MPI uses the handles again
  MPI_Waitall(kMany, r, MPI_STATUSES_IGNORE);
  same("Waitall after Request_get_status");

#if HAS_STATUS_OF_SEVERAL
  begin_all(comm, r);
  for (flag = 0; !flag;) MPI_Request_get_status_all(kMany, r, &flag, MPI_STATUSES_IGNORE);
  same("Request_get_status_all");
  MPI_Waitall(kMany, r, MPI_STATUSES_IGNORE);
#endif
}

// Makes messages, a sum that slimpi leaves to MPI, blocking sums and a barrier while sums are in
// flight.
static void mixed(MPI_Comm comm) {
  MPI_Request r[kMany + 4];
  int got = -1, sent = g_rank, ones[2] = {1, 1}, twos[2];
  const int next = (g_rank + 1) % g_size, before = (g_rank + g_size - 1) % g_size;
  MPI_Irecv(&got, 1, MPI_INT, before, 3, comm, &r[0]);
  begin_all(comm, &r[1]);
  MPI_Isend(&sent, 1, MPI_INT, next, 3, comm, &r[kMany + 1]);
  MPI_Iallreduce(ones, twos, 2, MPI_INT, MPI_SUM, comm, &r[kMany + 2]);
  r[kMany + 3] = MPI_REQUEST_NULL;
  MPI_Waitall(kMany + 4, r, MPI_STATUSES_IGNORE);
  must(got == before && twos[1] == g_size, "requests of other calls");
  same("Waitall with others");

  begin(comm, 0, &r[0]);
  begin(comm, 1, &r[1]);
  MPI_Allreduce(g_in[2], g_out[2], kCount, MPI_FLOAT, MPI_SUM, comm);
  begin(comm, 3, &r[2]);
  twos[1] = 0;
  MPI_Allreduce(ones, twos, 2, MPI_INT, MPI_SUM, comm);
  must(twos[1] == g_size, "a blocking sum of ints");
  begin(comm, 4, &r[3]);
  MPI_Barrier(comm);
  MPI_Allreduce(g_in[5], g_out[5], kCount, MPI_FLOAT, MPI_SUM, comm);
  MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
  same("blocking sums between");

  for (int i = 0; i < kMany; ++i) {
    read_from(g_values, g_in[i], sizeof g_values);
    write_to(g_out[i], g_values, sizeof g_values);
    MPI_Iallreduce(MPI_IN_PLACE, g_out[i], kCount, MPI_FLOAT, MPI_SUM, comm, &r[i]);
  }
  MPI_Waitall(kMany, r, MPI_STATUSES_IGNORE);
  same("in place");
}

// Makes sums on two communicators. Every second rank begins them in another order.
static void two_communicators(void) {
  MPI_Comm other;
  MPI_Request r[kMany];
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  blocking(other);
  for (int i = 0; i < kMany; i += 2) {
    const int first = i + g_rank % 2, second = i + 1 - g_rank % 2;
    begin(first % 2 ? other : MPI_COMM_WORLD, first, &r[first]);
    begin(second % 2 ? other : MPI_COMM_WORLD, second, &r[second]);
  }
  MPI_Waitall(kMany, r, MPI_STATUSES_IGNORE);
  same("two communicators");
  begin_all(other, r);
  MPI_Comm_free(&other);
  MPI_Waitall(kMany, r, MPI_STATUSES_IGNORE);
  same("a communicator that was freed");
}

// Lets one rank block, in MPI or elsewhere, while the others wait for its part of a sum.
static void one_blocks(MPI_Comm comm) {
  MPI_Request r, other_r;
  int got = 0;
  begin(comm, 0, &r);
  if (g_rank == 0) {
    MPI_Barrier(comm);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
  } else {
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
  }
  begin(comm, 1, &r);
  if (g_rank == 0) MPI_Recv(&got, 1, MPI_INT, 1, 4, comm, MPI_STATUS_IGNORE);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  if (g_rank == 1) MPI_Send(&g_rank, 1, MPI_INT, 0, 4, comm);
  // Rank 0 blocks while it opens a file that only rank 1 writes to.
  const char* const fifo = "nonblocking.fifo";
  if (g_rank == 0) must(mkfifo(fifo, 0600) == 0, "mkfifo");
  MPI_Barrier(comm);
  begin(comm, 2, &r);
  if (g_rank == 1) MPI_Wait(&r, MPI_STATUS_IGNORE);
  if (g_rank < 2) {
    const int file = open(fifo, g_rank == 0 ? O_RDONLY : O_WRONLY);
    must((g_rank == 0 ? read(file, &got, 1) : write(file, &got, 1)) == 1, "a byte of the file");
    close(file);
  }
  if (g_rank != 1) MPI_Wait(&r, MPI_STATUS_IGNORE);
  if (g_rank == 0) unlink(fifo);
  // Rank 0 blocks in a sum of another communicator.
  MPI_Comm other;
  MPI_Comm_dup(comm, &other);
  begin(comm, 3, &r);
  if (g_rank != 0) MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Allreduce(g_in[4], g_out[4], kCount, MPI_FLOAT, MPI_SUM, other);
  begin(other, 5, &other_r);
  if (g_rank == 0) MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Wait(&other_r, MPI_STATUS_IGNORE);
  MPI_Comm_free(&other);
  same("a rank that blocks");
}

// Makes nonblocking first sums on communicators, which every second rank begins in another order.
// Meanwhile slimpi leaves a sum of another size to MPI, a rank blocks, and a communicator is freed.
static void first_sums(void) {
  MPI_Comm comms[2], freed;
  MPI_Request r[kMany], small, last;
  float ones[8] = {1}, sum[8];
  int got;
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  MPI_Comm_dup(MPI_COMM_WORLD, &freed);
  for (int i = 0; i < kMany; i += 2) {
    const int first = i + g_rank % 2, second = i + 1 - g_rank % 2;
    begin(comms[first % 2], first, &r[first]);
    begin(comms[second % 2], second, &r[second]);
  }
  MPI_Iallreduce(ones, sum, 8, MPI_FLOAT, MPI_SUM, comms[0], &small);
  if (g_rank == 0) MPI_Recv(&got, 1, MPI_INT, 1, 5, comms[0], MPI_STATUS_IGNORE);
  if (g_rank == 1) MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  if (g_rank == 1) MPI_Send(&g_rank, 1, MPI_INT, 0, 5, comms[0]);
  MPI_Barrier(comms[0]);
  MPI_Barrier(comms[1]);
  MPI_Waitall(kMany, r, MPI_STATUSES_IGNORE);
  MPI_Wait(&small, MPI_STATUS_IGNORE);
  must(sum[0] == (float)g_size, "a small sum while the ranks meet");
  same("first sums that are nonblocking");
  begin(freed, 0, &last);
  MPI_Comm_free(&freed);
  MPI_Wait(&last, MPI_STATUS_IGNORE);
  begin(comms[1], 1, &last);
  MPI_Allreduce(g_in[2], g_out[2], kCount, MPI_FLOAT, MPI_SUM, comms[1]);
  MPI_Wait(&last, MPI_STATUS_IGNORE);
  same("a first sum of a communicator that is freed; a blocking one after it");
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&comms[i]);
}

// Makes first sums on three communicators, many times. Each rank begins with another one.
static void crossed_first_sums(void) {
  enum { kComms = 3 };
  for (int round = 0; round < 16; ++round) {
    MPI_Comm comms[kComms];
    MPI_Request r[kComms];
    for (int i = 0; i < kComms; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < kComms; ++i) {
      const int at = (i + g_rank) % kComms;
      begin(comms[at], at, &r[at]);
    }
    MPI_Waitall(kComms, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kComms; ++i) {
      same_of(i, "crossed first sums");
      MPI_Comm_free(&comms[i]);
    }
  }
}

// Makes sums of doubles, which slimpi leaves to MPI: on rank 0 while the ranks agree on the first
// sum, a little later in each step, and on the other ranks afterwards.
static void doubles_meanwhile(void) {
  static double ones[kCount], sums[kCount];
  for (int j = 0; j < kCount; ++j) ones[j] = 1;
  for (int step = 0; step < 32; ++step) {
    MPI_Comm comm;
    MPI_Request first, of_doubles;
    const struct timespec delay = {0, g_rank == 0 ? step * 100000 : 20000000};
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    memset(sums, 0, sizeof sums);
    begin(comm, 0, &first);
    nanosleep(&delay, NULL);
    if (step % 2) {
      MPI_Allreduce(ones, sums, kCount, MPI_DOUBLE, MPI_SUM, comm);
    } else {
      MPI_Iallreduce(ones, sums, kCount, MPI_DOUBLE, MPI_SUM, comm, &of_doubles);
      MPI_Wait(&of_doubles, MPI_STATUS_IGNORE);
    }
    must(sums[kCount - 1] == (double)g_size, "doubles");
    MPI_Wait(&first, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
  }
  same("doubles while the ranks meet");
}

// Prints a digest of the sums of four steps, for algorithms that keep state. The argument says
// whether the sums block.
static void digest(int nonblocking) {
  uint64_t hash = kDigest;
  MPI_Request r[kMany];
  for (int step = 0; step < 4; ++step) {
    if (nonblocking) begin_all(MPI_COMM_WORLD, r);
    for (int i = 0; i < kMany && !nonblocking; ++i)
      MPI_Allreduce(g_in[i], g_out[i], kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (nonblocking) MPI_Waitall(kMany, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kMany; ++i) {
      read_from(g_values, g_out[i], sizeof g_values);
      hash = digest_of(g_values, sizeof g_values, hash);
    }
  }
  if (g_rank == 0) printf("%016" PRIx64 "\n", hash);
}

#ifdef SLIMPI_TEST_PROTECTED
// Tests that bytes of the output that MPI does not write, between blocks and between elements, keep
// what the program writes there while a call is in flight on copies.
enum { kBlock = 5, kGap = 3, kPairs = 6 };
static char* g_output;
static int g_counts[64], g_places[64];
static MPI_Datatype g_spread;  // of two floats with one between them, and one after them

static void start_gather(MPI_Request* request) {
  MPI_Iallgatherv(g_in[0], kBlock, MPI_INT, g_output, g_counts, g_places, MPI_INT, MPI_COMM_WORLD,
                  request);
}
static void start_in_place(MPI_Request* request) {
  MPI_Datatype freed;
  MPI_Type_dup(g_spread, &freed);
  MPI_Iallgather(MPI_IN_PLACE, 0, MPI_INT, g_output, 2, freed, MPI_COMM_WORLD, request);
  MPI_Type_free(&freed);
}
static void start_pairs(MPI_Request* request) {
  MPI_Iallreduce(g_in[0], g_output, kPairs, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD, request);
}
#if HAS_PERSISTENT_SUMS
static MPI_Request g_kept = MPI_REQUEST_NULL;
static void start_kept(MPI_Request* request) {
  if (g_kept == MPI_REQUEST_NULL)
    MPI_Allgatherv_init(g_in[0], kBlock, MPI_INT, g_output, g_counts, g_places, MPI_INT,
                        MPI_COMM_WORLD, MPI_INFO_NULL, &g_kept);
  MPI_Start(&g_kept);
  *request = g_kept;
}
#endif

// Runs the call that start() begins. Its output is `size` elements of `step` bytes each, of which
// MPI writes `used`, from `low` on.
static void keeps_gaps(void (*start)(MPI_Request*), int size, int step, int low, int used,
                       const char* what) {
  char now[4096];
  MPI_Request request;
  memset(now, 1, sizeof now);
  write_to(g_output, now, sizeof now);
  start(&request);
  memset(now, 2, sizeof now);
  for (int i = 0; i <= size; ++i) {
    const int from = i == 0 ? 0 : (i - 1) * step + low + used;
    const int to = i == size ? (int)sizeof now : i * step + low;
    write_to(g_output + from, now + from, (size_t)(to - from));
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  read_from(now, g_output, sizeof now);
  for (int i = 0; i < (int)sizeof now; ++i) {
    const int at = i / step < size ? i % step : step;
    must(at >= low && at < low + used ? now[i] != 2 : now[i] == 2, what);
  }
}

static void gaps(void) {
  const int step = (kBlock + kGap) * (int)sizeof(int), used = kBlock * (int)sizeof(int);
  MPI_Datatype both;
  MPI_Type_vector(2, 1, 2, MPI_FLOAT, &both);
  MPI_Type_create_resized(both, 0, 4 * sizeof(float), &g_spread);
  MPI_Type_commit(&g_spread);
  MPI_Type_free(&both);
  g_output = take(4096);
  for (int i = 0; i < g_size; ++i) {
    g_counts[i] = kBlock;
    g_places[i] = i * (kBlock + kGap) + kGap;
  }
  keeps_gaps(&start_gather, g_size, step, kGap * (int)sizeof(int), used, "between blocks");
#if HAS_PERSISTENT_SUMS
  for (int i = 0; i < 2; ++i)
    keeps_gaps(&start_kept, g_size, step, kGap * (int)sizeof(int), used, "in a persistent call");
  MPI_Request_free(&g_kept);
#endif
  keeps_gaps(&start_in_place, 4 * g_size, 8, 0, 4, "between elements of a derived type");
  keeps_gaps(&start_pairs, kPairs, 16, 0, 12, "between pairs");
  MPI_Type_free(&g_spread);
}
#endif

// Makes a communicator that MPI frees only in MPI_Finalize, because a message on it is pending.
static void freed_late(void) {
  MPI_Comm comm;
  MPI_Request request;
  const struct timespec delay = {0, 100000000};
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  blocking(comm);
  if (g_rank == 0 && g_size > 1) {
    MPI_Isend(g_blocking[0], kCount, MPI_FLOAT, 1, 9, comm, &request);
    MPI_Request_free(&request);
  }
  if (g_rank == 1) {
    nanosleep(&delay, NULL);
    MPI_Recv(g_values, kCount, MPI_FLOAT, 0, 9, comm, MPI_STATUS_IGNORE);
  }
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  MPI_Request request;
  begin_mpi_with(MPI_THREAD_MULTIPLE);
  fill();
  if (argc > 1 && strcmp(argv[1], "digest") == 0) {
    digest(argc > 2);
    MPI_Finalize();
    return 0;
  }
#if HAS_PERSISTENT_SUMS
  set_last_callback();
#endif
  blocking(MPI_COMM_WORLD);
  complete_all(MPI_COMM_WORLD);
  mixed(MPI_COMM_WORLD);
  g_left = argc > 1;
  if (!g_left) one_blocks(MPI_COMM_WORLD);
#if HAS_PERSISTENT_SUMS
  persistent(MPI_COMM_WORLD);
  many_persistent(MPI_COMM_WORLD);
  refused_starts(MPI_COMM_WORLD);
#endif
  two_communicators();
#ifdef SLIMPI_TEST_PROTECTED
  gaps();
#endif
  if (!g_left) first_sums();
  if (!g_left) crossed_first_sums();
  doubles_meanwhile();
  blocking(MPI_COMM_WORLD);
  if (!g_left) {  // not as the standard wants it, but no reason to crash
    begin(MPI_COMM_WORLD, 0, &request);
    MPI_Request_free(&request);
    begin(MPI_COMM_WORLD, 1, &request);
  }
  freed_late();
#if HAS_PERSISTENT_SUMS
  make_last_sums();
#endif
  if (g_rank == 0) printf("PASS nonblocking sums have the bytes of blocking ones\n");
  MPI_Finalize();
  return 0;
}
