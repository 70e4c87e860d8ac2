/* SPDX-License-Identifier: BSD-3-Clause */
/* Float sums of buffers in the protected device's memory: the same bytes as of the same values in
 * host memory, on every rank, whichever ranks and whichever of the two buffers lie there. Run under
 * the preload; the only thing that it does for the device is to be linked with it. With the
 * argument `mixed` only even ranks use the device, for one sum whose bytes the ranks compare;
 * arguments behind the first are the bus ids of the ranks' devices. Prints how many bytes rank 0
 * copied between device and host memory where both of its buffers lay on the device. */
#include "tests/helper/program.h"

#include "tests/helper/collectives.h"
#include "tests/helper/protected_device.h"

enum place { HOST, DEVICE };

static const char* g_collective = "Allreduce"; /* or that of the environment, COLLECTIVE */
static unsigned long long g_messages;          /* copied for those alone */

/* 1 with low_precision_decentralized, which needs a third call: the first call is exact, the second
 * sends differences, and the third shows what the peers got of the differences. */
static int g_replicas;

static float* take(enum place place, size_t bytes) {
  float* memory = place == DEVICE ? slimpi_protected_allocate(bytes) : malloc(bytes);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  return memory;
}

static void release(enum place place, float* memory) {
  if (place == DEVICE)
    slimpi_protected_free(memory);
  else
    free(memory);
}

static void copy(void* to, const void* from, size_t bytes, enum place to_place,
                 enum place from_place) {
  if (to_place == DEVICE)
    slimpi_protected_write(to, from, bytes);
  else if (from_place == DEVICE)
    slimpi_protected_read(to, from, bytes);
  else
    memcpy(to, from, bytes);
}

/* Elements of a sum that this rank gets. */
static size_t own_count(size_t count, int* blocks) {
  if (!names_blocks(g_collective)) return count;
  divide_blocks(g_collective, (long)count, g_size, blocks);
  return (size_t)blocks[g_rank];
}

/* Sums `values` twice or three times in the same buffers, each time half of the last result. */
static void sum_on(MPI_Comm comm, enum place in_place, enum place out_place, int inplace,
                   const float* values, float* result, size_t count) {
  const size_t bytes = count * sizeof(float);
  int blocks[MOST_RANKS] = {0};
  const size_t own = own_count(count, blocks);
  const size_t total = names_blocks(g_collective)
                           ? (size_t)divide_blocks(g_collective, (long)count, g_size, blocks)
                           : count;
  float *input = malloc(bytes), *after = malloc(bytes);
  float *in = inplace ? NULL : take(in_place, bytes), *out = take(out_place, bytes);
  memcpy(input, values, bytes);
  for (int call = 0; call < 2 + g_replicas; ++call) {
    copy(out, inplace ? input : values, bytes, out_place, HOST);
    if (!inplace) copy(in, input, bytes, in_place, HOST);
    sum_floats(g_collective, inplace ? MPI_IN_PLACE : in, out, (long)total, blocks, 0, comm);
    memset(result, 0, bytes);
    copy(result, out, own * sizeof(float), HOST, out_place);
    if (!inplace) copy(after, in, bytes, HOST, in_place);
    if (!inplace && memcmp(after, input, bytes) != 0) {
      printf("rank %d: the input was changed\n", g_rank);
      ++g_failures;
    }
    for (size_t i = 0; i < count; ++i) input[i] = 0.5f * result[i];
  }
  if (!inplace) release(in_place, in);
  release(out_place, out);
  free(after);
  free(input);
}

/* Sums on a new communicator, so that random streams and state are those of a first and a second
 * call. */
static void sum(enum place in_place, enum place out_place, int inplace, const float* values,
                float* result, size_t count) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  sum_on(comm, in_place, out_place, inplace, values, result, count);
  MPI_Comm_free(&comm);
}

