/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI that fails now and then: preloaded behind slimpi, it stands in for the functions that
 * carry slimpi's messages. TEST_FAULT=KIND:RANK:NUMBER picks which one of a rank's messages:
 *   send, receive  the call returns MPI_ERR_OTHER
 *   deaf           this and all later receives return it
 *   short          half of the message is sent
 *   garbled        the first word of the message is another
 *   damaged        a bit in the middle of its header is another
 *   flipped        a bit of a value in its payload is another; TEST_FLIP=WORD:BIT in the
 *                  environment picks which one of the message
 *   agree          the call returns MPI_ERR_OTHER, of messages by which ranks agree
 * Others are messages of 32-bit words, those of agreements have 64-bit words. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void* next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == NULL) abort();
  return found;
}
#define NEXT(name) ((__typeof__(&name))next(#name))

/* Is this call of `kind`, the counter's next, the one to spoil? */
static int due(const char* kind, atomic_int* counter) {
  const char* wanted = getenv("TEST_FAULT");
  int rank = -1, number = 0, my_rank = 0, length = (int)strlen(kind);
  if (wanted == NULL || strncmp(wanted, kind, strlen(kind)) != 0 || wanted[length] != ':') return 0;
  if (sscanf(wanted + length, ":%d:%d", &rank, &number) != 2) return 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  return my_rank == rank && atomic_fetch_add(counter, 1) + 1 == number;
}

int PMPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  static atomic_int sent, shortened, garbled, damaged, flipped, agreed;
  if (type == MPI_UINT64_T && due("agree", &agreed)) return MPI_ERR_OTHER;
  if (type == MPI_UINT32_T) {
    if (due("send", &sent)) return MPI_ERR_OTHER;
    if (due("short", &shortened)) count /= 2;
    int changed = due("garbled", &garbled) ? 0 : due("damaged", &damaged) ? 5 : -1, bit = 2;
    if (due("flipped", &flipped)) {
      const char* place = getenv("TEST_FLIP");
      if (place == NULL || sscanf(place, "%d:%d", &changed, &bit) != 2) changed = 20, bit = 22;
      changed = changed < count ? changed : count - 1;
    }
    if (changed >= 0) {
      unsigned* copy = malloc((size_t)count * sizeof *copy); /* MPI's from here on */
      memcpy(copy, data, (size_t)count * sizeof *copy);
      copy[changed] ^= 1u << bit;
      data = copy;
    }
  }
  return NEXT(PMPI_Isend)(data, count, type, to, tag, comm, request);
}

int PMPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
               MPI_Request* request) {
  static atomic_int received, heard;
  static int deaf;
  if (type == MPI_UINT32_T) {
    if (!deaf) deaf = due("deaf", &heard);
    if (deaf || due("receive", &received)) return MPI_ERR_OTHER;
  }
  return NEXT(PMPI_Irecv)(data, count, type, from, tag, comm, request);
}
