/* SPDX-License-Identifier: BSD-3-Clause */
/* Every allreduce that slimpi leaves to MPI must give the same result as PMPI_Allreduce in host
 * memory: the same bytes, also between the elements, and the same class of error. Built three
 * times: with SLIMPI_TEST_PROTECTED buffers are also in the protected device's memory, and with
 * SLIMPI_TEST_GPU in that of a GPU. MPI cannot touch either, so these two programs need the
 * preload. Prints how often the report must have each reason for passing a call on, and how many
 * calls of this rank had to be staged. The argument `once` limits the test to the first round, and
 * to the cases where all buffers are on the device or where ranks differ. With NO_TYPE=skip in the
 * environment there is no call with MPI_DATATYPE_NULL; with BELOW=self, calls with a type that
 * begins below its address are made only on MPI_COMM_SELF. The arguments `no_type` and `below` make
 * only the calls of that kind, in host memory. */
#include "tests/helper/base/program.h"

#include "tests/helper/devices/gpu.h"
#include "tests/helper/mpi/mpi4.h"
#include "tests/mpi/values/numbers.h"

enum {
#if defined(SLIMPI_TEST_PROTECTED) || defined(SLIMPI_TEST_GPU)
  DEVICES = 1
#else
  DEVICES = 0
#endif
};
/* Allocations of the device. Only this process makes any. */
#ifdef SLIMPI_TEST_PROTECTED
#include "tests/helper/devices/protected_device.h"
#define allocations slimpi_protected_allocations
#else
static unsigned long allocations(void) {
  return 0;
}
#endif

#define BYTES 440000
#define MARGIN 4096 /* in front of the buffers, for types that begin below their address */

/* The reasons of the report for leaving a call to MPI. */
enum reason { TYPE, OP, SMALL, COMM, OFF, NONBLOCKING, REASONS };
static const char* const kReasons[REASONS] = {"datatype", "op",  "small",
                                              "comm",     "off", "nonblocking"};

static int g_calls, g_reasons[REASONS], g_staged;
static int g_kind; /* which ranks and buffers use the device; see places() */
static char *g_values, *g_expected, *g_got, *g_host[2], *g_device[2];

/* Chooses the kinds of memory for the input and the output. */
static void places(enum gpu_memory* in, enum gpu_memory* out) {
  const int mine = DEVICES && (g_kind != 3 || g_rank % 2 == 0);
  *in = mine && g_kind != 1 ? GPU_DEVICE : GPU_HOST;
  *out = mine && g_kind != 2 ? GPU_DEVICE : GPU_HOST;
}

static char* buffer(enum gpu_memory kind, int which) {
  return (kind == GPU_DEVICE ? g_device : g_host)[which];
}

static void check_as_pmpi(const char* what, int code, int wanted_code, enum reason reason,
                          const char* input_after) {
  int class = 0, wanted = 0;
  MPI_Error_class(code, &class);
  MPI_Error_class(wanted_code, &wanted);
  ++g_calls;
  ++g_reasons[reason];
  /* If a call with device memory fails, slimpi still writes the memory back. */
  const int bytes = DEVICES || wanted == MPI_SUCCESS;
  const int same = class == wanted && (!bytes || memcmp(g_got, g_expected, BYTES) == 0);
  const int kept = input_after == NULL || memcmp(input_after, g_values, BYTES) == 0;
  if ((same && kept) || ++g_failures > 10) return;
  size_t i = 0;
  while (i < BYTES && g_got[i] == g_expected[i]) ++i;
  printf("rank %d: %s, kind %d, differs from MPI with host memory: class %d, not %d; byte %zu%s\n",
         g_rank, what, g_kind, class, wanted, i, kept ? "" : "; the input was changed");
}

static int call(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm, int large, int pmpi) {
  if (pmpi)
    return large ? PMPI_Allreduce_c(in, out, count, type, op, comm)
                 : PMPI_Allreduce(in, out, (int)count, type, op, comm);
  return large ? MPI_Allreduce_c(in, out, count, type, op, comm)
               : MPI_Allreduce(in, out, (int)count, type, op, comm);
}

enum how { TWO_BUFFERS, IN_PLACE, ALIASED, LARGE };