static void check_count(size_t count) {
  const size_t bytes = count * sizeof(float);
  float *values = malloc(bytes), *expected = malloc(bytes), *result = malloc(bytes);
  unsigned state = 12345u + 77u * (unsigned)g_rank;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] = (float)(int)(state >> 8) * 0x1p-24f - 0.5f;
  }
  /* An infinity is among the values. With replicas only the sum of 1000 values has one, because MPI
   * makes sums of infinities then. */
  if (g_replicas ? count == 1000 : count > 5000)
    values[count / 2] = g_rank == 1 ? 1.0f / 0.0f : 0.0f;
  sum(HOST, HOST, 0, values, expected, count);
  for (int kind = 0; kind < 5; ++kind) {
    const int mine = kind != 4 || g_rank % 2 == 0; /* in kind 4 only even ranks use the device */
    const enum place in = mine && kind != 2 ? DEVICE : HOST;
    const enum place out = mine && kind != 3 ? DEVICE : HOST;
    const unsigned long before = slimpi_protected_work();
    const unsigned long long copied = slimpi_protected_host_bytes();
    sum(in, out, kind == 1, values, result, count);
    if (in == DEVICE && out == DEVICE) g_messages += slimpi_protected_host_bytes() - copied;
    if (memcmp(result, expected, bytes) != 0) {
      size_t i = 0;
      while (memcmp(&result[i], &expected[i], sizeof(float)) == 0) ++i;
      printf("rank %d: %zu elements, kind %d: element %zu is %a, %a from host memory\n", g_rank,
             count, kind, i, result[i], expected[i]);
      ++g_failures;
    }
    int blocks[MOST_RANKS]; /* with none of the sum the place of the input decides */
    const int works = mine && (own_count(count, blocks) != 0 || in == DEVICE);
    if (works && slimpi_protected_work() == before) {
      printf("rank %d: %zu elements, kind %d: the device had no work\n", g_rank, count, kind);
      ++g_failures;
    }
  }
  free(values);
  free(expected);
  free(result);
}

/* Moves the buffers between the calls on one communicator, on some ranks or on all: the bytes stay
 * the same. */
static void check_changing(void) {
  enum { kCount = 100003 };
  static float values[kCount], result[kCount], expected[kCount];
  const enum place even = g_rank % 2 == 0 ? DEVICE : HOST, odd = g_rank % 2 == 0 ? HOST : DEVICE;
  const enum place places[] = {HOST, DEVICE, even, DEVICE, odd, HOST, even, even, DEVICE};
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < kCount; ++i) values[i] = (float)((i + 5 * g_rank) % 97) / 7.0f;
  sum(HOST, HOST, 0, values, expected, kCount);
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
    sum_on(comm, places[i], places[i], 0, values, result, kCount);
    if (memcmp(result, expected, sizeof result) == 0) continue;
    printf("rank %d: other bytes in call %zu\n", g_rank, i);
    ++g_failures;
  }
  MPI_Comm_free(&comm);
}

/* Even ranks' buffers lie on the device, odd ranks' do not, after a sum that had none on it. */
static void check_mixed(void) {
  enum { kCount = 100003, kBefore = 1000 };
  static float values[kCount], result[kCount];
  const enum place place = g_rank % 2 == 0 ? DEVICE : HOST;
  for (int i = 0; i < kCount; ++i) values[i] = (float)((i + 5 * g_rank) % 97) / 7.0f;
  sum_on(MPI_COMM_WORLD, HOST, HOST, 0, values, result, kBefore);
  sum_on(MPI_COMM_WORLD, place, place, 0, values, result, kCount);
  check(has_rank_0_s(result, sizeof result), "other bytes than rank 0");
}

int main(int argc, char** argv) {
  begin_mpi();
  if (getenv("COLLECTIVE") != NULL) g_collective = getenv("COLLECTIVE");
  const char* const algorithm = getenv("SLIMPI_ALGORITHM");
  g_replicas = algorithm != NULL && strcmp(algorithm, "low_precision_decentralized") == 0;
  for (int i = 2; i < argc; ++i)
    if (g_rank == i - 2) slimpi_protected_put_on_bus(argv[i]);
  /* MPI's own collectives keep a core busy while they wait, so many ranks take long. */
  const size_t counts[] = {1000, 100003, 1, 300000}, number = g_size > 2 ? 3 : 4;
  const char* const what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "mixed") == 0)
    check_mixed();
  else if (strcmp(what, "changing") == 0)
    check_changing();
  else
    for (size_t i = 0; i < number; ++i) check_count(counts[i]);
  if (g_rank == 0) printf("message bytes %llu\n", g_messages);
  return end_mpi();
}
