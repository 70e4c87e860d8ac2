/* SPDX-License-Identifier: BSD-3-Clause */
/* Candidate codecs of tests/bench/codecs/experiment.py. Each function writes what a receiver
 * decodes, and returns the bits of the message, headers included. Nothing is laid out as bytes. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum rule { MINMAX, ONE_STEP, PACKED };
/* Levels of a bucket of w bits, in steps: -(h-1) .. h-1 with h = 2^(w-1); one more on the side of
 * the greatest magnitude; -h+1/2 .. h-1/2. */
enum grid { ZERO, UNEVEN, HALF };

struct parameters {
  double bits;  /* a value takes on the wire; MINMAX: without headers, a whole number */
  double alpha; /* exponent of the step: 0 is one step a tile, 1 is one width a tile */
  double over;  /* PACKED, UNEVEN, nearest: steps from the last level to the maximum */
  int rule;
  int grid;
  int tile;       /* values that share a budget of bits; 0: all of a message */
  int bucket;     /* values that share a scale; 0, MINMAX only: all of a message */
  int scale_bits; /* of a minimum, a maximum, a bucket's scale */
  int mantissa;   /* PACKED: bits of a scale's mantissa */
  int stochastic;
  int least, most; /* widths */
  uint32_t seed;
};

static uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}

static float float_of(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}

/* Uniform in [0, 1). */
static inline float uniform(uint32_t seed, uint32_t i) {
  uint32_t h = (i ^ seed) * 0x9e3779b1u;
  h = (h ^ (h >> 15)) * 0x85ebca6bu;
  h = (h ^ (h >> 13)) * 0xc2b2ae35u;
  return (float)((h ^ (h >> 16)) >> 8) * 0x1p-24f;
}

static float greatest(const float* x, long n) {
  uint32_t high = 0;
  for (long i = 0; i < n; i++) {
    const uint32_t u = bits_of(x[i]) & 0x7fffffff;
    high = u > high ? u : high;
  }
  return float_of(high);
}

/* out = the levels nearest to x, or around it, in steps from `offset`; levels low to high. */
static void round_values(const float* x, float* out, long n, float step, float offset, float low,
                         float high, const struct parameters* p, uint32_t at) {
  const float inverse = 1 / step;
  if (p->stochastic)
    for (long i = 0; i < n; i++) {
      float level = floorf((x[i] - offset) * inverse + uniform(p->seed, at + (uint32_t)i));
      level = level < high ? level : high;
      out[i] = offset + (level > low ? level : low) * step;
    }
  else
    for (long i = 0; i < n; i++) {
      float level = rintf((x[i] - offset) * inverse);
      level = level < high ? level : high;
      out[i] = offset + (level > low ? level : low) * step;
    }
}

/* `x` in a float of `bits` bits, rounded away from `inside`. */
static float shortened(float x, int bits, int upwards) {
  const int drop = 32 - bits;
  const uint32_t u = bits_of(x), cut = u >> drop << drop;
  if (cut == u || (x < 0) == upwards) return float_of(cut);
  return float_of(cut + (1u << drop));
}

static double minmax(const float* x, float* out, long n, const struct parameters* p) {
  double used = 0;
  const long bucket = p->bucket ? p->bucket : n;
  const float top = (float)((1 << (int)p->bits) - 1);
  for (long o = 0; o < n; o += bucket) {
    const long length = n - o < bucket ? n - o : bucket;
    float low = x[o], high = x[o];
    for (long i = 1; i < length; i++) {
      low = x[o + i] < low ? x[o + i] : low;
      high = x[o + i] > high ? x[o + i] : high;
    }
    low = shortened(low, p->scale_bits, 0), high = shortened(high, p->scale_bits, 1);
    used += 2 * p->scale_bits + (double)length * p->bits;
    const float step = (high - low) / top;
    if (!(step > 0)) {
      for (long i = 0; i < length; i++) out[o + i] = low;
    } else if (!p->stochastic && p->grid == ZERO && low <= 0 && high >= 0) {
      const float zero = rintf(-low / step);
      round_values(x + o, out + o, length, step, 0, -zero, top - zero, p, (uint32_t)o);
    } else {
      round_values(x + o, out + o, length, step, low, 0, top, p, (uint32_t)o);
    }
  }
  return used;
}

