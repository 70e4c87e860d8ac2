/* SPDX-License-Identifier: BSD-3-Clause */
/* Float sums of buffers in GPU memory of every kind: the same bytes as of the same values in host
 * memory, on every rank, whichever ranks and whichever of the two buffers lie there. Run under the
 * preload, with a GPU or the fake driver; exits 77 without. On a GPU, managed memory is
 * tried only with the argument `managed`. With SHORT in the environment only one length, for tools
 * that make it slow, and with LONG only one of several messages. With EXACT no sum is
 * rounded: on one node slimpi adds the buffers of a GPU, and MPI those of the host, maybe in
 * another order. */
#include "tests/helper/program.h"

#include "tests/helper/gpu.h"

static int g_calls = 3; /* on each communicator */
static int g_managed, g_exact;

static const char* const kNames[] = {"host",   "device",     "pool",   "managed",
                                     "pinned", "second GPU", "virtual"};

/* Sums `values` and then, again and again, half of the last result in the same buffers, on a
 * communicator of its own, so that random streams and state are those of the first calls. Only the
 * first call has an infinity. Half way the input is written by work that is still queued when MPI
 * is called. */
static void sum(enum gpu_memory in_kind, enum gpu_memory out_kind, int inplace, const float* values,
                float* result, size_t count) {
  const size_t bytes = count * sizeof(float);
  float *input = malloc(bytes), *after = malloc(bytes);
  float* in = inplace ? NULL : gpu_take(in_kind, bytes);
  float* out = gpu_take(out_kind, bytes);
  float* source = gpu_take(in_kind, bytes);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  memcpy(input, values, bytes);
  for (int call = 0; call < g_calls; ++call) {
    const enum gpu_memory kind = inplace ? out_kind : in_kind;
    float* const target = inplace ? out : in;
    if (!inplace) gpu_copy(out, out_kind, values, GPU_HOST, bytes);
    if (kind == GPU_DEVICE && in_kind == GPU_DEVICE) {
      gpu_copy(source, in_kind, input, GPU_HOST, bytes);
      gpu_queue_copy(target, source, bytes);
    } else {
      gpu_copy(target, kind, input, GPU_HOST, bytes);
    }
    void* const context = gpu_current();
    MPI_Allreduce(inplace ? MPI_IN_PLACE : in, out, (int)count, MPI_FLOAT, MPI_SUM, comm);
    check(gpu_current() == context, "another context is current after the call");
    gpu_copy(result, GPU_HOST, out, out_kind, bytes);
    if (!inplace) gpu_copy(after, GPU_HOST, in, in_kind, bytes);
    check(inplace || memcmp(after, input, bytes) == 0, "the input was changed");
    for (size_t i = 0; i < count; ++i)
      input[i] = isfinite(result[i]) ? 0.5f * result[i] : (float)(g_rank + 1);
  }
  MPI_Comm_free(&comm);
  if (!inplace) gpu_give_back(in_kind, in);
  gpu_give_back(out_kind, out);
  gpu_give_back(in_kind, source);
  free(after);
  free(input);
}

struct way {
  enum gpu_memory in, out;
  int inplace, even_only;
};

static const struct way kWays[] = {
    {GPU_DEVICE, GPU_DEVICE, 0, 0},   {GPU_DEVICE, GPU_DEVICE, 1, 0},
    {GPU_HOST, GPU_DEVICE, 0, 0},     {GPU_DEVICE, GPU_HOST, 0, 0},
    {GPU_DEVICE, GPU_DEVICE, 0, 1},   {GPU_POOL, GPU_MANAGED, 0, 0},
    {GPU_MANAGED, GPU_POOL, 0, 0},    {GPU_PINNED, GPU_DEVICE, 0, 0},
    {GPU_PINNED, GPU_PINNED, 1, 0},   {GPU_SECOND, GPU_SECOND, 0, 0},
    {GPU_SECOND, GPU_DEVICE, 0, 0},   {GPU_SECOND, GPU_SECOND, 1, 1},
    {GPU_VIRTUAL, GPU_VIRTUAL, 0, 0}, {GPU_VIRTUAL, GPU_VIRTUAL, 1, 1},
};

static void check_count(size_t count, size_t ways) {
  const size_t bytes = count * sizeof(float);
  float *values = malloc(bytes), *expected = malloc(bytes), *result = malloc(bytes);
  unsigned state = 12345u + 77u * (unsigned)g_rank;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] = (float)(int)(g_exact ? state >> 18 << 10 : state >> 8) * 0x1p-24f - 0.5f;
  }
  if (count > 5000) values[4321] = g_rank == 1 ? 1.0f / 0.0f : 0.0f;
  sum(GPU_HOST, GPU_HOST, 0, values, expected, count);
  for (size_t w = 0; w < ways; ++w) {
    struct way way = kWays[w];
    if (!g_managed && (way.in == GPU_MANAGED || way.out == GPU_MANAGED)) continue;
    if (way.even_only && g_rank % 2 != 0) way.in = way.out = GPU_HOST;
    sum(way.in, way.out, way.inplace, values, result, count);
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

int main(int argc, char** argv) {
  begin_mpi();
  const size_t ways = sizeof kWays / sizeof *kWays;
  exit_unless_0(gpu_open());
  gpu_use_second();
  const int fake_driver = gpu_function("slimpi_fake_memory") != NULL;
  const int brief = getenv("SHORT") != NULL;
  g_managed = fake_driver || (argc > 1 && strcmp(argv[1], "managed") == 0);
  g_exact = getenv("EXACT") != NULL;
  /* Messages of long sums may get longer before the fourth call on a communicator. */
  const char* const longer = getenv("LONG"); /* how many of the ways */
  g_calls = longer != NULL ? 5 : 3;
  if (longer != NULL) check_count(1200003, (size_t)atoi(longer));
  /* Where there is no GPU there are few cores, and many ranks take long. */
  const int all = !brief && longer == NULL;
  if (all) check_count(1, ways);
  if (all && (!fake_driver || g_size == 2)) check_count(1000, ways);
  if (longer == NULL) check_count(20003, brief ? 3 : ways);
  if (g_exact && !brief) check_count(400003, ways); /* several blocks */
  if (!brief && longer == NULL && !fake_driver) check_count(3000017, ways);
  return end_mpi();
}
