/* SPDX-License-Identifier: BSD-3-Clause */
/* A codec for slimpi's hooks: of every piece only the largest eighth of the values is sent, each
 * with its place. Worth most with SLIMPI_ERROR_FEEDBACK=1, which adds the others later.
 *
 * Code of a piece: uint32 how many, that many uint32 places in ascending order, that many floats.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "slimpi.h"

#define ONE_OF 8

static uint64_t kept_of(uint64_t count) {
  return (count + ONE_OF - 1) / ONE_OF;
}

static uint64_t bound(void* context, uint64_t count) {
  (void)context;
  return 4 + 8 * kept_of(count);
}

/* Returns the size that `rank` other sizes are not smaller than, by Hoare's selection. Moves the
 * sizes about. */
static float select_largest(float* sizes, uint64_t count, uint64_t rank) {
  uint64_t first = 0, last = count - 1;
  while (first < last) {
    const float middle = sizes[first + (last - first) / 2];
    uint64_t i = first, j = last;
    for (;;) {
      while (sizes[i] > middle) ++i;
      while (sizes[j] < middle) --j;
      if (i >= j) break;
      const float held = sizes[i];
      sizes[i++] = sizes[j];
      sizes[j--] = held;
    }
    /* [first, j] >= middle >= [j + 1, last] */
    if (rank <= j)
      last = j;
    else
      first = j + 1;
  }
  return sizes[rank];
}

/* A NaN counts as larger than anything, so that it is never lost. */
static float size_of(float value) {
  return isnan(value) ? INFINITY : fabsf(value);
}

static int encode(void* context, const struct slimpi_hook_call_t* call, const float* in,
                  uint64_t count, void* out, uint64_t capacity, uint64_t* bytes) {
  (void)context;
  (void)capacity;
  const uint64_t most = kept_of(count);
  float* const sizes = malloc(count * sizeof(float));
  if (sizes == NULL) {
    strcpy(call->reason, "no memory to find the largest values");
    return 1;
  }
  for (uint64_t i = 0; i < count; ++i) sizes[i] = size_of(in[i]);
  const float least = select_largest(sizes, count, most - 1);
  free(sizes);

  /* Keeps all sizes above the least size that is kept, and the first ones of those equal to it. */
  uint64_t above = 0;
  for (uint64_t i = 0; i < count; ++i) above += size_of(in[i]) > least;
  uint64_t equal = most - above;
  uint32_t* const places = (uint32_t*)out + 1;
  uint32_t kept = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const float size = size_of(in[i]);
    if (size == 0 || size < least || (size == least && equal == 0)) continue;
    if (size == least) --equal;
    places[kept++] = (uint32_t)i;
  }
  float* const values = (float*)(places + kept);
  for (uint32_t k = 0; k < kept; ++k) values[k] = in[places[k]];
  *(uint32_t*)out = kept;
  *bytes = 4 + 8 * (uint64_t)kept;
  return 0;
}

static int decode(void* context, const struct slimpi_hook_call_t* call, const void* in,
                  uint64_t bytes, float* out, uint64_t count) {
  (void)context;
  const uint32_t* const words = in;
  if (bytes < 4 || bytes != 4 + 8 * (uint64_t)words[0]) {
    strcpy(call->reason, "the code has another length than it says");
    return 1;
  }
  const uint32_t kept = words[0];
  const float* const values = (const float*)(words + 1 + kept);
  for (uint32_t k = 0; k < kept; ++k) {
    if (words[1 + k] >= count) return 2;
    out[words[1 + k]] = values[k];
  }
  return 0;
}

const struct slimpi_hook_t slimpi_hook = {
    .abi = SLIMPI_HOOK_ABI,
    .size = sizeof(struct slimpi_hook_t),
    .kind = SLIMPI_HOOK_CODEC,
    .name = "topk 1",
    .bound = bound,
    .encode = encode,
    .decode = decode,
};
