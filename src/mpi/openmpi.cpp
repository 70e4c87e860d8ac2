// SPDX-License-Identifier: BSD-3-Clause
// Open MPI 4 and 5. Handles are the addresses of objects, predefined ones of objects with a symbol.
#include "mpi/abis.h"

namespace slimpi::mpi {

Abi open_mpi(const void* (*symbol)(const char* name)) {
  const auto at = [symbol](const char* name) { return Word(symbol(name)); };
  return {
      .name = "Open MPI",
      .handle_bits = ~Word(0),
      .in_place = {1},
      .op_sum = Op(at("ompi_mpi_op_sum")),
      .comm_null = Comm(at("ompi_mpi_comm_null")),
      .comm_self = Comm(at("ompi_mpi_comm_self")),
      .type_float = Datatype(at("ompi_mpi_float")),
      .type_real = Datatype(at("ompi_mpi_real")),
      .type_real4 = Datatype(at("ompi_mpi_real4")),
      .type_double = Datatype(at("ompi_mpi_double")),
      .type_double_precision = Datatype(at("ompi_mpi_dblprec")),
      .type_real8 = Datatype(at("ompi_mpi_real8")),
      .type_float16 = Datatype(at("ompi_mpi_short_float")),  // only in builds that have it
      .predefined = {},
      .comm_world = Comm(at("ompi_mpi_comm_world")),
      .errhandler_null = Errhandler(at("ompi_mpi_errhandler_null")),
      .errors_are_fatal = Errhandler(at("ompi_mpi_errors_are_fatal")),
      .errors_return = Errhandler(at("ompi_mpi_errors_return")),
      .group_null = Group(at("ompi_mpi_group_null")),
      .info_null = Info(at("ompi_mpi_info_null")),
      .request_null = Request(at("ompi_request_null")),
      .datatype_null = Datatype(at("ompi_mpi_datatype_null")),
      .type_byte = Datatype(at("ompi_mpi_byte")),
      .type_char = Datatype(at("ompi_mpi_char")),
      .type_int = Datatype(at("ompi_mpi_int")),
      .type_int64_t = Datatype(at("ompi_mpi_int64_t")),
      .type_uint32_t = Datatype(at("ompi_mpi_uint32_t")),
      .type_uint64_t = Datatype(at("ompi_mpi_uint64_t")),
      .op_null = Op(at("ompi_mpi_op_null")),
      .op_max = Op(at("ompi_mpi_op_max")),
      .op_min = Op(at("ompi_mpi_op_min")),
      .status_ignore = {0},
      .any_source = -1,
      .any_tag = -1,
      .comm_type_shared = 0,
      .err_in_status = 18,
      .err_other = 16,
      .keyval_invalid = -1,
      .tag_ub = 0,
      .thread_multiple = 3,
      .max_error_string = 256,
      .max_info_val = 256,
      .fortran_calls_pmpi = true,
      .status = {.source = 0, .tag = 1, .error = 2, .bytes = 24},
  };
}

}  // namespace slimpi::mpi
