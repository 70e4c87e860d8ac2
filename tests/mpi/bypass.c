/* SPDX-License-Identifier: BSD-3-Clause */
/* Every allreduce that is not a sum of floats gives what PMPI_Allreduce gives: the same bytes, and
 * the same class of error. Prints how often each reason for passing must stand in the report. With
 * NO_TYPE=skip in the environment it makes no call with MPI_DATATYPE_NULL; with the argument
 * `no_type` it makes one, and no other. */
#include "tests/helper/program.h"

#include "tests/helper/mpi4.h"
#include "tests/mpi/numbers.h"

#define COUNT 70000
#define BYTES (COUNT * 64)

static int calls;
static int datatype, op_reason, small, comm_reason, off, nonblocking;
static char *in, *expected, *got;

static void check_as_pmpi(const char* what, int code, int wanted_code) {
  int class = 0, wanted = 0;
  MPI_Error_class(code, &class);
  MPI_Error_class(wanted_code, &wanted);
  ++calls;
  if (class == wanted && (wanted != MPI_SUCCESS || memcmp(got, expected, BYTES) == 0)) return;
  if (++g_failures < 10)
    printf("rank %d: %s differs from PMPI: class %d, not %d\n", g_rank, what, class, wanted);
}

static void both(const char* what, const void* from, int n, MPI_Datatype type, MPI_Op op,
                 MPI_Comm comm) {
  memset(expected, 7, BYTES);
  memset(got, 7, BYTES);
  if (from == MPI_IN_PLACE) {
    memcpy(expected, in, BYTES);
    memcpy(got, in, BYTES);
  }
  const int wanted = PMPI_Allreduce(from, expected, n, type, op, comm);
  check_as_pmpi(what, MPI_Allreduce(from, got, n, type, op, comm), wanted);
}

static void fill(int floating, size_t width) {
  fill_numbers(in, BYTES, width, floating, 1, g_rank);
}

