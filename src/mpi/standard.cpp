// SPDX-License-Identifier: BSD-3-Clause
// The standard ABI of MPI 5.0. Handles are pointers; predefined ones are small numbers.
#include "mpi/abis.h"

namespace slimpi::mpi {

constexpr Abi kStandard = {
    .name = "the MPI 5 ABI",
    .handle_bits = ~Word(0),
    .in_place = {1},
    .op_sum = Op(0x21),
    .comm_null = Comm(0x100),
    .comm_self = Comm(0x102),
    .type_float = Datatype(0x210),
    .type_real = Datatype(0x21a),
    .type_real4 = Datatype(0x2d2),
    .type_double = Datatype(0x214),
    .type_double_precision = Datatype(0x21c),
    .type_real8 = Datatype(0x2da),
    .predefined = {{0x200, 0x400}, {0, 0}},
    .comm_world = Comm(0x101),
    .errhandler_null = Errhandler(0x140),
    .errors_are_fatal = Errhandler(0x141),
    .errors_return = Errhandler(0x143),
    .group_null = Group(0x108),
    .info_null = Info(0x130),
    .request_null = Request(0x180),
    .datatype_null = Datatype(0x200),
    .type_byte = Datatype(0x247),
    .type_char = Datatype(0x243),
    .type_int = Datatype(0x209),
    .type_int64_t = Datatype(0x258),
    .type_uint32_t = Datatype(0x251),
    .type_uint64_t = Datatype(0x259),
    .op_null = Op(0x20),
    .op_max = Op(0x23),
    .op_min = Op(0x22),
    .status_ignore = {0},
    .any_source = -1,
    .any_tag = -2,
    .comm_type_shared = 221,
    .err_in_status = 19,
    .err_other = 16,
    .keyval_invalid = 0,
    .tag_ub = 501,
    .thread_multiple = 4096,
    .max_error_string = 512,
    .max_info_val = 1024,
    .fortran_calls_pmpi = false,
    .status = {.source = 0, .tag = 1, .error = 2, .bytes = 32},
};

}  // namespace slimpi::mpi
