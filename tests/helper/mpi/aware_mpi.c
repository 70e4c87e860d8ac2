/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes an MPI that takes device memory out of one that does not: preloaded behind slimpi, it
 * reports that it takes this memory, and replaces the functions that slimpi sends with. The device
 * is the protected one or that of the fake driver. A message has the contents of its memory at the
 * time of the send; a program that writes to the memory while the message is in flight is ended.
 * With AWARE_RANK in the environment, only that rank of the job has this MPI. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/helper/mpi/next.h"

static int aware(void) {
  const char *const wanted = getenv("AWARE_RANK"), *rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank == NULL) rank = getenv("PMI_RANK");
  return wanted == NULL || (rank != NULL && strcmp(wanted, rank) == 0);
}

int MPIX_GPU_query_support(int kind, int* supported) {
  *supported = kind == 0 && aware();
  return MPI_SUCCESS;
}

int MPIX_Query_cuda_support(void) {
  return aware();
}

/* Opens or closes the allocation that contains `memory`. Returns whether the memory is the
 * device's. */
static int lend(const void* memory, int open) {
  static int (*change)(const void*, int);
  if (change == NULL) {
    void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    const char* const name = "slimpi_protected_lend";
    void* const found = driver != NULL ? dlsym(driver, name) : dlsym(RTLD_DEFAULT, name);
    if (found == NULL) return 0;
    change = (int (*)(const void*, int))found;
  }
  return aware() && change(memory, open);
}

/* Messages in flight from or to device memory. */
enum { MOST = 4096 };
static struct message {
  MPI_Request request;
  void *device, *copy;
  size_t bytes;
  int sent;
} g_messages[MOST];
static int g_under_way;

static void* keep(void* device, size_t bytes, int sent, MPI_Request** request) {
  if (g_under_way == MOST) abort();
  struct message* const one = &g_messages[g_under_way++];
  *one = (struct message){MPI_REQUEST_NULL, device, malloc(bytes + 1), bytes, sent};
  if (sent) memcpy(one->copy, device, bytes);
  *request = &one->request;
  return one->copy;
}

static struct message* find(MPI_Request request) {
  for (int i = 0; request != MPI_REQUEST_NULL && i < g_under_way; ++i)
    if (g_messages[i].request == request) return &g_messages[i];
  return NULL;
}

static void finish(struct message* message) {
  if (message == NULL) return;
  lend(message->device, 1);
  if (message->sent && memcmp(message->device, message->copy, message->bytes) != 0) {
    fprintf(stderr, "a message was written to while it was on its way\n");
    abort();
  }
  if (!message->sent) memcpy(message->device, message->copy, message->bytes);
  lend(message->device, 0);
  free(message->copy);
  *message = g_messages[--g_under_way];
}

int PMPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  MPI_Request* kept = NULL;
  int width = 0;
  if (lend(data, 1)) {
    MPI_Type_size(type, &width);
    void* const device = (void*)(uintptr_t)data;
    data = keep(device, (size_t)count * (size_t)width, 1, &kept);
    lend(device, 0);
  }
  const int code = NEXT(PMPI_Isend)(data, count, type, to, tag, comm, request);
  if (kept != NULL) *kept = *request;
  return code;
}

/* The copy begins with the bytes of the buffer, so that bytes which no message writes keep their
 * values. */
int PMPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
               MPI_Request* request) {
  MPI_Request* kept = NULL;
  int width = 0;
  if (lend(data, 1)) {
    MPI_Type_size(type, &width);
    void *const device = data, *const copy = keep(device, (size_t)count * (size_t)width, 0, &kept);
    memcpy(copy, device, (size_t)count * (size_t)width);
    lend(device, 0);
    data = copy;
  }
  const int code = NEXT(PMPI_Irecv)(data, count, type, from, tag, comm, request);
  if (kept != NULL) *kept = *request;
  return code;
}

int PMPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
  struct message* const message = find(*request);
  const int code = NEXT(PMPI_Test)(request, done, status);
  if (*done) finish(message);
  return code;
}

int PMPI_Wait(MPI_Request* request, MPI_Status* status) {
  struct message* const message = find(*request);
  const int code = NEXT(PMPI_Wait)(request, status);
  finish(message);
  return code;
}

/* The program's own call, which slimpi has left to MPI. */
#define ALLREDUCE(name, Count)                                                                    \
  int name(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) { \
    const int in_lent = in != MPI_IN_PLACE && lend(in, 1), out_lent = lend(out, 1);               \
    const int code = NEXT(name)(in, out, count, type, op, comm);                                  \
    if (in_lent) lend(in, 0);                                                                     \
    if (out_lent) lend(out, 0);                                                                   \
    return code;                                                                                  \
  }
ALLREDUCE(MPI_Allreduce, int)
ALLREDUCE(MPI_Allreduce_c, MPI_Count)
