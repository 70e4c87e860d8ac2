// SPDX-License-Identifier: BSD-3-Clause
// MPICH's ABI, as of MPICH 3.2. Handles are ints.
#include "mpi/abis.h"

namespace slimpi::mpi {

constexpr Abi kMpich = {
    .name = "MPICH",
    .handle_bits = 0xffffffff,
    .in_place = {~Word(0)},
    .op_sum = Op(0x58000003),
    .comm_null = Comm(0x04000000),
    .comm_self = Comm(0x44000001),
    .type_float = Datatype(0x4c00040a),
    .type_real = Datatype(0x4c00041c),
    .type_real4 = Datatype(0x4c000427),
    .type_double = Datatype(0x4c00080b),
    .type_double_precision = Datatype(0x4c00081f),
    .type_real8 = Datatype(0x4c000829),
    .predefined = {{0x40000000, 0x80000000}, {0, 0}},
    .comm_world = Comm(0x44000000),
    .errhandler_null = Errhandler(0x14000000),
    .errors_are_fatal = Errhandler(0x54000000),
    .errors_return = Errhandler(0x54000001),
    .group_null = Group(0x08000000),
    .info_null = Info(0x1c000000),
    .request_null = Request(0x2c000000),
    .datatype_null = Datatype(0x0c000000),
    .type_byte = Datatype(0x4c00010d),
    .type_char = Datatype(0x4c000101),
    .type_int = Datatype(0x4c000405),
    .type_int64_t = Datatype(0x4c00083a),
    .type_uint32_t = Datatype(0x4c00043d),
    .type_uint64_t = Datatype(0x4c00083e),
    .op_null = Op(0x18000000),
    .op_max = Op(0x58000001),
    .op_min = Op(0x58000002),
    .status_ignore = {1},
    .any_source = -2,
    .any_tag = -1,
    .comm_type_shared = 1,
    .err_in_status = 17,
    .err_other = 15,
    .keyval_invalid = 0x24000000,
    .tag_ub = 0x64400001,
    .thread_multiple = 3,
    .max_error_string = 512,
    .max_info_val = 1024,
    .fortran_calls_pmpi = false,
    .status = {.source = 2, .tag = 3, .error = 4, .bytes = 20},
};

constinit Abi abi = kMpich;

}  // namespace slimpi::mpi