/* Bits of the largest code of a bucket, with the greatest magnitude m. */
static int code_width(double m, const struct parameters* p) {
  if (p->grid == HALF) return m < 0.25 ? 0 : m <= 1 ? 1 : 1 + (int)ceil(log2(m));
  const double code = p->stochastic ? ceil(m) : nearbyint(m);
  return code < 1 ? 0 : (int)ceil(log2(2 * code + 1));
}

/* A bucket is as wide as its largest code. Its step is q * maximum^alpha; q is the smallest power
 * of 2^(1/8) that fits the tile into its bits. */
static double one_step(const float* x, float* out, long n, const struct parameters* p) {
  const long tile = p->tile ? p->tile : n, bucket = p->bucket;
  double *high = malloc(2 * sizeof *high * (size_t)(tile / bucket + 1)), used = 0;
  double* power = high + tile / bucket + 1;
  for (long o = 0; o < n; o += tile) {
    const long length = n - o < tile ? n - o : tile, buckets = (length + bucket - 1) / bucket;
    double most = 0;
    for (long j = 0; j < buckets; j++) {
      const long first = j * bucket, size = length - first < bucket ? length - first : bucket;
      high[j] = greatest(x + o + first, size);
      power[j] = high[j] > 0 ? pow(high[j], p->alpha) : 1;
      most = high[j] > most ? high[j] : most;
    }
    const double header = 32 + (p->alpha > 0 ? 4 + p->scale_bits : 5) * (double)buckets;
    const double budget = p->bits * (double)length - header;
    used += p->bits * (double)length;
    memset(out + o, 0, sizeof *out * (size_t)length);
    if (most == 0) continue;
    const double unit = pow(most, 1 - p->alpha);
    int no = -400, yes = 400;
    while (yes - no > 1) {
      const int middle = (no + yes) / 2;
      const double q = exp2(middle / 8.) * unit;
      double sum = 0;
      for (long j = 0; j < buckets; j++) {
        const long size = length - j * bucket < bucket ? length - j * bucket : bucket;
        sum += (double)size * code_width(high[j] / (q * power[j]), p);
      }
      if (sum <= budget)
        yes = middle;
      else
        no = middle;
    }
    const double q = exp2(yes / 8.) * unit;
    for (long j = 0; j < buckets; j++) {
      const long first = j * bucket, size = length - first < bucket ? length - first : bucket;
      const int width = code_width(high[j] / (q * power[j]), p);
      if (width == 0) continue;
      const float step = (float)(q * power[j]), half = (float)(1 << (width - 1));
      const float offset = p->grid == HALF ? step / 2 : 0;
      round_values(x + o + first, out + o + first, size, step, offset,
                   p->grid == HALF ? -half : 1 - half, half - 1, p, (uint32_t)(o + first));
    }
  }
  free(high);
  return used;
}

/* The width of a bucket with this scale: `level` is in eighths of a bit. */
static int bucket_width(int scale, int level, int slope, const struct parameters* p) {
  if (scale == 0) return 0;
  const int width = (level + (scale * slope >> 4)) >> 3;
  if (width == 1 && p->grid == ZERO) return p->least; /* only the level 0 */
  return width < p->least ? p->least : width > p->most ? p->most : width;
}

