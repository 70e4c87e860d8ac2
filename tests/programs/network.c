/* SPDX-License-Identifier: BSD-3-Clause */
#include "network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The hot loops are compiled once per instruction set; the loader picks one. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define EVERY_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EVERY_CPU
#endif

enum { ROWS = 6, COLUMNS = 16, DEPTH = 256 };
typedef float Vector __attribute__((vector_size(COLUMNS * sizeof(float))));

/* C (m x n) = A B, where A(i, p) is a[i * row + p * column] and B is k x n row by row.
 * B goes through a panel of DEPTH x COLUMNS that stays in the first cache; ROWS x COLUMNS of C stay
 * in registers. */
EVERY_CPU static void multiply(int m, int n, int k, const float* a, size_t row, size_t column,
                               const float* b, float* c) {
  Vector panel[DEPTH];
  memset(c, 0, (size_t)m * (size_t)n * sizeof *c);
  for (int p0 = 0; p0 < k; p0 += DEPTH) {
    const int depth = k - p0 < DEPTH ? k - p0 : DEPTH;
    for (int j0 = 0; j0 < n; j0 += COLUMNS) {
      const int width = n - j0 < COLUMNS ? n - j0 : COLUMNS;
      for (int p = 0; p < depth; ++p) {
        panel[p] = (Vector){0};
        memcpy(&panel[p], b + (size_t)(p0 + p) * (size_t)n + j0, (size_t)width * sizeof *b);
      }
      for (int i0 = 0; i0 < m; i0 += ROWS) {
        /* A short last tile repeats its last row and stores it once. */
        const float* from[ROWS];
        for (int i = 0; i < ROWS; ++i)
          from[i] = a + (size_t)(i0 + i < m ? i0 + i : m - 1) * row + (size_t)p0 * column;
        Vector s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0};
        for (int p = 0; p < depth; ++p) {
          const size_t at = (size_t)p * column;
          s0 += from[0][at] * panel[p];
          s1 += from[1][at] * panel[p];
          s2 += from[2][at] * panel[p];
          s3 += from[3][at] * panel[p];
          s4 += from[4][at] * panel[p];
          s5 += from[5][at] * panel[p];
        }
        const Vector sums[ROWS] = {s0, s1, s2, s3, s4, s5};
        for (int i = 0; i < ROWS && i0 + i < m; ++i) {
          float* to = c + (size_t)(i0 + i) * (size_t)n + j0;
          for (int j = 0; j < width; ++j) to[j] += sums[i][j];
        }
      }
    }
  }
}

