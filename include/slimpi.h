/* SPDX-License-Identifier: BSD-3-Clause */
/* slimpi's optional C API. A program does not need it: slimpi works on programs that know nothing
 * of it. A program that wants to ask or to help may include this header and look the functions up
 * with dlsym(RTLD_DEFAULT, ...), so that it still runs where slimpi is not preloaded. */
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

/* What slimpi did in this process so far. Bytes are of this rank only, except bytes_plain, which
 * rank 0 of a communicator counts for all of it. */
struct slimpi_statistics_t {
  uint64_t size;        /* set by the caller to sizeof(struct slimpi_statistics_t) */
  uint64_t calls;       /* allreduces seen */
  uint64_t compressed;  /* of these, answered by slimpi */
  uint64_t bytes_in;    /* of the buffers of compressed calls */
  uint64_t bytes_sent;  /* put between nodes by this rank, headers included */
  uint64_t bytes_plain; /* what a bandwidth-optimal float allreduce would have put there */
};

/* Fills *statistics, as many of its fields as `size` says. Returns 0, or 1 where slimpi is inert
 * (no MPI, or one of another ABI) or `size` is not set. */
int slimpi_get_statistics(struct slimpi_statistics_t* statistics);

/* Says that buffers of `count` floats hold a matrix of `rows` x `columns` (rows * columns ==
 * count), for powersgd; all ranks say the same, before the first such call. Returns 0, or 1 if the
 * numbers do not fit. It wins over SLIMPI_POWERSGD_SHAPES. */
int slimpi_set_shape(uint64_t count, uint64_t rows, uint64_t columns);

/* Ends slimpi's work: writes the report and the trace, and leaves every later call to MPI. Runs by
 * itself when MPI_Finalize begins; only for programs that end in another way. Collective. */
void slimpi_finish(void);

#ifdef __cplusplus
}
#endif
#endif