static void encode_bucket(const float* x, float* out, long n, float most, int width,
                          const struct parameters* p, uint32_t at) {
  const float half = (float)(1 << (width - 1));
  if (p->grid == HALF) {
    const float step = most / (p->stochastic ? half - 0.5f : half);
    round_values(x, out, n, step, step / 2, -half, half - 1, p, at);
  } else if (p->grid == ZERO) {
    const float step = most / (p->stochastic ? half - 1 : half - 0.5f);
    round_values(x, out, n, step, 0, 1 - half, half - 1, p, at);
  } else {
    float low = x[0], high = x[0];
    for (long i = 1; i < n; i++) {
      low = x[i] < low ? x[i] : low;
      high = x[i] > high ? x[i] : high;
    }
    const float step = most / (p->stochastic ? half : half + (float)p->over);
    if (high >= -low)
      round_values(x, out, n, step, 0, 1 - half, half, p, at);
    else
      round_values(x, out, n, step, 0, -half, half - 1, p, at);
  }
}

/* A bucket's header is its scale: the greatest magnitude, rounded up to a float of few bits of
 * mantissa, as a number of such floats up from a limit below the tile's. Its width follows from
 * its scale. A level of the tile, the largest that fits, shifts all widths. */
static double packed(const float* x, float* out, long n, const struct parameters* p) {
  const long bucket = p->bucket, tiles = p->tile ? (n + p->tile - 1) / p->tile : 1;
  const long tile = ((n + tiles - 1) / tiles + bucket - 1) / bucket * bucket;
  int* scale = malloc(sizeof *scale * (size_t)(tile / bucket + 1));
  const int drop = 23 - p->mantissa, range = 1 << (p->scale_bits - (p->grid == UNEVEN));
  const int slope = (int)lrint((1 - p->alpha) * 16 * (8 >> p->mantissa));
  double used = 0;
  for (long o = 0; o < n; o += tile) {
    const long length = n - o < tile ? n - o : tile, buckets = (length + bucket - 1) / bucket;
    const long last = length - (buckets - 1) * bucket;
    int top = 0;
    for (long j = 0; j < buckets; j++) {
      const float most = greatest(x + o + j * bucket, j + 1 < buckets ? bucket : last);
      scale[j] = (int)((bits_of(most) + (1u << drop) - 1) >> drop);
      top = scale[j] > top ? scale[j] : top;
    }
    const int base = top - (range - 1);
    for (long j = 0; j < buckets; j++) scale[j] = scale[j] > base ? scale[j] - base : 0;
    const double budget = p->bits * (double)length - 64 - p->scale_bits * (double)buckets;
    used += p->bits * (double)length;
    /* The largest level for all buckets, then a level more for as many of the first as fit. */
    int yes = -16 * range, no = 16 * 8 + 8;
    while (no - yes > 1) {
      const int level = (yes + no) / 2;
      long count[1 << 12] = {0};
      for (long j = 0; j < buckets; j++) count[scale[j]] += j + 1 < buckets ? bucket : last;
      double sum = 0;
      for (int s = 0; s < range; s++) sum += (double)count[s] * bucket_width(s, level, slope, p);
      if (sum <= budget || level < -15 * range)
        yes = level;
      else
        no = level;
    }
    double sum = 0;
    for (long j = 0; j < buckets; j++)
      sum += (double)(j + 1 < buckets ? bucket : last) * bucket_width(scale[j], yes, slope, p);
    int more = sum <= budget;
    for (long j = 0; j < buckets; j++) {
      const long size = j + 1 < buckets ? bucket : last, first = o + j * bucket;
      int width = bucket_width(scale[j], yes, slope, p);
      const int next = bucket_width(scale[j], yes + 1, slope, p);
      if (more && sum + (double)((next - width) * size) <= budget)
        sum += (double)((next - width) * size), width = next;
      else
        more = 0;
      if (width == 0)
        memset(out + first, 0, sizeof *out * (size_t)size);
      else
        encode_bucket(x + first, out + first, size, float_of((uint32_t)(scale[j] + base) << drop),
                      width, p, (uint32_t)first);
    }
    if (sum > budget && yes > -15 * range) used = NAN;
  }
  free(scale);
  return used;
}

/* A message of n values. */
double message(const float* x, float* out, long n, const struct parameters* p) {
  if (n == 0) return 0;
  if (p->rule == MINMAX) return minmax(x, out, n, p);
  return p->rule == ONE_STEP ? one_step(x, out, n, p) : packed(x, out, n, p);
}
