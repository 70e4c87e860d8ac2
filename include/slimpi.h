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
  uint64_t compressed;  /* of these, compressed between nodes */
  uint64_t bytes_in;    /* of the buffers of compressed calls */
  uint64_t bytes_sent;  /* put between nodes by this rank, headers included */
  uint64_t bytes_plain; /* this rank's part of what a bandwidth-optimal sum would have put there */
};

/* The functions below can be called at any time of the process and from any thread: before MPI is
 * loaded, before MPI_Init, and after MPI_Finalize. Only slimpi_finish and those of state call MPI,
 * and only between MPI_Init and MPI_Finalize. */

/* Fills *statistics, as many of its fields as `size` says. Returns 0, or 1 where slimpi is inert
 * (no MPI yet, or one of another ABI) or `size` is not set. */
int slimpi_get_statistics(struct slimpi_statistics_t* statistics);

/* A matrix in a buffer, row by row. */
typedef struct slimpi_matrix_t {
  uint64_t rows, columns;
} slimpi_matrix_t;

/* The description of a tensor, for slimpi_describe_next. */
typedef struct slimpi_tensor_t {
  uint64_t size;                   /* set by the caller to sizeof(slimpi_tensor_t) */
  const char* name;                /* the same at every sum of this tensor; NULL or "": no name */
  const slimpi_matrix_t* matrices; /* one after the other from the buffer's first float on */
  uint64_t matrix_count;           /* 0: nothing is said of matrices */
} slimpi_tensor_t;

/* Describes the next float sum that this thread begins, on whatever communicator. The description
 * is for that sum alone, also where slimpi leaves it to MPI; a second one before the sum replaces
 * the first. slimpi copies it. All ranks of the sum say the same.
 *   The name identifies the state that error feedback, powersgd and the like keep for a tensor on a
 * communicator, whatever the address of its buffer (STATE in slimpi-algorithms(7)). The matrices
 * are for powersgd, where they win over SLIMPI_POWERSGD_SHAPES; rows * columns of all of them may
 * not exceed the count of the sum. Ranks whose matrices differ get an MPI error.
 * NULL takes a description back. Returns 0, or 1 if `size` is not set or a matrix is empty; then a
 * warning says which. */
int slimpi_describe_next(const slimpi_tensor_t* tensor);

/* The state of a named tensor on a communicator, for checkpoints: the residual of error feedback,
 * and what powersgd and batched_powersgd keep, for each function and counts that it was summed
 * with. Of other algorithms there is none to get. `comm` points at the program's MPI_Comm. The
 * state is this rank's own: each rank keeps its bytes, and gives them back as the same rank of a
 * communicator of the same size. Call both between the sums of the communicator, from the thread
 * that makes them.
 *
 * slimpi_get_state writes the state to `state`, which has *size bytes, and its length to *size;
 * with `state` NULL it writes the length only. Returns 0, or 1 where there is no such state or
 * *size is too small.
 *
 * slimpi_set_state makes the next sum of that name begin with this state, which slimpi copies; with
 * `state` NULL and `size` 0, without a state. All ranks do the same between the same two sums;
 * where they do not, all drop the state at the next sum of that name, and rank 0 says so. So they
 * do with a state of another function, other counts or another hierarchy than that sum's. Returns
 * 0, or 1 where the bytes are not those of this rank, or the communicator has had no sum. The order
 * of the program's other sums does not matter. */
int slimpi_get_state(const void* comm, const char* name, void* state, uint64_t* size);
int slimpi_set_state(const void* comm, const char* name, const void* state, uint64_t size);

/* For bindings of other languages, which have no mpi.h.
 *
 * slimpi_get_mpi_constant sets *value to a constant of the process's MPI, as a word that its
 * functions take as an argument: MPI_COMM_WORLD, MPI_FLOAT, MPI_DOUBLE, MPI_INT, MPI_BYTE,
 * MPI_SUM, MPI_MIN, MPI_IN_PLACE, MPI_ERRORS_RETURN, MPI_THREAD_MULTIPLE. Where MPI writes a
 * handle, give it a uint64_t that is 0, and pass that on. Returns 0, or 1 where the name is another
 * or the process has no MPI that slimpi supports.
 *
 * slimpi_check_option says whether the info key slimpi_NAME may have this value. Returns 0, or 1
 * and in `reason`, which has `size` bytes, the line that a job would end with.
 *
 * slimpi_finalize_at_exit has exit() end MPI: by MPI_Finalize where the status is 0, else by
 * MPI_Abort with the status, because other ranks may wait for this one. Before MPI_Finalize all
 * ranks wait for each other. 2 seconds after that the process ends, unless its MPI is Open MPI.
 * Returns 0, or 1 where it cannot.
 *
 * slimpi_get_option writes the process's value of the option NAME, such as bits, to `value`, which
 * has `size` bytes: "" where it is unset. Returns 0, or 1 where there is no such option. */
