/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded by slimpi-lab into MPICH programs, so that they end.
 *
 * MPICH 4.0 over UCX and TCP can hang in MPI_Finalize on three or more hosts: ranks that are done
 * wait for the process manager and no longer answer ranks that still flush. Here MPI_Finalize does
 * what a program can see of it (callbacks on MPI_COMM_SELF, output flushed, every rank arrived) and
 * leaves the connections to the end of the process, which then keeps the program's exit status:
 * code after MPI_Finalize, exit handlers and destructors of the program still run.
 *
 * The file defines MPI and PMPI names, because mpi_f08 calls MPI by PMPI names. Needs no libmpi to
 * load. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { max_keyvals = 256 };

static int done;        /* MPI_Finalize has been called and answered here */
static int exit_status; /* of the process, known once exit() runs */
static int exit_status_known;
static int keyvals[max_keyvals]; /* set on MPI_COMM_SELF, in order */
static int keyval_count;

static int note_library(struct dl_phdr_info* library, size_t size, void* name) {
  (void)size;
  const char* base = strrchr(library->dlpi_name, '/');
  base = base ? base + 1 : library->dlpi_name;
  if (strncmp(base, "libmpich.so", 11) != 0 && strncmp(base, "libmpi.so", 9) != 0) return 0;
  *(const char**)name = library->dlpi_name;
  return 1;
}

static void give_up(const char* before, const char* name, const char* after) {
  fprintf(stderr, "slimpi-lab: %s%s%s\n", before, name, after);
  _exit(1);
}

/* Returns a function of the process's MPI. mpi4py loads MPI where dlsym(RTLD_NEXT) can't see it. */
static void* real(const char* name) {
  static void* library;
  const char* path = NULL;
  if (!library && dl_iterate_phdr(note_library, &path)) {
    if (strstr(path, "libmpi.so") && !strstr(path, "libmpi.so.12")) {
      give_up("the program's MPI is not MPICH but ", path, "; for Open MPI add --mpi openmpi");
    }
    library = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
  }
  void* function = library ? dlsym(library, name) : dlsym(RTLD_NEXT, name);
  if (!function) give_up("the program's MPI has no ", name, "; use --finalize mpi");
  return function;
}

static void delete_self_attributes(void) {
  int (*get)(MPI_Comm, int, void*, int*) = real("PMPI_Comm_get_attr");
  int (*delete)(MPI_Comm, int) = real("PMPI_Comm_delete_attr");
  int (*set_handler)(MPI_Comm, MPI_Errhandler) = real("PMPI_Comm_set_errhandler");
  set_handler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  while (keyval_count > 0) {
    void* value;
    int found = 0;
    const int keyval = keyvals[--keyval_count];
    if (get(MPI_COMM_SELF, keyval, &value, &found) == MPI_SUCCESS && found) {
      delete (MPI_COMM_SELF, keyval);
    }
  }
}

static void note_status(int status, void* unused) {
  (void)unused;
  exit_status = status;
  exit_status_known = 1;
}

int MPI_Finalize(void) {
  int (*barrier)(MPI_Comm) = real("PMPI_Barrier");
  void (*slimpi_finish)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "slimpi_finish");
  on_exit(note_status, NULL);
  delete_self_attributes();
  if (slimpi_finish) slimpi_finish();
  fflush(NULL);
  const int result = barrier(MPI_COMM_WORLD);
  done = 1;
  return result;
}
int PMPI_Finalize(void) __attribute__((alias("MPI_Finalize")));

/* Without this message, Hydra takes a process that ends for a failed process. */
static void leave_process_manager(void) {
  const char* descriptor = getenv("PMI_FD");
  if (!descriptor) return;
  const char goodbye[] = "cmd=finalize\n";
  char answer[64];
  struct pollfd wait = {.fd = atoi(descriptor), .events = POLLIN};
  if (write(wait.fd, goodbye, sizeof goodbye - 1) != (ssize_t)(sizeof goodbye - 1)) return;
  if (poll(&wait, 1, 2000) == 1 && read(wait.fd, answer, sizeof answer) < 0) return;
}

/* Runs after the program's own exit handlers and destructors, before those of MPI and UCX. */
__attribute__((destructor)) static void leave(void) {
  if (!done || !exit_status_known) return;
  fflush(NULL);
  leave_process_manager();
  _exit(exit_status);
}

int MPI_Finalized(int* flag) {
  int (*ask)(int*) = real("PMPI_Finalized");
  const int result = ask(flag);
  if (done) *flag = 1;
  return result;
}
int PMPI_Finalized(int* flag) __attribute__((alias("MPI_Finalized")));

static int set_attribute(const char* function, MPI_Comm comm, int keyval, void* value) {
  int (*set)(MPI_Comm, int, void*) = real(function);
  if (comm == MPI_COMM_SELF && keyval_count < max_keyvals) keyvals[keyval_count++] = keyval;
  return set(comm, keyval, value);
}

int MPI_Comm_set_attr(MPI_Comm comm, int keyval, void* value) {
  return set_attribute("PMPI_Comm_set_attr", comm, keyval, value);
}
int MPI_Attr_put(MPI_Comm comm, int keyval, void* value) {
  return set_attribute("PMPI_Attr_put", comm, keyval, value);
}
