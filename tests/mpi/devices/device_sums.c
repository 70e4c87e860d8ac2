/* SPDX-License-Identifier: BSD-3-Clause */
/* Float sums of buffers in device memory: the same bytes as of the same values in host memory, on
 * every rank, whichever ranks and whichever of the two buffers lie there. Run under the preload.
 * Built twice: devices/protected uses the protected device, of which the preload knows only by this
 * program's link to it; tests/gpu/sums uses memory of every kind of a GPU or of the fake driver,
 * and exits 77 without. Usage: WHAT [BUS-ID...]
 *   mixed     only even ranks use the device, for one sum whose bytes the ranks compare
 *   changing  the buffers move between the calls on one communicator
 *   managed   on a GPU, managed memory is tried, too, which the fake driver always has
 *   or another word; the bus ids are those of the ranks' protected devices
 * In the environment: COLLECTIVE, one of helper/mpi/collectives.h; SHORT, only one length, for
 * tools that make a GPU slow; LONG=WAYS, only one length of several messages, by the first WAYS;
 * EXACT, no sum is rounded: on one node slimpi adds the buffers of a GPU, and MPI those of the
 * host, maybe in another order. Of the protected device rank 0 prints how many bytes it copied
 * between device and host memory where both of its buffers lay on the device. */
#include "tests/helper/base/program.h"

#include "tests/helper/mpi/collectives.h"
#include "tests/helper/devices/gpu.h"
#ifdef SLIMPI_TEST_GPU
enum { PROTECTED = 0 };
static unsigned long work(void) {
  return 0;
}
static unsigned long long host_bytes(void) {
  return 0;
}
#else
#include "tests/helper/devices/protected_device.h"
enum { PROTECTED = 1 };
#define work slimpi_protected_work
#define host_bytes slimpi_protected_host_bytes
#endif

static const char* const kNames[] = {"host",   "device",     "pool",   "managed",
                                     "pinned", "second GPU", "virtual"};

struct way {
  enum gpu_memory in, out;
  int inplace, even_only;
};
static const struct way kHost = {GPU_HOST, GPU_HOST, 0, 0};
static const struct way kWays[] = {
    {GPU_DEVICE, GPU_DEVICE, 0, 0},   {GPU_DEVICE, GPU_DEVICE, 1, 0},
    {GPU_HOST, GPU_DEVICE, 0, 0},     {GPU_DEVICE, GPU_HOST, 0, 0},
    {GPU_DEVICE, GPU_DEVICE, 0, 1},   {GPU_POOL, GPU_MANAGED, 0, 0},
    {GPU_MANAGED, GPU_POOL, 0, 0},    {GPU_PINNED, GPU_DEVICE, 0, 0},
    {GPU_PINNED, GPU_PINNED, 1, 0},   {GPU_SECOND, GPU_SECOND, 0, 0},
    {GPU_SECOND, GPU_DEVICE, 0, 0},   {GPU_SECOND, GPU_SECOND, 1, 1},
    {GPU_VIRTUAL, GPU_VIRTUAL, 0, 0}, {GPU_VIRTUAL, GPU_VIRTUAL, 1, 1},
};
enum { ALL_WAYS = sizeof kWays / sizeof *kWays, WAYS_OF_A_DEVICE = 5 };

static const char* g_collective = "Allreduce";
static int g_calls; /* on each communicator */
static int g_managed, g_exact, g_replicas;
static unsigned long long g_messages; /* copied for those alone */

/* Returns how many elements of a sum this rank gets. Writes the blocks of all ranks to `blocks`,
 * and the number of all elements to `total`. */
static size_t own_count(size_t count, int* blocks, size_t* total) {
  *total = count;
  const int gathers = names_gather(g_collective);
  if (!names_blocks(g_collective) && !gathers) return count;
  *total = (size_t)divide_blocks(g_collective, (long)count, g_size, blocks);
  return gathers ? *total : (size_t)blocks[g_rank];
}

/* Sums `values`, and then several times half of the last result in the same buffers. Only the first
 * call has an infinity. Input on a device is written by work that is still queued when the program
 * calls MPI. */
