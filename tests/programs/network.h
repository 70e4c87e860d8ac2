/* SPDX-License-Identifier: BSD-3-Clause */
/* A multilayer perceptron: dense layers, ReLU between them, softmax cross-entropy on top. */
#ifndef NETWORK_H
#define NETWORK_H

#include <stddef.h>
#include <stdint.h>

enum { NETWORK_LAYERS = 8 };

typedef struct {
  int inputs, outputs;
  size_t offset,
      size;      /* of its weights (inputs x outputs, row by row), then biases, in the model */
  float* values; /* batch x outputs: what the layer puts out */
  float* deltas; /* batch x outputs: the loss's derivative by what ReLU or softmax gets */
} Layer;

typedef struct {
  int layers, batch;
  Layer layer[NETWORK_LAYERS];
  size_t size; /* of each of the three: one flat buffer of floats */
  float *model, *gradient, *velocity;
  float* input;      /* batch x layer[0].inputs; the caller fills it */
  float* transposed; /* scratch of the backward pass */
} Network;

/* sizes[0 .. layers] are inputs, hidden sizes, outputs. Equal seeds draw equal models.
 * Returns 0, or -1 when there is no memory. Free with network_free either way. */
int network_make(Network* net, const int* sizes, int layers, int batch, uint64_t seed);

/* Runs the first `count` rows of net->input. Returns the summed loss; counts right answers. */
double network_forward(Network* net, const unsigned char* labels, int count, int* correct);

/* After network_forward with the same labels: fills net->gradient with the mean over the rows. */
void network_backward(Network* net, const unsigned char* labels, int count);

/* Momentum SGD: velocity = momentum velocity + gradient; model -= rate velocity. */
void network_step(Network* net, float rate, float momentum);

void network_free(Network* net);

/* The next number of a splitmix64 sequence. */
uint64_t random_next(uint64_t* state);

#endif
