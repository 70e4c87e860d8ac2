/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allreduce of buffers in GPU memory under slimpi against what a program does by hand with an
 * MPI that knows nothing of GPUs: copy to pinned host memory, MPI's own allreduce, copy back. The
 * two take turns in one run; the medians count, of the slowest rank. Run under the preload; exits
 * 77 without a GPU. Usage: end_to_end FILE SIZE... (such as 64K, 16M, 1G). With GPU_RANKS=n only
 * the first n ranks have GPU buffers, the others host buffers: on a machine with one GPU, ranks
 * that share it measure its time slices. The file is complete after every size. */
#include "tests/helper/base/program.h"

#include "tests/helper/devices/gpu.h"

enum { TURNS = 7 };

static enum gpu_memory g_kind = GPU_DEVICE; /* of this rank's buffers */
static float *g_values, *g_pinned, *g_in, *g_out;

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static size_t bytes_of(const char* text) {
  char* end = NULL;
  const size_t number = (size_t)strtoull(text, &end, 10);
  return number << (*end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0);
}

static void by_slimpi(size_t count) {
  MPI_Allreduce(g_in, g_out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void by_hand(size_t count) {
  const size_t bytes = count * sizeof(float);
  if (g_kind == GPU_HOST) {
    PMPI_Allreduce(g_in, g_out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return;
  }
  gpu_copy(g_pinned, GPU_PINNED, g_in, GPU_DEVICE, bytes);
  PMPI_Allreduce(MPI_IN_PLACE, g_pinned, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  gpu_copy(g_out, GPU_DEVICE, g_pinned, GPU_PINNED, bytes);
}

/* Seconds of the slowest rank. */
static double seconds_of(void (*way)(size_t), size_t count) {
  double seconds, slowest;
  PMPI_Barrier(MPI_COMM_WORLD);
  seconds = MPI_Wtime();
  way(count);
  seconds = MPI_Wtime() - seconds;
  PMPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

static void read_out(float* to, size_t bytes) {
  gpu_copy(to, GPU_HOST, g_out, g_kind, bytes);
}

/* Returns the relative error of `got` on this rank in the L2 norm. */
static double error_of(const float* got, const float* exact, size_t count) {
  double difference = 0, all = 0;
  for (size_t i = 0; i < count; ++i) {
    difference += ((double)got[i] - exact[i]) * ((double)got[i] - exact[i]);
    all += (double)exact[i] * exact[i];
  }
  return all > 0 ? sqrt(difference / all) : sqrt(difference);
}

static void measure(FILE* file, const char* separator, size_t bytes) {
  const size_t count = bytes / sizeof(float);
  float *got = malloc(bytes), *exact = malloc(bytes);
  double slimpi[TURNS], hand[TURNS];
  unsigned state = 1u + (unsigned)g_rank;
  g_values = malloc(bytes);
  g_pinned = gpu_take(GPU_PINNED, bytes);
  g_in = gpu_take(g_kind, bytes);
  g_out = gpu_take(g_kind, bytes);
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    g_values[i] = (float)(int)(state >> 8) * 0x1p-24f - 0.5f;
  }
  gpu_copy(g_in, g_kind, g_values, GPU_HOST, bytes);
  by_hand(count);
  read_out(exact, bytes);
  by_slimpi(count);
  read_out(got, bytes);
  for (int turn = 0; turn < TURNS; ++turn) {
    hand[turn] = seconds_of(by_hand, count);
    slimpi[turn] = seconds_of(by_slimpi, count);
  }
  qsort(slimpi, TURNS, sizeof *slimpi, ascending);
  qsort(hand, TURNS, sizeof *hand, ascending);
  const double ours = slimpi[TURNS / 2], theirs = hand[TURNS / 2];
  const double error = error_of(got, exact, count);
  if (g_rank == 0) {
    fprintf(file,
            "%s\n {\"bytes\": %zu, \"ranks\": %d, \"slimpi_ms\": %.3f, \"by_hand_ms\": %.3f, "
            "\"times_faster\": %.2f, \"error\": %.2e}\n]\n",
            separator, bytes, g_size, 1e3 * ours, 1e3 * theirs, theirs / ours, error);
    /* The next row overwrites the end of the list. */
    if (fflush(file) != 0 || fseek(file, -3, SEEK_CUR) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    printf("%12zu bytes: slimpi %10.3f ms, by hand %10.3f ms, %.2f times faster, error %.2e\n",
           bytes, 1e3 * ours, 1e3 * theirs, theirs / ours, error);
    fflush(stdout);
  }
  gpu_give_back(g_kind, g_in);
  gpu_give_back(g_kind, g_out);
  gpu_give_back(GPU_PINNED, g_pinned);
  free(g_values);
  free(got);
  free(exact);
}

int main(int argc, char** argv) {
  begin_mpi();
  const char* const gpu_ranks = getenv("GPU_RANKS");
  if (gpu_ranks != NULL && g_rank >= atoi(gpu_ranks)) g_kind = GPU_HOST;
  exit_unless_0(argc < 3 ? 2 : gpu_open());
  FILE* const file = g_rank == 0 ? fopen(argv[1], "w") : NULL;
  if (g_rank == 0 && file == NULL) {
    perror(argv[1]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (file != NULL) fprintf(file, "[");
  for (int i = 2; i < argc; ++i) measure(file, i == 2 ? "" : ",", bytes_of(argv[i]));
  if (file != NULL) fclose(file);
  MPI_Finalize();
  return 0;
}
