// SPDX-License-Identifier: BSD-3-Clause
// The persistent sums of nonblocking.c. They are started in any order or all at once, and MPI
// refuses some starts.
#pragma once
#include "tests/mpi/calls/nonblocking.h"

static int g_left;  // whether slimpi leaves all sums to MPI

#if HAS_PERSISTENT_SUMS
// Starts persistent sums. Every second rank starts them in another order.
static void persistent(MPI_Comm comm) {
  MPI_Request r[kMany], once;
  int flag;
  static float between[kCount];
  for (int i = 0; i < kMany; ++i)
    MPI_Allreduce_init(g_in[i], g_out[i], kCount, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &r[i]);
  // MPI_Test and MPI_Waitany of MPICH 4.0 are wrong about its own persistent sums.
  for (int step = 0; step < (g_left ? 1 : WAYS); ++step) {
    for (int i = 0; i < kMany; ++i) clear(i);
    MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
    must(flag || g_left, "an inactive request");
    for (int i = 0; i < kMany; ++i) MPI_Start(&r[g_rank % 2 ? kMany - 1 - i : i]);
    MPI_Iallreduce(g_in[0], between, kCount, MPI_FLOAT, MPI_SUM, comm, &once);
    MPI_Wait(&once, MPI_STATUS_IGNORE);
    must(memcmp(between, g_blocking[0], sizeof between) == 0, "a sum among persistent ones");
    must(complete((enum way)((WAITALL + step) % WAYS), kMany, r, NULL) == MPI_SUCCESS, "a code");
    same("persistent");
  }
  MPI_Startall(kMany, r);
  MPI_Waitall(kMany, r, MPI_STATUSES_IGNORE);
  same("Startall");
  for (int i = 0; i < kMany; ++i) {
    must(r[i] != MPI_REQUEST_NULL, "a persistent request stays");
    MPI_Request_free(&r[i]);
    must(r[i] == MPI_REQUEST_NULL, "Request_free");
  }
}

