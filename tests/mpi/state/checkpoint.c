/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums two named tensors in twelve steps, and keeps their state in files between two runs.
 * Usage: checkpoint WHAT DIRECTORY
 *   save       all steps; after six of them each rank writes its state
 *   load       the last six, with the state of those files
 *   without    the last six
 *   one        the same, where rank 1 loads nothing
 *   changed    the same, where rank 1 has changed the last number of its state
 *   flat       the same as load, with another hierarchy
 *   function   the same as load, by MPI_Reduce_scatter
 *   dropped    the same as load, and drops the states before the first sum
 *   unheld     the same as load, after sums of these tensors that no sum in float32 can hold
 *   refused    states that no rank may load: of another rank, cut short, made longer, none
 *   request    only persistent sums, whose requests outlive their communicators; later ones
 *              do not know the states of these sums, whatever handles they get
 * Each rank prints its rank and a digest of the sums of the last six steps. */
#include "tests/helper/mpi/mpi4.h"
#include "tests/helper/base/program.h"

enum { STEPS = 12, SAVED_AT = 6, TENSORS = 2, MOST = 70000 };

static const struct {
  const char* name;
  int count;
  slimpi_matrix_t matrix;
} tensors[TENSORS] = {{"first", 6000, {60, 90}}, {"second", MOST, {200, 350}}};

static int (*describe)(const slimpi_tensor_t*);
static int (*get_state)(const void*, const char*, void*, uint64_t*);
static int (*set_state)(const void*, const char*, const void*, uint64_t);
static MPI_Comm comm;

static void* find(const char* name) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  must(found != NULL, name);
  return found;
}

static float input(int step, int tensor, int i) {
  const uint32_t mixed =
      (uint32_t)(i + 1) * 2654435761u ^ (uint32_t)(step * 31 + tensor * 7 + g_rank) * 2246822519u;
  return (float)(mixed >> 8) / 16777216.0f - 0.4f;
}

static char* path(char* text, size_t size, const char* directory, int of_rank, int tensor) {
  snprintf(text, size, "%s/%d.%d", directory, of_rank, tensor);
  return text;
}

static void save(const char* directory) {
  char name[4096];
  for (int t = 0; t < TENSORS; ++t) {
    uint64_t size = 0;
    must(get_state(&comm, tensors[t].name, NULL, &size) == 0 && size > 0, "the size of a state");
    char* const state = malloc(size);
    uint64_t small = size - 1;
    must(state != NULL && get_state(&comm, tensors[t].name, state, &small) == 1, "too small");
    must(get_state(&comm, tensors[t].name, state, &size) == 0, "a state");
    FILE* const file = fopen(path(name, sizeof name, directory, g_rank, t), "wb");
    must(file != NULL && fwrite(state, 1, size, file) == size && fclose(file) == 0, "write");
    free(state);
  }
  uint64_t size = 0;
  must(get_state(&comm, "third", NULL, &size) == 1, "a state of no tensor");
}

/* Loads a state into memory with room for eight more bytes. */
static char* load(const char* directory, int of_rank, int tensor, uint64_t* size) {
  char name[4096];
  FILE* const file = fopen(path(name, sizeof name, directory, of_rank, tensor), "rb");
  must(file != NULL && fseek(file, 0, SEEK_END) == 0, "a file");
  *size = (uint64_t)ftell(file);
  rewind(file);
  char* const state = calloc(1, *size + 8);
  must(state != NULL && fread(state, 1, *size, file) == *size, "read");
  fclose(file);
  return state;
}

/* Makes sums of a tensor that slimpi leaves to MPI because float32 cannot hold their values: one by
 * a persistent request, which exists until the end, and a blocking one. */
static MPI_Request doubles[TENSORS] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
static void sum_doubles(int tensor) {
  static double buffer[MOST];
  const int count = tensors[tensor].count;
  const slimpi_tensor_t next = {sizeof next, tensors[tensor].name, NULL, 0};
  for (int i = 0; i < count; ++i) buffer[i] = 1e300;
#if HAS_PERSISTENT_SUMS
  must(describe(&next) == 0, "a description");
  MPI_Allreduce_init(MPI_IN_PLACE, buffer, count, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL,
                     &doubles[tensor]);
  MPI_Start(&doubles[tensor]);
  MPI_Wait(&doubles[tensor], MPI_STATUS_IGNORE);
  must(buffer[0] > 1e300, "a persistent sum of doubles");
#endif
  must(describe(&next) == 0, "a description");
  MPI_Allreduce(MPI_IN_PLACE, buffer, count, MPI_DOUBLE, MPI_SUM, comm);
  must(buffer[0] > 1e300, "a sum of doubles");
}