/* Makes one call and compares it with MPI's own. slimpi must not stage a call that is an error. */
static void one(const char* what, enum how how, int count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm, enum reason reason, int erroneous) {
  enum gpu_memory in_place, out_place;
  places(&in_place, &out_place);
  const int single = how == IN_PLACE || how == ALIASED;
  /* Bytes between the elements of the output must keep their values. */
  for (size_t i = 0; i < BYTES; ++i) g_expected[i] = (char)(i * 7 + 1);
  if (single) memcpy(g_expected, g_values, BYTES);
  gpu_copy(buffer(out_place, 1), out_place, g_expected, GPU_HOST, BYTES);
  gpu_copy(buffer(in_place, 0), in_place, g_values, GPU_HOST, BYTES);
  const void* from = how == IN_PLACE  ? MPI_IN_PLACE
                     : how == ALIASED ? g_expected + MARGIN
                                      : g_values + MARGIN;
  const int wanted = call(from, g_expected + MARGIN, count, type, op, comm, how == LARGE, 1);
  char *const in = buffer(in_place, 0) + MARGIN, *const out = buffer(out_place, 1) + MARGIN;
  const int code = call(how == IN_PLACE  ? MPI_IN_PLACE
                        : how == ALIASED ? (void*)out
                                         : (void*)in,
                        out, count, type, op, comm, how == LARGE, 0);
  gpu_copy(g_got, GPU_HOST, buffer(out_place, 1), out_place, BYTES);
  static char after[BYTES];
  gpu_copy(after, GPU_HOST, buffer(in_place, 0), in_place, BYTES);
  check_as_pmpi(what, code, wanted, reason, after);
  if (!erroneous && count > 0)
    g_staged += out_place == GPU_DEVICE || (!single && in_place == GPU_DEVICE);
}

static void both(const char* what, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                 enum reason reason) {
  one(what, TWO_BUFFERS, count, type, op, comm, reason, 0);
  one(what, IN_PLACE, count, type, op, comm, reason, 0);
}

static void fill(int floating, size_t width) {
  fill_numbers(g_values, BYTES, width, floating, DEVICES ? 0.1 : 1, g_rank);
}

/* Tries every operation with every type in host memory, so that some calls are errors; on a device,
 * only the operations that the device's row has. Logical operations of floats are left out, because
 * they stop MPICH. */
static void types_and_operations(void) {
  enum { TYPES = 26, FLOATS = 3, OPS = 11, LOGICAL = 3, VALID = 3 };
#define ROW(type, floating, width, ...) \
  {                                     \
#type, type, floating, width, {     \
      __VA_ARGS__                       \
    }                                   \
  }
  const struct {
    const char* name;
    MPI_Datatype type;
    int floating;
    size_t width;
    MPI_Op valid[VALID];
  } rows[TYPES] = {ROW(MPI_INT, 0, 4, MPI_SUM, MPI_BAND, MPI_LXOR),
                   ROW(MPI_INT8_T, 0, 1, MPI_SUM, MPI_PROD, MPI_MIN),
                   ROW(MPI_SHORT, 0, 2, MPI_SUM, MPI_BXOR, MPI_LAND),
                   ROW(MPI_UINT32_T, 0, 4, MPI_MAX),
                   ROW(MPI_LONG_LONG, 0, 8, MPI_SUM, MPI_BAND, MPI_MIN),
                   ROW(MPI_UNSIGNED_CHAR, 0, 1, MPI_SUM),
                   ROW(MPI_BYTE, 0, 1, MPI_BXOR),
                   ROW(MPI_CHAR, 0, 1, MPI_LAND),
                   ROW(MPI_C_BOOL, 0, 1, MPI_LOR, MPI_LAND, MPI_LXOR),
                   ROW(MPI_DOUBLE, 1, 8, MPI_SUM, MPI_PROD, MPI_MAX),
                   ROW(MPI_DOUBLE_PRECISION, 1, 8, MPI_SUM),
                   ROW(MPI_REAL8, 1, 8, MPI_SUM),
                   ROW(MPI_C_FLOAT_COMPLEX, 1, 4, MPI_SUM),
                   ROW(MPI_COMPLEX, 1, 4, MPI_PROD),
                   ROW(MPI_C_DOUBLE_COMPLEX, 1, 8, MPI_SUM, MPI_PROD),
                   ROW(MPI_INTEGER, 0, 4, MPI_SUM),
                   ROW(MPI_LOGICAL, 0, 4, MPI_LOR),
                   ROW(MPI_AINT, 0, 8, MPI_SUM),
                   ROW(MPI_COUNT, 0, 8, MPI_SUM),
                   ROW(MPI_FLOAT_INT, 1, 4, MPI_MAXLOC, MPI_MINLOC),
                   ROW(MPI_2INT, 0, 4, MPI_MAXLOC, MPI_MINLOC),
                   ROW(MPI_DOUBLE_INT, 1, 8, MPI_MAXLOC, MPI_MINLOC),
                   ROW(MPI_2REAL, 1, 4, MPI_MAXLOC),
                   ROW(MPI_FLOAT, 1, 4, MPI_PROD, MPI_MAX, MPI_MIN),
                   ROW(MPI_REAL, 1, 4, MPI_MAX),
                   ROW(MPI_REAL4, 1, 4, MPI_MIN)};
