/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of the training program. */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include "network.h"

typedef struct {
  int epochs, batch, limit, per_layer, average_model;
  int hidden[NETWORK_LAYERS - 1], hidden_layers;
  float rate, momentum;
  uint64_t seed;
  const char *data, *json;
} Options;

/* Fills `options` from the command line; speaks of errors, and of --help, only where `speak` is
 * set. Returns 0 to go on, or 1 + the program's exit status. */
int options_parse(Options* options, int argc, char** argv, int speak);

#endif
