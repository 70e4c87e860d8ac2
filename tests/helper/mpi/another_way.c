/* SPDX-License-Identifier: BSD-3-Clause */
/* A library to preload before slimpi. It makes every MPI_Allreduce of an unchanged program in the
 * way that TEST_WAY names, and returns the code that MPI returns:
 *
 * - nonblocking: by MPI_Iallreduce and MPI_Wait.
 * - persistent, the default: by MPI_Allreduce_init, MPI_Start, MPI_Wait and MPI_Request_free.
 * - mixed: by one of these ways or MPI_Allreduce. The count chooses, so all ranks do the same.
 * - kept: as persistent, but the same arguments start the same request again. The program must use
 *   the same buffers in the same order on all ranks.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#ifdef OMPI_MAJOR_VERSION
/* Open MPI's handles are addresses of its variables, which are not there in programs that a test
 * runs before its own, such as env. */
#pragma weak ompi_mpi_comm_null
#pragma weak ompi_mpi_info_null
#pragma weak ompi_request_null
#endif

#define NEXT(name, types, arguments)                              \
  do {                                                            \
    static int(*next) types;                                      \
    if (next == NULL) *(void**)(&next) = dlsym(RTLD_NEXT, #name); \
    return next arguments;                                        \
  } while (0)

struct kept {
  const void* in;
  void* out;
  int count;
  MPI_Datatype type;
  MPI_Op op;
  MPI_Comm comm;
  MPI_Request request;
  struct kept* next;
};
static struct kept* g_kept;

static const char* way_of(int count) {
  const char* const ways[] = {"blocking", "nonblocking", "persistent"};
  const char* const way = getenv("TEST_WAY");
  if (way == NULL) return "persistent";
  return strcmp(way, "mixed") == 0 ? ways[((unsigned)count * 2654435761u >> 16) % 3] : way;
}

/* Frees the requests that were kept for a communicator, because it is freed or gets other options;
 * with MPI_COMM_NULL, those of all communicators. */
static void forget(MPI_Comm comm) {
  for (struct kept** at = &g_kept; *at != NULL;) {
    struct kept* const one = *at;
    if (comm != MPI_COMM_NULL && one->comm != comm) {
      at = &one->next;
      continue;
    }
    MPI_Request_free(&one->request);
    *at = one->next;
    free(one);
  }
}

static int sum_kept(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm) {
  struct kept* one = g_kept;
  while (one != NULL && !(one->in == in && one->out == out && one->count == count &&
                          one->type == type && one->op == op && one->comm == comm))
    one = one->next;
  if (one == NULL) {
    one = malloc(sizeof *one);
    *one = (struct kept){in, out, count, type, op, comm, MPI_REQUEST_NULL, g_kept};
    const int code =
        MPI_Allreduce_init(in, out, count, type, op, comm, MPI_INFO_NULL, &one->request);
    if (code != MPI_SUCCESS) {
      free(one);
      return code;
    }
    g_kept = one;
  }
  const int code = MPI_Start(&one->request);
  return code != MPI_SUCCESS ? code : MPI_Wait(&one->request, MPI_STATUS_IGNORE);
}

int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  const char* const way = way_of(count);
  if (strcmp(way, "blocking") == 0)
    NEXT(MPI_Allreduce, (const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm),
         (in, out, count, type, op, comm));
  if (strcmp(way, "nonblocking") == 0) {
    const int code = MPI_Iallreduce(in, out, count, type, op, comm, &request);
    return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (strcmp(way, "kept") == 0) return sum_kept(in, out, count, type, op, comm);
  int code = MPI_Allreduce_init(in, out, count, type, op, comm, MPI_INFO_NULL, &request);
  if (code != MPI_SUCCESS) return code;
  code = MPI_Start(&request);
  if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  return code;
}

/* Nonblocking sums need MPI_THREAD_MULTIPLE, so it replaces the level that the program asks for. */
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  (void)required;
  NEXT(MPI_Init_thread, (int*, char***, int, int*), (argc, argv, MPI_THREAD_MULTIPLE, provided));
}
int MPI_Comm_free(MPI_Comm* comm) {
  forget(*comm);
  NEXT(MPI_Comm_free, (MPI_Comm*), (comm));
}
int MPI_Comm_disconnect(MPI_Comm* comm) {
  forget(*comm);
  NEXT(MPI_Comm_disconnect, (MPI_Comm*), (comm));
}
int MPI_Comm_set_info(MPI_Comm comm, MPI_Info info) {
  forget(comm);
  NEXT(MPI_Comm_set_info, (MPI_Comm, MPI_Info), (comm, info));
}
int MPI_Finalize(void) {
  forget(MPI_COMM_NULL);
  NEXT(MPI_Finalize, (void), ());
}