uint64_t random_next(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

int network_make(Network* net, const int* sizes, int layers, int batch, uint64_t seed) {
  memset(net, 0, sizeof *net);
  net->layers = layers;
  net->batch = batch;
  size_t widest = 1;
  for (int l = 0; l < layers; ++l) {
    Layer* layer = &net->layer[l];
    layer->inputs = sizes[l];
    layer->outputs = sizes[l + 1];
    layer->offset = net->size;
    const size_t weights = (size_t)layer->inputs * (size_t)layer->outputs;
    layer->size = weights + (size_t)layer->outputs;
    net->size += layer->size;
    if (l > 0 && weights > widest) widest = weights;
    layer->values = malloc((size_t)batch * (size_t)layer->outputs * sizeof(float));
    layer->deltas = malloc((size_t)batch * (size_t)layer->outputs * sizeof(float));
    if (layer->values == NULL || layer->deltas == NULL) return -1;
  }
  net->model = calloc(net->size, sizeof(float));
  net->gradient = calloc(net->size, sizeof(float));
  net->velocity = calloc(net->size, sizeof(float));
  net->input = malloc((size_t)batch * (size_t)sizes[0] * sizeof(float));
  net->transposed = malloc(widest * sizeof(float));
  if (!net->model || !net->gradient || !net->velocity || !net->input || !net->transposed) return -1;

  uint64_t state = seed;
  for (int l = 0; l < layers; ++l) {
    const Layer* layer = &net->layer[l];
    const float range = sqrtf(6.0f / (float)layer->inputs);
    for (size_t i = 0; i < (size_t)layer->inputs * (size_t)layer->outputs; ++i) {
      const float unit = (float)(random_next(&state) >> 40) * (1.0f / (1 << 24));
      net->model[layer->offset + i] = (2.0f * unit - 1.0f) * range;
    }
  }
  return 0;
}

static float* bias_of(float* model, const Layer* layer) {
  return model + layer->offset + (size_t)layer->inputs * (size_t)layer->outputs;
}

/* Turns a row of scores into probabilities; returns the loss of the row. */
static double softmax(float* row, int count, int label, int* correct) {
  int best = 0;
  for (int j = 1; j < count; ++j)
    if (row[j] > row[best]) best = j;
  *correct += best == label;
  const float highest = row[best];
  float sum = 0.0f;
  for (int j = 0; j < count; ++j) sum += row[j] = expf(row[j] - highest);
  for (int j = 0; j < count; ++j) row[j] /= sum;
  return -log((double)row[label] + 1e-30);
}

double network_forward(Network* net, const unsigned char* labels, int count, int* correct) {
  const float* input = net->input;
  for (int l = 0; l < net->layers; ++l) {
    const Layer* layer = &net->layer[l];
    const float* bias = bias_of(net->model, layer);
    multiply(count, layer->outputs, layer->inputs, input, (size_t)layer->inputs, 1,
             net->model + layer->offset, layer->values);
    for (int i = 0; i < count; ++i) {
      float* row = layer->values + (size_t)i * (size_t)layer->outputs;
      for (int j = 0; j < layer->outputs; ++j) row[j] += bias[j];
      if (l + 1 < net->layers)
        for (int j = 0; j < layer->outputs; ++j) row[j] = row[j] > 0.0f ? row[j] : 0.0f;
    }
    input = layer->values;
  }
  const Layer* last = &net->layer[net->layers - 1];
  double loss = 0.0;
  for (int i = 0; i < count; ++i)
    loss += softmax(last->values + (size_t)i * (size_t)last->outputs, last->outputs, labels[i],
                    correct);
  return loss;
}

void network_backward(Network* net, const unsigned char* labels, int count) {
  const Layer* last = &net->layer[net->layers - 1];
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < last->outputs; ++j) {
      const size_t at = (size_t)i * (size_t)last->outputs + (size_t)j;
      last->deltas[at] = (last->values[at] - (float)(j == labels[i])) / (float)count;
    }
  for (int l = net->layers - 1; l >= 0; --l) {
    const Layer* layer = &net->layer[l];
    const float* input = l > 0 ? net->layer[l - 1].values : net->input;
    multiply(layer->inputs, layer->outputs, count, input, 1, (size_t)layer->inputs, layer->deltas,
             net->gradient + layer->offset);
    float* bias = bias_of(net->gradient, layer);
    memset(bias, 0, (size_t)layer->outputs * sizeof *bias);
    for (int i = 0; i < count; ++i)
      for (int j = 0; j < layer->outputs; ++j)
        bias[j] += layer->deltas[(size_t)i * (size_t)layer->outputs + (size_t)j];
    if (l == 0) break;
    const float* weights = net->model + layer->offset;
    for (int i = 0; i < layer->inputs; ++i)
      for (int j = 0; j < layer->outputs; ++j)
        net->transposed[(size_t)j * (size_t)layer->inputs + (size_t)i] =
            weights[(size_t)i * (size_t)layer->outputs + (size_t)j];
    const Layer* below = &net->layer[l - 1];
    multiply(count, layer->inputs, layer->outputs, layer->deltas, (size_t)layer->outputs, 1,
             net->transposed, below->deltas);
    for (size_t i = 0; i < (size_t)count * (size_t)below->outputs; ++i)
      if (below->values[i] <= 0.0f) below->deltas[i] = 0.0f;
  }
}

void network_step(Network* net, float rate, float momentum) {
  for (size_t i = 0; i < net->size; ++i) {
    net->velocity[i] = momentum * net->velocity[i] + net->gradient[i];
    net->model[i] -= rate * net->velocity[i];
  }
}

void network_free(Network* net) {
  for (int l = 0; l < net->layers; ++l) {
    free(net->layer[l].values);
    free(net->layer[l].deltas);
  }
  free(net->model);
  free(net->gradient);
  free(net->velocity);
  free(net->input);
  free(net->transposed);
  memset(net, 0, sizeof *net);
}
