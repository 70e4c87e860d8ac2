/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Mean and standard deviation of Fashion-MNIST's training pixels, 0 to 255. */
static const float pixel_mean = 72.94f, pixel_deviation = 90.02f;

static unsigned big_endian(const unsigned char* bytes) {
  return (unsigned)bytes[0] << 24 | (unsigned)bytes[1] << 16 | (unsigned)bytes[2] << 8 | bytes[3];
}

/* Opens the file plain or with .gz behind its name; reads an idx header of `dimensions` sizes. */
static gzFile idx_open(const char* directory, const char* name, const char* suffix, int dimensions,
                       int* sizes, char* error, size_t error_size) {
  char path[4096];
  gzFile file = NULL;
  for (int gz = 1; gz >= 0 && file == NULL; --gz) {
    snprintf(path, sizeof path, "%s/%s-%s-ubyte%s", directory, name, suffix, gz ? ".gz" : "");
    file = gzopen(path, "rb");
  }
  if (file == NULL) {
    snprintf(error, error_size,
             "cannot open %s[.gz]: install Debian's dataset-fashion-mnist or name the directory "
             "with --data",
             path);
    return NULL;
  }
  unsigned char header[16];
  const int bytes = 4 + 4 * dimensions;
  const unsigned magic = 0x0800u + (unsigned)dimensions;
  if (gzread(file, header, (unsigned)bytes) != bytes || big_endian(header) != magic) {
    snprintf(error, error_size, "%s is not an idx file of %d dimensions", path, dimensions);
    gzclose(file);
    return NULL;
  }
  for (int d = 0; d < dimensions; ++d) {
    const unsigned size = big_endian(header + 4 + 4 * d);
    if (size == 0 || size > 10000000u) {
      snprintf(error, error_size, "%s says that it holds %u of something", path, size);
      gzclose(file);
      return NULL;
    }
    sizes[d] = (int)size;
  }
  return file;
}

/* Keeps every parts-th of the records that follow the header. */
static int read_part(gzFile file, unsigned char* out, int record, int part, int parts, int count) {
  unsigned char* skipped = malloc((size_t)record);
  int good = skipped != NULL;
  for (int i = 0; good && i < count * parts; ++i) {
    unsigned char* to = i % parts == part ? out + (size_t)(i / parts) * (size_t)record : skipped;
    good = gzread(file, to, (unsigned)record) == record;
  }
  free(skipped);
  return good ? 0 : -1;
}

int dataset_read(Dataset* set, const char* directory, const char* name, int limit, int part,
                 int parts, char* error, size_t error_size) {
  memset(set, 0, sizeof *set);
  int image_sizes[3], label_sizes[1], result = -1;
  gzFile images = idx_open(directory, name, "images-idx3", 3, image_sizes, error, error_size);
  gzFile labels =
      images ? idx_open(directory, name, "labels-idx1", 1, label_sizes, error, error_size) : NULL;
  if (labels == NULL) goto close;
  if (image_sizes[0] != label_sizes[0]) {
    snprintf(error, error_size, "%s/%s: %d images but %d labels", directory, name, image_sizes[0],
             label_sizes[0]);
    goto close;
  }
  const int total = limit > 0 && limit < image_sizes[0] ? limit : image_sizes[0];
  set->count = total / parts;
  set->pixels = image_sizes[1] * image_sizes[2];
  set->images = malloc((size_t)set->count * (size_t)set->pixels + 1);
  set->labels = malloc((size_t)set->count + 1);
  if (set->images == NULL || set->labels == NULL) {
    snprintf(error, error_size, "no memory for %d images", set->count);
    goto close;
  }
  if (read_part(images, set->images, set->pixels, part, parts, set->count) != 0 ||
      read_part(labels, set->labels, 1, part, parts, set->count) != 0) {
    snprintf(error, error_size, "%s/%s-*: shorter than its header says", directory, name);
    goto close;
  }
  for (int i = 0; i < set->count; ++i)
    if (set->labels[i] >= DATASET_CLASSES) {
      snprintf(error, error_size, "%s/%s-labels: label %d", directory, name, set->labels[i]);
      goto close;
    }
  result = 0;
close:
  if (labels) gzclose(labels);
  if (images) gzclose(images);
  return result;
}

int dataset_image(const Dataset* set, int index, float* out) {
  const unsigned char* image = set->images + (size_t)index * (size_t)set->pixels;
  for (int p = 0; p < set->pixels; ++p)
    out[p] = ((float)image[p] - pixel_mean) * (1.0f / pixel_deviation);
  return set->labels[index];
}

void dataset_free(Dataset* set) {
  free(set->images);
  free(set->labels);
  memset(set, 0, sizeof *set);
}