static void sum_on(MPI_Comm comm, struct way way, const float* values, float* result,
                   size_t count) {
  const size_t bytes = count * sizeof(float);
  int blocks[MOST_RANKS] = {0};
  size_t total;
  const size_t own = own_count(count, blocks, &total);
  float *input = malloc(bytes), *after = malloc(bytes);
  float* const out = gpu_take(way.out, bytes);
  float* const in = way.inplace ? out : gpu_take(way.in, bytes);
  float* const source = gpu_take(way.in, bytes);
  const enum gpu_memory kind = way.inplace ? way.out : way.in;
  memcpy(input, values, bytes);
  for (int call = 0; call < g_calls; ++call) {
    if (!way.inplace) gpu_copy(out, way.out, values, GPU_HOST, bytes);
    if (kind == GPU_DEVICE && way.in == GPU_DEVICE) {
      gpu_copy(source, way.in, input, GPU_HOST, bytes);
      gpu_queue_copy(in, source, bytes);
    } else {
      gpu_copy(in, kind, input, GPU_HOST, bytes);
    }
    void* const context = gpu_current();
    sum_floats(g_collective, way.inplace ? MPI_IN_PLACE : in, out, (long)total, blocks, 0, comm);
    check(gpu_current() == context, "another context is current after the call");
    memset(result, 0, bytes);
    gpu_copy(result, GPU_HOST, out, way.out, own * sizeof(float));
    gpu_copy(after, GPU_HOST, in, kind, bytes);
    check(way.inplace || memcmp(after, input, bytes) == 0, "the input was changed");
    for (size_t i = 0; i < count; ++i)
      input[i] = isfinite(result[i]) ? 0.5f * result[i] : (float)(g_rank + 1);
  }
  if (!way.inplace) gpu_give_back(way.in, in);
  gpu_give_back(way.out, out);
  gpu_give_back(way.in, source);
  free(after);
  free(input);
}

/* Sums on a new communicator, so that random streams and state are those of first calls. */
static void sum(struct way way, const float* values, float* result, size_t count) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  sum_on(comm, way, values, result, count);
  MPI_Comm_free(&comm);
}

static void check_count(size_t count, size_t ways) {
  const size_t bytes = count * sizeof(float);
  float *values = malloc(bytes), *expected = malloc(bytes), *result = malloc(bytes);
  unsigned state = 12345u + 77u * (unsigned)g_rank;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] = (float)(int)(g_exact ? state >> 18 << 10 : state >> 8) * 0x1p-24f - 0.5f;
  }
  /* With replicas, only the sum of 1000 values has an infinity, because slimpi leaves these sums to
   * MPI. */
  if (g_replicas ? count == 1000 : count > 5000)
    values[count / 2] = g_rank == 1 ? 1.0f / 0.0f : 0.0f;
  sum(kHost, values, expected, count);
  for (size_t w = 0; w < ways; ++w) {
    struct way way = kWays[w];
    if (!g_managed && (way.in == GPU_MANAGED || way.out == GPU_MANAGED)) continue;
    if (way.even_only && g_rank % 2 != 0) way.in = way.out = GPU_HOST;
    const unsigned long before = work();
    const unsigned long long copied = host_bytes();
    sum(way, values, result, count);
    if (way.in == GPU_DEVICE && way.out == GPU_DEVICE) g_messages += host_bytes() - copied;
    int blocks[MOST_RANKS]; /* a buffer without elements gives the device no work */
    size_t total;
    const size_t own = own_count(count, blocks, &total);
    const size_t passed = names_gather(g_collective) ? (size_t)blocks[g_rank] : total;
    const int works = (way.in != GPU_HOST && passed != 0) || (way.out != GPU_HOST && own != 0);
    check(!PROTECTED || !works || work() != before, "the device had no work");
    if (memcmp(result, expected, bytes) == 0) continue;
    size_t i = 0;
    while (memcmp(&result[i], &expected[i], sizeof(float)) == 0) ++i;
    printf("rank %d: %zu elements, %s to %s memory%s: element %zu is %a, %a from host memory\n",
           g_rank, count, kNames[way.in], kNames[way.out], way.inplace ? " in place" : "", i,
           result[i], expected[i]);
    ++g_failures;
  }
  free(values);
  free(expected);
  free(result);
}

