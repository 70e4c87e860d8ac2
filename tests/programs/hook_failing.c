/* SPDX-License-Identifier: BSD-3-Clause */
/* A hook that is right until told otherwise. Built as it is, a codec that sends floats; with -DABI,
 * -DSIZE, -DKIND, -DFLAGS other numbers stand in its table, with -DNO_SYMBOL, -DFUNCTION,
 * -DNO_DECODE and -DTINY it is not a usable one; with -DCARELESS it makes -8 of what is not finite;
 * with -DEXACT it is a strategy that leaves all to MPI; with -DBLOCKS the strategy sums on two
 * communicators and blocks in MPI. HOOK_FAILS="what call rank" in the environment makes it fail
 * there: open, encode, decode, bound (its codes are longer than that said), beyond (it writes more
 * than it says), prepare, allreduce; throw, in encode, where it is built as C++. */
#define _POSIX_C_SOURCE 200112L /* unsetenv */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
#include <stdexcept>
#endif

#if defined NO_SYMBOL || defined FUNCTION || defined TINY
#define slimpi_hook another_name
#endif
#include "slimpi.h"

#if defined EXACT || defined BLOCKS || defined STARTS
#include <mpi.h>
#endif
#if defined EXACT || defined BLOCKS
#define KIND SLIMPI_HOOK_STRATEGY
#endif
#ifndef ABI
#define ABI SLIMPI_HOOK_ABI
#endif
#ifndef SIZE
#define SIZE sizeof(struct slimpi_hook_t)
#endif
#ifndef KIND
#define KIND SLIMPI_HOOK_CODEC
#endif
#ifndef FLAGS
#define FLAGS 0
#endif
#ifndef NAME
#define NAME "failing"
#endif

static int fails(const char* what, const struct slimpi_hook_call_t* call) {
  const char* const told = getenv("HOOK_FAILS");
  char where[32] = "";
  unsigned long long at = 0;
  int rank = 0;
  if (told == NULL || sscanf(told, "%31s %llu %d", where, &at, &rank) != 3) return 0;
  if (strcmp(where, what) != 0 || call->call != at || call->rank != rank) return 0;
  snprintf(call->reason, SLIMPI_HOOK_REASON_BYTES, "told to fail in %s", what);
  return 1;
}

static int open_it(const struct slimpi_hook_call_t* call, void** context) {
  *context = NULL;
  return fails("open", call) ? 13 : 0;
}

static uint64_t bound(void* context, uint64_t count) {
  (void)context;
  return 4 * count;
}

static int encode(void* context, const struct slimpi_hook_call_t* call, const float* in,
                  uint64_t count, void* out, uint64_t capacity, uint64_t* bytes) {
  (void)context;
#ifdef STARTS
  void* request = NULL;
  if (getenv("HOOK_STARTS") != NULL && sscanf(getenv("HOOK_STARTS"), "%p", &request) == 1) {
    unsetenv("HOOK_STARTS");
    MPI_Start(request);
  }
#endif
  memcpy(out, in, 4 * count);
  *bytes = 4 * count;
  if (fails("bound", call)) *bytes = capacity + 1000;
  if (fails("beyond", call)) ((char*)out)[capacity + 3] = 1;
#ifdef __cplusplus
  if (fails("throw", call)) throw std::runtime_error("the hook's own");
#endif
  return fails("encode", call) ? 7 : 0;
}

static int decode(void* context, const struct slimpi_hook_call_t* call, const void* in,
                  uint64_t bytes, float* out, uint64_t count) {
  (void)context;
  if (bytes != 4 * count || call->size < sizeof *call) return 8;
  memcpy(out, in, bytes);
#ifdef CARELESS
  for (uint64_t i = 0; i < count; ++i)
    if (!isfinite(out[i])) out[i] = -8;
#endif
  return fails("decode", call) ? 9 : 0;
}

static int prepare(void* context, const struct slimpi_hook_call_t* call) {
  (void)context;
  return fails("prepare", call) ? 10 : 0;
}

static int allreduce(void* context, const struct slimpi_hook_call_t* call, const float* in,
                     float* out) {
  (void)context;
#if defined(EXACT)
  return MPI_Allreduce(in == out ? MPI_IN_PLACE : in, out, (int)call->count, MPI_FLOAT, MPI_SUM,
                       *(const MPI_Comm*)call->comm);
#elif defined(BLOCKS)
  const MPI_Comm comm = *(const MPI_Comm*)call->comm;
  const int count = (int)call->count;
  MPI_Allreduce(in == out ? MPI_IN_PLACE : in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF);
  MPI_Reduce(call->rank == 0 ? MPI_IN_PLACE : out, out, count, MPI_FLOAT, MPI_SUM, 0, comm);
  MPI_Bcast(out, count, MPI_FLOAT, 0, comm);
#else
  for (uint64_t i = 0; i < call->count; ++i) out[i] = in[i] * (float)call->ranks;
#endif
  return fails("allreduce", call) ? 11 : 0;
}

const struct slimpi_hook_t slimpi_hook = {
    .abi = ABI,
    .size = SIZE,
    .kind = KIND,
    .flags = FLAGS,
    .name = NAME,
    .open = open_it,
    .max_piece = 1000,
    .bound = bound,
    .encode = encode,
#ifndef NO_DECODE
    .decode = decode,
#endif
    .prepare = prepare,
    .allreduce = allreduce,
};
#undef slimpi_hook

#if defined FUNCTION
const struct slimpi_hook_t* slimpi_hook(void);
const struct slimpi_hook_t* slimpi_hook(void) {
  return &another_name;
}
#elif defined TINY
extern const char slimpi_hook;
const char slimpi_hook = SLIMPI_HOOK_ABI;
#endif
