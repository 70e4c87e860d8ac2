/* SPDX-License-Identifier: BSD-3-Clause */
/* slimpi's optional C API. A program does not need it: slimpi works on programs that know nothing
 * of it. A program that wants statistics, or describes its tensors, may include this header and
 * look the functions up with dlsym(RTLD_DEFAULT, ...), so that it still runs where slimpi is not
 * preloaded. */
#ifndef SLIMPI_H
#define SLIMPI_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define SLIMPI_VERSION_MAJOR 0
#define SLIMPI_VERSION_MINOR 1
#define SLIMPI_VERSION_PATCH 0

/* The version of the library that is loaded, as text: "0.1.0". */
const char* slimpi_version(void);

/* The counters of this process so far. Bytes are of this rank only. */
struct slimpi_statistics_t {
  uint64_t size;        /* set by the caller to sizeof(struct slimpi_statistics_t) */
  uint64_t calls;       /* allreduces and reduce-scatters seen */
  uint64_t compressed;  /* calls that slimpi compressed between nodes */
  uint64_t bytes_in;    /* bytes in the buffers of compressed calls */
  uint64_t bytes_sent;  /* bytes that this rank sent to other nodes, headers included */
  uint64_t bytes_plain; /* this rank's part of the bytes that bandwidth-optimal sums would send */
};

/* The functions below can be called at any time and from any thread: before MPI is loaded, before
 * MPI_Init, and after MPI_Finalize. Only slimpi_finish, slimpi_get_state and slimpi_set_state call
 * MPI, and only between MPI_Init and MPI_Finalize. */

/* Fills the fields that the caller's `size` covers. Returns 0, or 1 if `size` is not set or slimpi
 * is inert, because there is no MPI yet or one with an unknown ABI. */
int slimpi_get_statistics(struct slimpi_statistics_t* statistics);

/* A matrix in a buffer, row by row. */
typedef struct slimpi_matrix_t {
  uint64_t rows, columns;
} slimpi_matrix_t;

/* The description of a tensor (a buffer that the program sums), for slimpi_describe_next. */
typedef struct slimpi_tensor_t {
  uint64_t size;                   /* set by the caller to sizeof(slimpi_tensor_t) */
  const char* name;                /* the same at every sum of this tensor; NULL or "": no name */
  const slimpi_matrix_t* matrices; /* one after the other from the buffer's first float on */
  uint64_t matrix_count;           /* 0: nothing is said of matrices */
} slimpi_tensor_t;

/* Describes the next float sum that this thread begins, on any communicator. slimpi copies the
 * description and uses it for that sum alone, even if it leaves the sum to MPI. Another description
 * before the sum replaces it. All ranks of the sum must give the same description. The name
 * identifies the state that error feedback and some algorithms keep for a tensor on a communicator,
 * whatever the address of its buffer (STATE in slimpi-algorithms(7)). Only powersgd uses the
 * matrices; they replace SLIMPI_POWERSGD_SHAPES. The sum of rows * columns must not exceed the
 * count of the float sum. Ranks whose matrices differ get an MPI error. NULL cancels the
 * description. Returns 0, or 1 with a warning if `size` is not set or a matrix is empty. */
int slimpi_describe_next(const slimpi_tensor_t* tensor);

/* The state of a named tensor on a communicator, for checkpoints: the residual of error feedback,
 * and the data that powersgd and batched_powersgd keep, for each function and counts with which the
 * tensor was summed. Other algorithms, and hooks, have no state to get. A persistent request has a
 * state of its own, which MPI_Request_free ends. `comm` points at the program's MPI_Comm. The state
 * is this rank's own: each rank keeps its bytes, and gives them back as the same rank of a
 * communicator of the same size. Call both functions between the sums of the communicator, from the
 * thread that makes these sums.
 *
 * slimpi_get_state writes the state to `state`, which has *size bytes, and its length to *size. If
 * `state` is NULL, it writes only the length. Returns 0, or 1 if there is no such state or *size is
 * too small.
 *
 * slimpi_set_state copies `state`, and the next sum of that name that slimpi compresses begins with
 * it; if `state` is NULL and `size` 0, that sum begins without a state. All ranks must do the same
 * between the same two sums of that name, in whatever order they make other sums. If some rank does
 * not, all ranks drop the state at the next sum of that name, and rank 0 warns. They also drop a
 * state that was saved for another function, other counts or another hierarchy. Returns 0, or 1 if
 * the bytes are not a state of this rank, `comm` is no valid communicator, or slimpi is inert. */
