// SPDX-License-Identifier: BSD-3-Clause
#include "intercept/shim.h"

using slimpi::intercept::answer;
using slimpi::intercept::count_nonblocking;
using slimpi::intercept::Word;

SLIMPI_EXPORT int MPI_Allreduce(const void* in, void* out, int count, Word datatype, Word op,
                                Word comm) {
  int code = 0;
  if (answer({in, out, count, datatype, op, comm}, &code)) return code;
  return SLIMPI_NEXT("MPI_Allreduce", int(const void*, void*, int, Word, Word, Word))(
      in, out, count, datatype, op, comm);
}

SLIMPI_EXPORT int MPI_Allreduce_c(const void* in, void* out, std::int64_t count, Word datatype,
                                  Word op, Word comm) {
  int code = 0;
  if (answer({in, out, count, datatype, op, comm}, &code)) return code;
  return SLIMPI_NEXT("MPI_Allreduce_c", int(const void*, void*, std::int64_t, Word, Word, Word))(
      in, out, count, datatype, op, comm);
}

SLIMPI_EXPORT int MPI_Iallreduce(const void* in, void* out, int count, Word datatype, Word op,
                                 Word comm, Word request) {
  count_nonblocking();
  return SLIMPI_NEXT("MPI_Iallreduce", int(const void*, void*, int, Word, Word, Word, Word))(
      in, out, count, datatype, op, comm, request);
}

SLIMPI_EXPORT int MPI_Iallreduce_c(const void* in, void* out, std::int64_t count, Word datatype,
                                   Word op, Word comm, Word request) {
  count_nonblocking();
  return SLIMPI_NEXT("MPI_Iallreduce_c", int(const void*, void*, std::int64_t, Word, Word, Word,
                                             Word))(in, out, count, datatype, op, comm, request);
}

SLIMPI_EXPORT int MPI_Allreduce_init(const void* in, void* out, int count, Word datatype, Word op,
                                     Word comm, Word info, Word request) {
  count_nonblocking();
  return SLIMPI_NEXT("MPI_Allreduce_init",
                     int(const void*, void*, int, Word, Word, Word, Word, Word))(
      in, out, count, datatype, op, comm, info, request);
}

SLIMPI_EXPORT int MPI_Allreduce_init_c(const void* in, void* out, std::int64_t count, Word datatype,
                                       Word op, Word comm, Word info, Word request) {
  count_nonblocking();
  return SLIMPI_NEXT("MPI_Allreduce_init_c",
                     int(const void*, void*, std::int64_t, Word, Word, Word, Word, Word))(
      in, out, count, datatype, op, comm, info, request);
}