#undef ROW
  const MPI_Op ops[OPS] = {MPI_SUM,    MPI_MAX,    MPI_MIN,  MPI_PROD, MPI_BAND, MPI_BXOR,
                           MPI_MINLOC, MPI_MAXLOC, MPI_LAND, MPI_LOR,  MPI_LXOR};
  for (int t = 0; t < TYPES; ++t) {
    const enum reason reason = t >= TYPES - FLOATS ? OP : TYPE;
    const int number = DEVICES ? VALID : OPS - (rows[t].floating ? LOGICAL : 0);
    fill(rows[t].floating, rows[t].width);
    one(rows[t].name, LARGE, 777, rows[t].type, rows[t].valid[0], MPI_COMM_WORLD, reason, 0);
    for (int o = 0; o < number; ++o) {
      const MPI_Op op = DEVICES ? rows[t].valid[o] : ops[o];
      if (op == (MPI_Op)0 || (reason == OP && op == MPI_SUM)) continue;
      both(rows[t].name, 20011, rows[t].type, op, MPI_COMM_WORLD, reason);
    }
  }
}

/* Adds the first float of every sixteen bytes, which is in a gap of no type here. The gaps in MPI's
 * own buffers may have any bytes. */
static void add(void* a, void* b, int* count, MPI_Datatype* type) {
  MPI_Aint low, extent, true_low, true_extent;
  MPI_Type_get_extent(*type, &low, &extent);
  MPI_Type_get_true_extent(*type, &true_low, &true_extent);
  for (int i = 0; i < *count; ++i)
    for (MPI_Aint at = true_low; at + 4 <= true_low + true_extent; at += 16) {
      float x, y;
      memcpy(&x, (char*)a + i * extent + at, 4);
      memcpy(&y, (char*)b + i * extent + at, 4);
      y += x;
      memcpy((char*)b + i * extent + at, &y, 4);
    }
}

static void make_below(MPI_Datatype* type) {
  const MPI_Aint offset = -24;
  const int length = 4;
  MPI_Datatype float_type = MPI_FLOAT;
  MPI_Type_create_struct(1, &length, &offset, &float_type, type);
  MPI_Type_commit(type);
}

/* Makes only calls with the type that begins below its address, several times, because MPICH
 * changes its algorithm within a node after some calls. */
static void only_below(void) {
  MPI_Datatype below;
  MPI_Op plus;
  MPI_Op_create(add, 1, &plus);
  make_below(&below);
  for (int i = 0; i < 400; ++i)
    PMPI_Allreduce(g_values + MARGIN, g_got + MARGIN, 1, below, plus, MPI_COMM_WORLD);
  MPI_Type_free(&below);
  MPI_Op_free(&plus);
}

static void made_by_the_program(void) {
  MPI_Datatype pairs, strided, wide, backwards, below, renamed;
  MPI_Op plus;
  fill(1, 4);
  MPI_Op_create(add, 1, &plus);
  MPI_Type_contiguous(2, MPI_FLOAT, &pairs);
  MPI_Type_vector(3, 1, 4, MPI_FLOAT, &strided);
  MPI_Type_create_resized(pairs, 0, 40, &wide);
  MPI_Type_create_resized(pairs, 0, -16, &backwards);
  make_below(&below);
  MPI_Type_dup(MPI_FLOAT, &renamed);
  MPI_Datatype* const types[] = {&pairs, &strided, &wide, &backwards, &below, &renamed};
  const char* const names[] = {"pairs", "strided", "wide", "backwards", "below", "renamed"};
  for (int i = 0; i < 6; ++i) MPI_Type_commit(types[i]);
  both("a user's operation", 30000, MPI_FLOAT, plus, MPI_COMM_WORLD, OP);
  for (int i = 0; i < 6; ++i) {
    /* MPICH 4.0 itself dies of a negative extent when it needs a buffer of its own. */
    const int alone = *types[i] == backwards || (*types[i] == below && getenv("BELOW") != NULL);
    const MPI_Comm comm = alone ? MPI_COMM_SELF : MPI_COMM_WORLD;
    both(names[i], 1, *types[i], plus, comm, TYPE);
    both(names[i], 200, *types[i], plus, comm, TYPE);
    one(names[i], LARGE, 150, *types[i], plus, comm, TYPE, 0);
  }
  one("a sum of pairs", TWO_BUFFERS, 200, pairs, MPI_SUM, MPI_COMM_WORLD, TYPE, 1);
  for (int i = 0; i < 6; ++i) MPI_Type_free(types[i]);
  MPI_Op_free(&plus);
}