int slimpi_get_state(const void* comm, const char* name, void* state, uint64_t* size);
int slimpi_set_state(const void* comm, const char* name, const void* state, uint64_t size);

/* Functions for bindings of other languages, which have no mpi.h.
 *
 * slimpi_get_mpi_constant sets *value to a constant of the process's MPI, in the form in which
 * MPI's functions take it as an argument: MPI_COMM_WORLD, MPI_FLOAT, MPI_DOUBLE, MPI_INT, MPI_BYTE,
 * MPI_SUM, MPI_MIN, MPI_ANY_SOURCE, MPI_IN_PLACE, MPI_ERRORS_RETURN, MPI_THREAD_MULTIPLE. For a
 * handle that an MPI function writes, pass the address of a uint64_t that is 0; later pass its
 * value as the handle. Returns 0, or 1 if the name is not in this list or the process has no MPI
 * that slimpi supports.
 *
 * slimpi_check_option returns 0 if the info key slimpi_NAME may have this value. Otherwise it
 * returns 1, and writes to `reason`, of `size` bytes, the line that would end a job.
 *
 * slimpi_finalize_at_exit makes exit() end MPI: by MPI_Finalize if the exit status is 0, else by
 * MPI_Abort with the status, because other ranks may wait for this rank. All ranks wait for each
 * other before MPI_Finalize. A rank stops waiting, and ends without MPI_Finalize, if the server of
 * the Python package says that another rank has ended without it, or if no further rank has come
 * within SLIMPI_TIMEOUT (30 minutes by default). It also ends once MPI_Finalize has run for 2
 * seconds in which the process wrote nothing, except under Open MPI or if another tool defines
 * MPI_Finalize. Returns 0, or 1 if exit() cannot be made to end MPI.
 *
 * slimpi_abort_at_exit makes exit() call MPI_Abort with the exit status, or with 1 if that is 0. It
 * is for a program that ends while one of its threads is in a call of MPI that does not end.
 * Returns 0, or 1 if exit() cannot be made to do so.
 *
 * slimpi_finalize_now ends MPI at once, as exit(0) would then do, for a program that ends by
 * _exit(0).
 *
 * slimpi_set_timeout limits this rank's waits in later sums on a communicator, as SLIMPI_TIMEOUT
 * does on all communicators. `comm` is as in slimpi_get_state. Ranks may have different limits.
 * Returns 0, or 1 if `comm` is no valid communicator or slimpi is inert.
 *
 * slimpi_get_option writes the process's value of the option NAME, such as bits, to `value`, of
 * `size` bytes; "" if the option is unset. Returns 0, or 1 if there is no such option.
 *
 * slimpi_get_traits returns what distinguishes an algorithm, such as
 * ".codec = Codec::packed, .tried_by_auto = true": the traits in its row of slimpi's table,
 * src/options/algorithms.def. Returns "" if there is no such algorithm. */
int slimpi_get_mpi_constant(const char* name, uint64_t* value);
int slimpi_check_option(const char* name, const char* value, char* reason, uint64_t size);
int slimpi_set_timeout(const void* comm, uint64_t seconds);
int slimpi_get_option(const char* name, char* value, uint64_t size);
const char* slimpi_get_traits(const char* algorithm);
int slimpi_finalize_at_exit(void);
int slimpi_abort_at_exit(void);
void slimpi_finalize_now(void);

/* Ends slimpi's work: writes the report and the trace, and leaves every later call to MPI. slimpi
 * does so itself when MPI_Finalize begins; call it only in programs that end in another way.
 * Collective over all ranks. As with MPI_Finalize, no other thread of any rank may be in an MPI
 * call. Does nothing before MPI_Init and after MPI_Finalize. */
void slimpi_finish(void);

/* Hooks: an algorithm of your own, in a shared object that SLIMPI_ALGORITHM=hook:/abs/path.so names
 * and that exports one symbol,
 *     const struct slimpi_hook_t slimpi_hook = {...};
 * slimpi_hook(3) describes all of it, with a complete example. */
#define SLIMPI_HOOK_ABI 1