enum { COUNT = 100003, BEFORE = 1000 };
static float g_values[COUNT], g_result[COUNT], g_expected[COUNT];

static struct way in_memory(enum gpu_memory kind) {
  const struct way way = {kind, kind, 0, 0};
  return way;
}

/* Moves the buffers between the calls on one communicator, on some ranks or on all. The results
 * must not change. */
static void check_changing(void) {
  const enum gpu_memory even = g_rank % 2 == 0 ? GPU_DEVICE : GPU_HOST,
                        odd = g_rank % 2 == 0 ? GPU_HOST : GPU_DEVICE;
  const enum gpu_memory kinds[] = {GPU_HOST, GPU_DEVICE, even, GPU_DEVICE, odd,
                                   GPU_HOST, even,       even, GPU_DEVICE};
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  sum(kHost, g_values, g_expected, COUNT);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    sum_on(comm, in_memory(kinds[i]), g_values, g_result, COUNT);
    check(memcmp(g_result, g_expected, sizeof g_result) == 0, "other bytes in a later call");
  }
  MPI_Comm_free(&comm);
}

/* Makes a sum with buffers on the device on even ranks only, after a sum without buffers on it. */
static void check_mixed(void) {
  sum_on(MPI_COMM_WORLD, kHost, g_values, g_result, BEFORE);
  sum_on(MPI_COMM_WORLD, in_memory(g_rank % 2 == 0 ? GPU_DEVICE : GPU_HOST), g_values, g_result,
         COUNT);
  check(has_rank_0_s(g_result, sizeof g_result), "other bytes than rank 0");
}

/* Makes sums of many lengths. Without a GPU there are few lengths for many ranks, because MPI's
 * collectives keep a core busy while they wait, and there are fewer cores than ranks. */
static void check_counts(void) {
  const int brief = getenv("SHORT") != NULL;
  const int fake_driver = gpu_function("slimpi_fake_memory") != NULL;
  const char* const longer = getenv("LONG");
  if (longer != NULL) {
    check_count(1200003, (size_t)atoi(longer));
  } else if (PROTECTED) {
    const size_t counts[] = {1000, 100003, 1, 300000};
    for (int i = 0; i < (g_size > 2 ? 3 : 4); ++i) check_count(counts[i], WAYS_OF_A_DEVICE);
  } else {
    if (!brief) check_count(1, ALL_WAYS);
    if (!brief && (!fake_driver || g_size == 2)) check_count(1000, ALL_WAYS);
    check_count(20003, brief ? 3 : ALL_WAYS);
    if (g_exact && !brief) check_count(400003, ALL_WAYS); /* several blocks */
    if (!brief && !fake_driver) check_count(3000017, ALL_WAYS);
  }
}

int main(int argc, char** argv) {
  begin_mpi();
  exit_unless_0(gpu_open());
  gpu_use_second();
  const char *const what = argc > 1 ? argv[1] : "", *const algorithm = getenv("SLIMPI_ALGORITHM");
  if (getenv("COLLECTIVE") != NULL) g_collective = getenv("COLLECTIVE");
  g_exact = getenv("EXACT") != NULL;
  g_managed = gpu_function("slimpi_fake_memory") != NULL || strcmp(what, "managed") == 0;
  /* The first call with replicas is exact, the second one sends differences, and the third one
   * shows what the peers got of these. Messages of long sums may get longer before call 4. */
  g_replicas = algorithm != NULL && strcmp(algorithm, "low_precision_decentralized") == 0;
  g_calls = getenv("LONG") != NULL ? 5 : PROTECTED && !g_replicas ? 2 : 3;
#ifndef SLIMPI_TEST_GPU
  for (int i = 2; i < argc; ++i)
    if (g_rank == i - 2) slimpi_protected_put_on_bus(argv[i]);
#endif
  for (int i = 0; i < COUNT; ++i) g_values[i] = (float)((i + 5 * g_rank) % 97) / 7.0f;
  if (strcmp(what, "mixed") == 0)
    check_mixed();
  else if (strcmp(what, "changing") == 0)
    check_changing();
  else
    check_counts();
  if (PROTECTED && g_rank == 0) printf("message bytes %llu\n", g_messages);
  return end_mpi();
}
