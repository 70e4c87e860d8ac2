/* SPDX-License-Identifier: BSD-3-Clause */
/* Images and labels in MNIST's idx format, plain or gzipped. */
#ifndef DATASET_H
#define DATASET_H

#include <stddef.h>

typedef struct {
  int count;             /* images held */
  int pixels;            /* of one image */
  unsigned char* images; /* count x pixels, row by row */
  unsigned char* labels; /* count, each below DATASET_CLASSES */
} Dataset;

enum { DATASET_CLASSES = 10 };

/* Reads DIR/NAME-images-idx3-ubyte[.gz] and DIR/NAME-labels-idx1-ubyte[.gz]; of the first `limit`
 * images (all if 0) keeps number part, part + parts, part + 2 parts and so on, the same number for
 * every part. Returns 0, or -1 with one line in `error`. Free with dataset_free either way. */
int dataset_read(Dataset* set, const char* directory, const char* name, int limit, int part,
                 int parts, char* error, size_t error_size);

/* Writes image `index` to out[0 .. pixels) with about zero mean and unit variance; returns its
 * label. */
int dataset_image(const Dataset* set, int index, float* out);

void dataset_free(Dataset* set);

#endif