// Starts a null request or a running one together with a sum, which MPI must refuse. Neither the
// sum nor a maximum that MPI makes on copies may have begun, so their next start must take the
// input of that time. Without copies nobody can know whether MPI has started the maximum, so there
// is none then. If MPI_Waitall fails because of a receive, the persistent sum must be complete, and
// another wait for its inactive request must write nothing.
static void refused_starts(MPI_Comm comm) {
  MPI_Request r[3], sum, most = MPI_REQUEST_NULL, runs;
  MPI_Status s[2];
  const char sent[2] = {1, 2};
  char received, late;
  static float in[2][kCount], maximum[kCount];
  MPI_Comm self;
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  for (int i = 0; i < 3; ++i)
    MPI_Comm_set_errhandler(i == 0 ? comm : i == 1 ? self : MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Allreduce_init(g_in[0], g_out[0], kCount, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &sum);
#ifdef SLIMPI_TEST_PROTECTED
  MPI_Allreduce_init(g_in[1], g_out[1], kCount, MPI_FLOAT, MPI_MAX, comm, MPI_INFO_NULL, &most);
#endif
  MPI_Recv_init(&late, 1, MPI_CHAR, 0, 1, self, &runs);
  MPI_Start(&runs);
  MPI_Allreduce(g_in[1], g_out[1], kCount, MPI_FLOAT, MPI_MAX, comm);
  read_from(maximum, g_out[1], sizeof maximum);
  for (int i = 0; i < 2; ++i) read_from(in[i], g_in[i], sizeof in[i]);
  for (int step = 0; step < 8; ++step) {
    for (int i = 0; i < 2; ++i) {
      clear(i);
      write_to(g_in[i], g_values, sizeof g_values);
    }
    const int count = most == MPI_REQUEST_NULL ? 2 : 3;
    r[(step + 2) % count] = most;
    r[step % count] = sum;
    r[(step + 1) % count] = step < 4 ? MPI_REQUEST_NULL : runs;
    must(MPI_Startall(count, r) != MPI_SUCCESS, "Startall with a request that cannot start");
    for (int i = 0; i < 2; ++i) write_to(g_in[i], in[i], sizeof in[i]);
    if (g_rank == step % g_size) usleep(20000);
    must(MPI_Start(&sum) == MPI_SUCCESS, "Start after a start that was refused");
    if (!g_left) must(MPI_Start(&sum) != MPI_SUCCESS, "Start of a request that runs");
    r[0] = sum;
    MPI_Irecv(&received, 1, MPI_CHAR, 0, 0, self, &r[1]);
    MPI_Send(sent, 2, MPI_CHAR, 0, 0, self);
    (void)MPI_Waitall(2, r, step % 2 ? s : MPI_STATUSES_IGNORE);  // Open MPI 5 returns no error
    same_of(0, "a start after one that was refused");
    clear(0);
    MPI_Wait(&sum, MPI_STATUS_IGNORE);
    read_from(g_values, g_out[0], sizeof g_values);
    must(g_values[0] == 0 && g_values[kCount - 1] == 0, "Wait of an inactive request");
    if (most == MPI_REQUEST_NULL) continue;
    MPI_Start(&most);
    MPI_Wait(&most, MPI_STATUS_IGNORE);
    read_from(g_values, g_out[1], sizeof g_values);
    must(memcmp(g_values, maximum, sizeof maximum) == 0, "a maximum after a refused start");
  }
  MPI_Send(sent, 1, MPI_CHAR, 0, 1, self);
  MPI_Wait(&runs, MPI_STATUS_IGNORE);
  MPI_Request_free(&runs);
  if (most != MPI_REQUEST_NULL) MPI_Request_free(&most);
  MPI_Request_free(&sum);
  MPI_Comm_free(&self);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

// Starts a large number of persistent sums at once, all on the internal communicator of their
// communicator.
static void many_persistent(MPI_Comm comm) {
  enum { kAll = 8 * kMany };
  MPI_Request r[kAll];
  for (int i = 0; i < kAll; ++i)
    MPI_Allreduce_init(g_in[i % kMany], g_out[i % kMany], kCount, MPI_FLOAT, MPI_SUM, comm,
                       MPI_INFO_NULL, &r[i]);
  for (int first = 0; first < kAll; first += kMany) {
    for (int i = 0; i < kMany; ++i) clear(i);
    MPI_Startall(kMany, r + first);
    MPI_Waitall(kMany, r + first, MPI_STATUSES_IGNORE);
    same("many persistent");
  }
  for (int i = 0; i < kAll; ++i) MPI_Request_free(&r[i]);
}

// Persistent sums that a callback starts in MPI_Finalize, after slimpi has ended: one on
// MPI_COMM_WORLD, which MPI then makes, and one whose communicator was freed, which is an error.
static MPI_Request g_last = MPI_REQUEST_NULL, g_freed = MPI_REQUEST_NULL;
static float g_last_in[kCount], g_last_out[kCount];

static int start_last(MPI_Comm comm, int keyval, void* value, void* extra) {
  (void)comm, (void)keyval, (void)value, (void)extra;
  MPI_Start(&g_last);
  MPI_Wait(&g_last, MPI_STATUS_IGNORE);
  for (int i = 0; i < kCount; ++i)
    must(g_last_out[i] == (float)(g_size * (g_size + 1) / 2), "a start in MPI_Finalize");
  MPI_Request_free(&g_last);
  if (g_freed == MPI_REQUEST_NULL) return MPI_SUCCESS;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(MPI_Start(&g_freed), text, &length);
  must(strstr(text, "start it earlier, or free the communicator later") != NULL,
       "a start on a freed communicator in MPI_Finalize");
  MPI_Request_free(&g_freed);
  return MPI_SUCCESS;
}

// MPI deletes the last attribute first, so this comes before the first sum, where slimpi sets its
// own.
static void set_last_callback(void) {
  int keyval;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, start_last, &keyval, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
  MPI_Comm_free_keyval(&keyval);
}

static void make_last_sums(void) {
  MPI_Comm freed;
  for (int i = 0; i < kCount; ++i) g_last_in[i] = (float)(g_rank + 1);
  MPI_Allreduce_init(g_last_in, g_last_out, kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                     MPI_INFO_NULL, &g_last);
  MPI_Start(&g_last);
  MPI_Wait(&g_last, MPI_STATUS_IGNORE);
  if (g_left) return;
  MPI_Comm_dup(MPI_COMM_WORLD, &freed);
  MPI_Allreduce_init(g_last_in, g_last_out, kCount, MPI_FLOAT, MPI_SUM, freed, MPI_INFO_NULL,
                     &g_freed);
  MPI_Comm_free(&freed);
}
#endif