int slimpi_get_mpi_constant(const char* name, uint64_t* value);
int slimpi_check_option(const char* name, const char* value, char* reason, uint64_t size);
int slimpi_get_option(const char* name, char* value, uint64_t size);
int slimpi_finalize_at_exit(void);

/* Ends slimpi's work: writes the report and the trace, and leaves every later call to MPI. Runs by
 * itself when MPI_Finalize begins; only for programs that end in another way. Collective over all
 * ranks, and as with MPI_Finalize no other thread of any rank may be in an MPI call. Before
 * MPI_Init and after MPI_Finalize it does nothing. */
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

/* Room at slimpi_hook_call_t.reason. */
#define SLIMPI_HOOK_REASON_BYTES 256

/* The call, as every function gets it. A later slimpi may add fields at the end and nowhere else.
 */
struct slimpi_hook_call_t {
  uint64_t size;       /* bytes of this struct in the slimpi that runs */
  uint64_t call;       /* counts the communicator's compressed calls from 1; equal on all ranks */
  uint64_t count;      /* floats in the program's buffer */
  uint64_t slot;       /* with count: names the program's buffer; equal on all ranks */
  uint64_t slot_calls; /* earlier calls of this buffer; at 0 drop what was kept for the slot */
  uint64_t seed;       /* SLIMPI_SEED */
  int32_t rank, ranks; /* of the program's communicator */
  int32_t node, nodes; /* this rank's, and how many there are */
  const void* comm;    /* strategies: points at an MPI_Comm that nobody else uses; codecs: NULL */
  void* stream;        /* device memory: a CUstream, NULL the default one; on the host NULL */
  uint64_t* sent;      /* strategies add the bytes that they sent to other nodes */
  char* reason;        /* before it fails, a function may write here why */
  uint64_t first;      /* codecs: where in the program's buffer the piece begins */
  int32_t total;       /* codecs: 1 if the piece is of the finished sum, 0 if of one node's sum */
  int32_t reserved;
};

/* Functions return 0, or any other number for failure, and do not throw. The functions of one
 * communicator are called by one thread at a time, those of different communicators at once. */
struct slimpi_hook_t {
  uint32_t abi;     /* SLIMPI_HOOK_ABI */
  uint32_t size;    /* sizeof(struct slimpi_hook_t) */
  uint32_t kind;    /* SLIMPI_HOOK_CODEC or SLIMPI_HOOK_STRATEGY */
  uint32_t flags;   /* SLIMPI_HOOK_DEVICE_MEMORY or 0 */
  const char* name; /* for messages; the same on all ranks, so a good place for a version */

  /* Before the first call of a communicator and when it is freed, both may be NULL. open may set
   * *context, which all the others get. */
  int (*open)(const struct slimpi_hook_call_t* call, void** context);
  void (*close)(void* context);

  /* Codecs. A piece has at most max_piece floats (0: 65536). */
  uint64_t max_piece;
  /* The most bytes that encode makes of `count` floats; depends on nothing else. */
  uint64_t (*bound)(void* context, uint64_t count);
  /* Writes at most `capacity` = bound(count) bytes to `out`, and their number to *bytes. */
  int (*encode)(void* context, const struct slimpi_hook_call_t* call, const float* in,
                uint64_t count, void* out, uint64_t capacity, uint64_t* bytes);
  /* Writes the `count` floats that encode was given, as nearly as it kept them; `out` holds zeros
   * before. The same bytes give the same floats on every rank. */
  int (*decode)(void* context, const struct slimpi_hook_call_t* call, const void* in,
                uint64_t bytes, float* out, uint64_t count);

  /* Strategies. What may fail on one rank alone belongs in prepare (may be NULL): if it fails
   * on any rank, allreduce runs on none. allreduce writes the sum over all ranks of `in` to `out`;
   * in == out where the program passed MPI_IN_PLACE, else `in` must not be written. Both lie on the
   * host, or with SLIMPI_HOOK_DEVICE_MEMORY where the program has them; what is queued on a stream
   * must be complete when allreduce returns. */
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