static void communicators(void) {
  MPI_Comm half, inter;
  fill(1, 4);
  both("self", 50000, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF, COMM);
  both("self", 50000, MPI_DOUBLE, MPI_MAX, MPI_COMM_SELF, TYPE);
  if (g_size < 2) return;
  MPI_Comm_split(MPI_COMM_WORLD, g_rank % 2, g_rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - g_rank % 2, 9, &inter);
  both("half", 50000, MPI_DOUBLE, MPI_SUM, half, TYPE);
  one("intercommunicator", TWO_BUFFERS, 50000, MPI_FLOAT, MPI_SUM, inter, COMM, 0);
  one("intercommunicator", LARGE, 50000, MPI_DOUBLE, MPI_SUM, inter, TYPE, 0);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

static void float_sums(void) {
  fill(1, 4);
  for (int count = 0; count < 4; ++count)
    both("few", count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, SMALL);
  both("small", 16383, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, SMALL);
  MPI_Pcontrol(0);
  both("off", 100003, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, OFF);
  MPI_Pcontrol(1);
}

/* Checks that errors have MPI's own texts, and that bytes which MPI does not write keep their
 * values. */
static void errors(void) {
  fill(1, 4);
  one("no operation", TWO_BUFFERS, 100, MPI_FLOAT, MPI_OP_NULL, MPI_COMM_WORLD, OP, 1);
  if (getenv("NO_TYPE") == NULL)
    one("no type", TWO_BUFFERS, 100, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD, TYPE, 1);
  one("no communicator", TWO_BUFFERS, 50000, MPI_FLOAT, MPI_SUM, MPI_COMM_NULL, COMM, 1);
  one("one buffer twice", ALIASED, 5000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, TYPE, 1);
}

/* Makes sums of floats in host memory that slimpi leaves to MPI: calls that are errors, and
 * nonblocking ones without threads of slimpi. */
static void of_host_memory(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  float *const in = (float*)g_values, *const out = (float*)g_got;
  one("one buffer of floats twice", ALIASED, 50000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, SMALL, 1);
  const int refused = PMPI_Allreduce(in, MPI_IN_PLACE, 50000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  check_as_pmpi("result in place",
                MPI_Allreduce(in, MPI_IN_PLACE, 50000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD), refused,
                SMALL, NULL);
  memset(g_got, 0, BYTES);
  memset(g_expected, 0, BYTES);
  PMPI_Allreduce(in, g_expected, 70000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Iallreduce(in, out, 70000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  check_as_pmpi("nonblocking", MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, NONBLOCKING,
                NULL);
#if HAS_PERSISTENT_SUMS
  memset(g_got, 0, BYTES);
  MPI_Allreduce_init(in, out, 70000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  check_as_pmpi("persistent", MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, NONBLOCKING,
                NULL);
  MPI_Request_free(&request);
#endif
}

int main(int argc, char** argv) {
  begin_mpi();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  char** const buffers[] = {&g_values, &g_expected, &g_got, &g_host[0], &g_host[1]};
  for (int i = 0; i < 5; ++i) *buffers[i] = malloc(BYTES);
  const int no_type = argc > 1 && strcmp(argv[1], "no_type") == 0;
  if (no_type || (argc > 1 && strcmp(argv[1], "below") == 0)) {
    fill(1, 4);
    if (no_type)
      PMPI_Allreduce(g_values, g_got, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD);
    else
      only_below();
    MPI_Finalize();
    return 0;
  }
  exit_unless_0(DEVICES ? gpu_open() : 0);
  for (int i = 0; i < 2; ++i) g_device[i] = gpu_take(DEVICES ? GPU_DEVICE : GPU_HOST, BYTES);
  const int once = argc > 1 && strcmp(argv[1], "once") == 0;
  unsigned long used = 0;
  for (int round = 0; round < (once || !DEVICES ? 1 : 2); ++round)
    for (g_kind = 0; g_kind < (DEVICES ? 4 : 1); g_kind += once ? 3 : 1) {
      if (g_kind == 0 && round == 1) used = allocations();
      types_and_operations();
      made_by_the_program();
      communicators();
      float_sums();
      if (round == 0) errors();
    }
  if (!DEVICES) of_host_memory();
  if (!once && allocations() != used) {
    printf("rank %d: memory was allocated for sizes that had been there before\n", g_rank);
    ++g_failures;
  }
  if (g_rank == 0) printf("staged %d\ntotal %d\n", g_staged, g_calls);
  for (int i = 0; g_rank == 0 && i < REASONS; ++i) printf("%s %d\n", kReasons[i], g_reasons[i]);
  return end_mpi();
}