static void types_and_operations(void) {
  const struct {
    const char* name;
    MPI_Datatype type;
    int floating;
    size_t width;
  } types[] = {{"MPI_INT", MPI_INT, 0, 4},
               {"MPI_INT8_T", MPI_INT8_T, 0, 1},
               {"MPI_SHORT", MPI_SHORT, 0, 2},
               {"MPI_UINT32_T", MPI_UINT32_T, 0, 4},
               {"MPI_LONG_LONG", MPI_LONG_LONG, 0, 8},
               {"MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR, 0, 1},
               {"MPI_BYTE", MPI_BYTE, 0, 1},
               {"MPI_CHAR", MPI_CHAR, 0, 1},
               {"MPI_C_BOOL", MPI_C_BOOL, 0, 1},
               {"MPI_DOUBLE", MPI_DOUBLE, 1, 8},
               {"MPI_DOUBLE_PRECISION", MPI_DOUBLE_PRECISION, 1, 8},
               {"MPI_REAL8", MPI_REAL8, 1, 8},
               {"MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX, 1, 4},
               {"MPI_COMPLEX", MPI_COMPLEX, 1, 4},
               {"MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX, 1, 8},
               {"MPI_INTEGER", MPI_INTEGER, 0, 4},
               {"MPI_LOGICAL", MPI_LOGICAL, 0, 4},
               {"MPI_AINT", MPI_AINT, 0, 8},
               {"MPI_COUNT", MPI_COUNT, 0, 8},
               {"MPI_FLOAT_INT", MPI_FLOAT_INT, 1, 4},
               {"MPI_2INT", MPI_2INT, 0, 4},
               {"MPI_DOUBLE_INT", MPI_DOUBLE_INT, 1, 8},
               {"MPI_2REAL", MPI_2REAL, 1, 4},
               {"MPI_FLOAT", MPI_FLOAT, 1, 4},
               {"MPI_REAL", MPI_REAL, 1, 4},
               {"MPI_REAL4", MPI_REAL4, 1, 4}};
  /* MPICH stops at logical operations of floats: they are left out. */
  const MPI_Op ops[] = {MPI_SUM,    MPI_MAX,    MPI_MIN,  MPI_PROD, MPI_BAND, MPI_BXOR,
                        MPI_MINLOC, MPI_MAXLOC, MPI_LAND, MPI_LOR,  MPI_LXOR};
  for (size_t t = 0; t < sizeof types / sizeof *types; ++t) {
    const int is_float = t + 3 >= sizeof types / sizeof *types;
    const size_t end = sizeof ops / sizeof *ops - (types[t].floating ? 3 : 0);
    fill(types[t].floating, types[t].width);
    for (size_t o = 0; o < end; ++o) {
      if (is_float && ops[o] == MPI_SUM) continue;
      both(types[t].name, in, 20000, types[t].type, ops[o], MPI_COMM_WORLD);
      *(is_float ? &op_reason : &datatype) += 1;
    }
    both(types[t].name, MPI_IN_PLACE, 20000, types[t].type, ops[1], MPI_COMM_WORLD);
    *(is_float ? &op_reason : &datatype) += 1;
  }
}

static void add(void* a, void* b, int* n, MPI_Datatype* type) {
  for (int i = 0; i < *n; ++i) ((float*)b)[i] += ((float*)a)[i];
  (void)type;
}

static void add_pairs(void* a, void* b, int* n, MPI_Datatype* type) {
  for (int i = 0; i < 2 * *n; ++i) ((float*)b)[i] += ((float*)a)[i];
  (void)type;
}

static void made_by_the_program(void) {
  MPI_Datatype pairs, renamed;
  MPI_Op plus, plus_pairs;
  fill(1, 4);
  MPI_Type_contiguous(2, MPI_FLOAT, &pairs);
  MPI_Type_commit(&pairs);
  MPI_Type_dup(MPI_FLOAT, &renamed);
  MPI_Op_create(add, 1, &plus);
  MPI_Op_create(add_pairs, 1, &plus_pairs);
  both("user operation", in, COUNT, MPI_FLOAT, plus, MPI_COMM_WORLD), ++op_reason;
  both("pairs of floats", in, COUNT / 2, pairs, plus_pairs, MPI_COMM_WORLD), ++datatype;
  both("sum of pairs", in, COUNT / 2, pairs, MPI_SUM, MPI_COMM_WORLD), ++datatype;
  both("copy of a type", in, COUNT, renamed, plus, MPI_COMM_WORLD), ++datatype;
  MPI_Op_free(&plus);
  MPI_Op_free(&plus_pairs);
  MPI_Type_free(&pairs);
  MPI_Type_free(&renamed);
}

static void few_or_alone(void) {
  MPI_Comm half, inter;
  fill(1, 4);
  for (int n = 0; n < 5; ++n) both("few", in, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD), ++small;
  both("just below", in, 16383, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD), ++small;
  both("self", in, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF), ++comm_reason;
  both("self in place", MPI_IN_PLACE, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF), ++comm_reason;
  MPI_Comm_split(MPI_COMM_WORLD, g_rank % 2, g_rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - g_rank % 2, 9, &inter);
  both("intercommunicator", in, COUNT, MPI_FLOAT, MPI_SUM, inter), ++comm_reason;
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

static void errors(void) {
  both("no communicator", in, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_NULL), ++comm_reason;
  if (getenv("NO_TYPE") == NULL)
    both("no type", in, COUNT, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD), ++datatype;
  both("no operation", in, COUNT, MPI_FLOAT, MPI_OP_NULL, MPI_COMM_WORLD), ++op_reason;
  memcpy(expected, in, BYTES);
  memcpy(got, in, BYTES);
  const int wanted = PMPI_Allreduce(expected, expected, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  check_as_pmpi("aliased", MPI_Allreduce(got, got, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
                wanted);
  ++small;
  const int refused = PMPI_Allreduce(in, MPI_IN_PLACE, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  check_as_pmpi("result in place",
                MPI_Allreduce(in, MPI_IN_PLACE, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
                refused);
  ++small;
}

static void other_ways(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  fill(1, 4);
  PMPI_Allreduce(in, expected, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  memcpy(got, expected, BYTES);
  memset(got, 0, COUNT * sizeof(float));
  MPI_Iallreduce(in, got, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  check_as_pmpi("nonblocking", MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS), ++nonblocking;
#if HAS_PERSISTENT_SUMS
  memset(got, 0, COUNT * sizeof(float));
  MPI_Allreduce_init(in, got, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  check_as_pmpi("persistent", MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS), ++nonblocking;
  MPI_Request_free(&request);
#endif
  memset(got, 0, BYTES);
  memset(expected, 0, BYTES);
  check_as_pmpi("large count", MPI_Allreduce_c(in, got, 1000, MPI_DOUBLE, MPI_MAX, MPI_COMM_SELF),
                PMPI_Allreduce_c(in, expected, 1000, MPI_DOUBLE, MPI_MAX, MPI_COMM_SELF));
  ++datatype;
  MPI_Pcontrol(0);
  both("off", in, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD), ++off;
  MPI_Pcontrol(1);
}

int main(int argc, char** argv) {
  begin_mpi();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  in = malloc(BYTES);
  expected = malloc(BYTES);
  got = malloc(BYTES);
  if (argc > 1 && strcmp(argv[1], "no_type") == 0) {
    PMPI_Allreduce(in, got, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
  }
  types_and_operations();
  made_by_the_program();
  few_or_alone();
  errors();
  other_ways();
  if (g_rank == 0)
    printf("total %d\ndatatype %d\nop %d\nsmall %d\ncomm %d\noff %d\nnonblocking %d\n", calls,
           datatype, op_reason, small, comm_reason, off, nonblocking);
  return end_mpi();
}