static void restore(const char* what, const char* directory) {
  for (int t = 0; t < TENSORS; ++t) {
    uint64_t size, other_size, again = 0;
    char* const state = load(directory, g_rank, t, &size);
    const char* const name = tensors[t].name;
    if (strcmp(what, "refused") == 0) {
      char* const other = load(directory, (g_rank + 1) % g_size, t, &other_size);
      must(set_state(&comm, name, other, other_size) == 1, "the state of another rank");
      must(set_state(&comm, name, state, size - 4) == 1, "a state cut short");
      must(set_state(&comm, name, state, 16) == 1, "the front of a state");
      must(set_state(&comm, name, state, size + 4) == 1, "a state with more behind it");
      must(set_state(&comm, name, NULL, size) == 1, "no state");
      must(set_state(&comm, name, NULL, 0) == 0, "the state is dropped");
      must(set_state(&comm, "", state, size) == 1, "no name");
      free(other);
    } else {
      if (strcmp(what, "changed") == 0 && g_rank == 1) state[size - 2] ^= 1;
      must(set_state(&comm, name, state, size) == 0, "a state of this rank");
      if (strcmp(what, "unheld") == 0) sum_doubles(t);
      char* const same = malloc(size);
      must(get_state(&comm, name, NULL, &again) == 0 && again == size &&
               get_state(&comm, name, same, &again) == 0 && memcmp(same, state, size) == 0,
           "what was set is got");
      free(same);
      if (strcmp(what, "dropped") == 0)
        must(set_state(&comm, name, NULL, 0) == 0 && get_state(&comm, name, NULL, &again) == 1,
             "a state that no sum has used is dropped");
    }
    free(state);
  }
}

#if HAS_PERSISTENT_SUMS
static void outlive(void) {
  enum { ROUNDS = 6 };
  static float buffer[MOST], other[MOST];
  const slimpi_tensor_t tensor = {sizeof tensor, "kept", NULL, 0};
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Request request;
    uint64_t size;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    must(describe(&tensor) == 0, "a description");
    MPI_Allreduce_init(MPI_IN_PLACE, buffer, MOST, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL,
                       &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    must(get_state(&comm, "kept", NULL, &size) == 0, "the state of a request");
    MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Allreduce(MPI_IN_PLACE, other, MOST, MPI_FLOAT, MPI_SUM, comm);
    must(get_state(&comm, "kept", NULL, &size) == 1, "a request of another communicator");
    MPI_Comm_free(&comm);
    MPI_Request_free(&request);
  }
}
#endif

int main(int argc, char** argv) {
  begin_mpi();
  must(argc == 3, "usage: checkpoint WHAT DIRECTORY");
  const char* const what = argv[1];
  void* found = find("slimpi_describe_next");
  memcpy(&describe, &found, sizeof found);
  found = find("slimpi_get_state");
  memcpy(&get_state, &found, sizeof found);
  found = find("slimpi_set_state");
  memcpy(&set_state, &found, sizeof found);

#if HAS_PERSISTENT_SUMS
  if (strcmp(what, "request") == 0) {
    outlive();
    MPI_Finalize();
    return 0;
  }
#endif

  /* A communicator must have its options before its state. */
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "slimpi_start", "0");
  if (strcmp(what, "flat") == 0) MPI_Info_set(info, "slimpi_hierarchy", "flat");
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
  const int saves = strcmp(what, "save") == 0;
  if (!saves && strcmp(what, "without") != 0 && !(strcmp(what, "one") == 0 && g_rank == 1))
    restore(what, argv[2]);

  static float buffer[MOST];
  uint64_t digest = kDigest;
  for (int step = saves ? 0 : SAVED_AT; step < STEPS; ++step) {
    if (step == SAVED_AT && saves) save(argv[2]);
    for (int t = 0; t < TENSORS; ++t) {
      const slimpi_tensor_t tensor = {sizeof tensor, tensors[t].name, &tensors[t].matrix, 1};
      for (int i = 0; i < tensors[t].count; ++i) buffer[i] = input(step, t, i);
      must(describe(&tensor) == 0, "a description");
      if (strcmp(what, "function") == 0) {
        int counts[64] = {0};
        counts[0] = tensors[t].count;
        MPI_Reduce_scatter(MPI_IN_PLACE, buffer, counts, MPI_FLOAT, MPI_SUM, comm);
        MPI_Bcast(buffer, tensors[t].count, MPI_FLOAT, 0, comm);
      } else {
        MPI_Allreduce(MPI_IN_PLACE, buffer, tensors[t].count, MPI_FLOAT, MPI_SUM, comm);
      }
      if (step < SAVED_AT) continue;
      digest = digest_of(buffer, (size_t)tensors[t].count * sizeof(float), digest);
    }
  }
  printf("%d %016" PRIx64 "\n", g_rank, digest);
  fflush(stdout);
  for (int t = 0; t < TENSORS; ++t)
    if (doubles[t] != MPI_REQUEST_NULL) MPI_Request_free(&doubles[t]);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