enum slimpi_hook_kind_t {
  SLIMPI_HOOK_CODEC = 1,   /* turns floats into bytes and back; slimpi does the rest */
  SLIMPI_HOOK_STRATEGY = 2 /* does the whole allreduce */
};

/* Flags of slimpi_hook_t. */
#define SLIMPI_HOOK_DEVICE_MEMORY 1u /* a strategy that takes device buffers as they are */

/* The bytes of the buffer slimpi_hook_call_t.reason. */
#define SLIMPI_HOOK_REASON_BYTES 256

/* The MPI call that a hook serves. A later slimpi may add fields, but only at the end. */
struct slimpi_hook_call_t {
  uint64_t size;       /* bytes of this struct in the slimpi that runs */
  uint64_t call;       /* counts the communicator's compressed calls from 1; equal on all ranks */
  uint64_t count;      /* floats in the program's buffer */
  uint64_t slot;       /* with `count` identifies the program's buffer; equal on all ranks */
  uint64_t slot_calls; /* earlier calls of this buffer; 0: drop the data kept for the slot */
  uint64_t seed;       /* SLIMPI_SEED */
  int32_t rank, ranks; /* of the program's communicator */
  int32_t node, nodes; /* this rank's node, and the number of nodes */
  const void* comm;    /* strategies: points at an MPI_Comm that nobody else uses; codecs: NULL */
  void* stream;        /* device memory: a CUstream, NULL the default one; on the host NULL */
  uint64_t* sent;      /* strategies add the bytes that they sent to other nodes */
  char* reason;        /* before it fails, a function may write here why */
  uint64_t first;      /* codecs: index of the piece's first float in the program's buffer */
  int32_t total;       /* codecs: 1 if the piece is of the finished sum, 0 if of one node's sum */
  int32_t reserved;
};

/* Functions return 0, or any other number for failure, and do not throw. For one communicator, only
 * one thread at a time calls functions; for different communicators, several threads may. */
struct slimpi_hook_t {
  uint32_t abi;     /* SLIMPI_HOOK_ABI */
  uint32_t size;    /* sizeof(struct slimpi_hook_t) */
  uint32_t kind;    /* SLIMPI_HOOK_CODEC or SLIMPI_HOOK_STRATEGY */
  uint32_t flags;   /* SLIMPI_HOOK_DEVICE_MEMORY or 0 */
  const char* name; /* for messages; the same on all ranks, so a good place for a version */

  /* open is called before the first call of a communicator, close when the communicator is freed.
   * Both may be NULL. open may set *context, which all other functions get. */
  int (*open)(const struct slimpi_hook_call_t* call, void** context);
  void (*close)(void* context);

  /* For codecs. slimpi encodes a vector in pieces of at most max_piece floats (0: 65536). */
  uint64_t max_piece;
  /* Returns the most bytes that encode makes of `count` floats; depends only on `count`. */
  uint64_t (*bound)(void* context, uint64_t count);
  /* Writes at most `capacity` = bound(count) bytes to `out`, and their number to *bytes. */
  int (*encode)(void* context, const struct slimpi_hook_call_t* call, const float* in,
                uint64_t count, void* out, uint64_t capacity, uint64_t* bytes);
  /* Writes `count` floats: the input of encode, as exactly as the bytes allow. slimpi fills `out`
   * with zeros before the call. The same bytes must give the same floats on every rank. */
  int (*decode)(void* context, const struct slimpi_hook_call_t* call, const void* in,
                uint64_t bytes, float* out, uint64_t count);

  /* For strategies. prepare does all work that may fail on one rank alone; if it fails on any rank,
   * allreduce runs on no rank. prepare may be NULL. allreduce writes the sum of `in` over all ranks
   * to `out`. If the program passed MPI_IN_PLACE, in == out; else `in` must not be written. Both
   * lie on the host; with SLIMPI_HOOK_DEVICE_MEMORY they are the program's buffers. Work that is
   * queued on a stream must be complete when allreduce returns. */
  int (*prepare)(void* context, const struct slimpi_hook_call_t* call);
  int (*allreduce)(void* context, const struct slimpi_hook_call_t* call, const float* in,
                   float* out);
};

/* The symbol that a hook defines; libslimpi.so itself does not. */
#ifdef __GNUC__
__attribute__((visibility("default")))
#endif
extern const struct slimpi_hook_t slimpi_hook;

#ifdef __cplusplus
}
#endif
#endif
