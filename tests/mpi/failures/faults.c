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
 *   copy, split    a call makes a communicator, but returns it on the other ranks only; split:
 *                  MPI_Comm_split_type
 *   agree, late    the call returns MPI_ERR_OTHER, or comes TEST_SECONDS later; of messages with
 *                  which ranks agree
 *   stop           after this send the process stops for TEST_SECONDS in the environment; counts
 *                  only messages of TEST_BYTES or more, with the tag (modulo 16) TEST_TAG. A rank
 *                  that receives into memory of a message that it has given up says so and aborts
 * Others are messages of 32-bit words, those of agreements have 64-bit words. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/helper/base/children.h"
#include "tests/helper/mpi/next.h"

/* Returns whether this call of `kind`, which the counter counts, is the one that must fail. */
static int due(const char* kind, atomic_int* counter) {
  const char* wanted = getenv("TEST_FAULT");
  int rank = -1, number = 0, my_rank = 0, length = (int)strlen(kind);
  if (wanted == NULL || strncmp(wanted, kind, strlen(kind)) != 0 || wanted[length] != ':') return 0;
  if (sscanf(wanted + length, ":%d:%d", &rank, &number) != 2) return 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  return my_rank == rank && atomic_fetch_add(counter, 1) + 1 == number;
}

static long number_in(const char* name) {
  const char* text = getenv(name);
  return text == NULL ? 0 : atol(text);
}

int PMPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  static atomic_int sent, shortened, garbled, damaged, flipped, agreed, waited, stopped;
  if (type == MPI_UINT64_T && due("agree", &agreed)) return MPI_ERR_OTHER;
  if (type == MPI_UINT64_T && due("late", &waited)) sleep((unsigned)number_in("TEST_SECONDS"));
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
  const int code = NEXT(PMPI_Isend)(data, count, type, to, tag, comm, request);
  if (type == MPI_UINT32_T && tag % 16 == number_in("TEST_TAG") &&
      count >= number_in("TEST_BYTES") / 4 && due("stop", &stopped))
    stop_for(1000 * (int)number_in("TEST_SECONDS"));
  return code;
}

/* The last receive of each request, and receives that were given up while incomplete, into whose
 * memory MPI may still write. Only for ranks with one thread. */
struct receive {
  MPI_Request request;
  const char *data, *end;
};
static struct receive receives[256], left[256];
static int receive_count, left_count;

static void note_receive(MPI_Request request, const char* data, size_t bytes) {
  int i = 0;
  while (i < receive_count && receives[i].request != request) ++i;
  if (i == 256) abort();
  if (i == receive_count) ++receive_count;
  receives[i] = (struct receive){request, data, data + bytes};
}

int PMPI_Request_free(MPI_Request* request) {
  int complete = 1;
  for (int i = 0; i < receive_count; ++i)
    if (receives[i].request == *request) {
      NEXT(PMPI_Request_get_status)(*request, &complete, MPI_STATUS_IGNORE);
      if (!complete && left_count < 256) left[left_count++] = receives[i];
    }
  return NEXT(PMPI_Request_free)(request);
}

int PMPI_Comm_create_group(MPI_Comm parent, MPI_Group group, int tag, MPI_Comm* made) {
  static atomic_int copied;
  const int code = NEXT(PMPI_Comm_create_group)(parent, group, tag, made);
  if (code != MPI_SUCCESS || !due("copy", &copied)) return code;
  PMPI_Comm_free(made);
  return MPI_ERR_OTHER;
}

int PMPI_Comm_split_type(MPI_Comm parent, int type, int key, MPI_Info info, MPI_Comm* made) {
  static atomic_int split;
  const int code = NEXT(PMPI_Comm_split_type)(parent, type, key, info, made);
  if (code != MPI_SUCCESS || !due("split", &split)) return code;
  PMPI_Comm_free(made);
  return MPI_ERR_OTHER;
}

int PMPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
               MPI_Request* request) {
  static atomic_int received, heard;
  static int deaf;
  const char* const end = (const char*)data + 4 * (size_t)count;
  if (type == MPI_UINT32_T) {
    if (!deaf) deaf = due("deaf", &heard);
    if (deaf || due("receive", &received)) return MPI_ERR_OTHER;
  }
  const int code = NEXT(PMPI_Irecv)(data, count, type, from, tag, comm, request);
  if (type != MPI_UINT32_T || getenv("TEST_SECONDS") == NULL) return code;
  for (int i = 0; i < left_count; ++i)
    if ((const char*)data < left[i].end && left[i].data < end) {
      fprintf(stderr, "memory of a message that was given up is used again\n");
      abort();
    }
  note_receive(*request, data, (size_t)(end - (const char*)data));
  return code;
}
