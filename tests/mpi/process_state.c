/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that changes its process between MPI_Init and its first float sum: the directory
 * (chdir DIRECTORY), how long a file may be (fsize BYTES), or its standard streams, which it closes
 * (streams closed). Prints "right" where the sums are, and where closed streams stay closed. */
#include "tests/helper/program.h"

#include <fcntl.h>
#include <sys/resource.h>

enum { COUNT = 20000 };
static float in[COUNT], out[COUNT];

/* The file descriptor to which "right" is written. */
static int answers = STDOUT_FILENO;

static int close_streams(void) {
  answers = fcntl(STDOUT_FILENO, F_DUPFD, 100);
  return answers < 0 || close(0) != 0 || close(1) != 0 || close(2) != 0;
}

static int open_streams(void) {
  int count = 0;
  for (int file = 0; file < 3; ++file) count += fcntl(file, F_GETFD) >= 0;
  return count;
}

static int change(const char* what, const char* value) {
  if (strcmp(what, "streams") == 0) return close_streams();
  const rlim_t bytes = strtoul(value, NULL, 10);
  const struct rlimit limit = {bytes, bytes};
  return strcmp(what, "chdir") == 0 ? chdir(value) : setrlimit(RLIMIT_FSIZE, &limit);
}

int main(int argc, char** argv) {
  int bad = 0;
  if (argc != 3) return 2;
  begin_mpi();
  if (change(argv[1], argv[2]) != 0) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int call = 0; call < 5; ++call) {
    for (int i = 0; i < COUNT; ++i) in[i] = (float)call;
    memset(out, 0xff, sizeof out);
    MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; ++i) bad |= out[i] != (float)(call * g_size);
  }
  if (answers != STDOUT_FILENO) bad |= open_streams() != 0;
  MPI_Finalize();
  if (g_rank == 0) dprintf(answers, bad ? "wrong\n" : "right\n");
  return bad;
}
