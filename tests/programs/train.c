/* SPDX-License-Identifier: BSD-3-Clause */
/* Data-parallel training of a small network on Fashion-MNIST, in plain C and plain MPI: every rank
 * takes its share of the images, and an MPI_Allreduce sums the gradients of each step. Nothing here
 * knows of slimpi; that is the point of it. */
#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset.h"
#include "network.h"

static const char usage[] =
    "usage: train [options]\n"
    "Trains a multilayer perceptron on Fashion-MNIST, data-parallel over all MPI ranks.\n"
    "  --epochs N       passes over the training images (5)\n"
    "  --batch N        images per rank and step (64)\n"
    "  --limit N        only the first N training images\n"
    "  --per-layer      one MPI_Allreduce per layer instead of one for the whole gradient\n"
    "  --average-model  step on the rank's own gradient, then average the models\n"
    "  --data DIR       idx files, plain or gzipped (/usr/share/datasets/fashion-mnist)\n"
    "  --json FILE      write the results, from rank 0\n";

typedef struct {
  int epochs, batch, limit, per_layer, average_model;
  const char *data, *json;
} Options;

enum { HIDDEN_LAYERS = 2, SEED = 1 };
static const int hidden[HIDDEN_LAYERS] = {256, 128};
static const float learning_rate = 0.05f, momentum = 0.9f; /* the rate falls linearly to 0 */

typedef struct {
  double loss, accuracy, seconds, allreduce_seconds;
} Epoch;

static int rank, ranks;

/* Sums net's buffer over the ranks and divides by their number. Returns the seconds that this
 * took. */
static double average(const Network* net, float* buffer, int per_layer) {
  const double start = MPI_Wtime();
  if (per_layer)
    for (int l = net->layers - 1; l >= 0; --l)
      MPI_Allreduce(MPI_IN_PLACE, buffer + net->layer[l].offset, (int)net->layer[l].size, MPI_FLOAT,
                    MPI_SUM, MPI_COMM_WORLD);
  else
    MPI_Allreduce(MPI_IN_PLACE, buffer, (int)net->size, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - start;
  for (size_t i = 0; i < net->size; ++i) buffer[i] /= (float)ranks;
  return seconds;
}

static void load(Network* net, const Dataset* set, const int* order, int count,
                 unsigned char* labels) {
  for (int i = 0; i < count; ++i)
    labels[i] = (unsigned char)dataset_image(set, order[i],
                                             net->input + (size_t)i * (size_t)net->layer[0].inputs);
}

/* The part of the test images that all ranks together get right. */
static double test(Network* net, const Dataset* set, const int* order, unsigned char* labels) {
  int counts[2] = {0, set->count};
  for (int at = 0; at < set->count; at += net->batch) {
    const int count = set->count - at < net->batch ? set->count - at : net->batch;
    load(net, set, order + at, count, labels);
    network_forward(net, labels, count, &counts[0]);
  }
  MPI_Allreduce(MPI_IN_PLACE, counts, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return counts[1] > 0 ? (double)counts[0] / (double)counts[1] : 0.0;
}

static uint64_t checksum(const Network* net) {
  uint64_t hash = 0xcbf29ce484222325u;
  const unsigned char* bytes = (const unsigned char*)net->model;
  for (size_t i = 0; i < net->size * sizeof(float); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

static int write_json(const Options* options, const Network* net, const Epoch* epochs, int steps,
                      const uint64_t* sums, int identical) {
  FILE* file = fopen(options->json, "w");
  if (file == NULL) {
    fprintf(stderr, "train: --json %s: cannot be written\n", options->json);
    return -1;
  }
  fprintf(file, "{\"ranks\": %d, \"parameters\": %zu, \"batch\": %d, \"seed\": %d,\n", ranks,
          net->size, options->batch, SEED);
  fprintf(file, " \"steps_per_epoch\": %d, \"identical\": %s, \"checksum\": \"%016llx\",\n", steps,
          identical ? "true" : "false", (unsigned long long)sums[0]);
  fprintf(file, " \"epochs\": [");
  for (int e = 0; e < options->epochs; ++e)
    fprintf(file,
            "%s\n  {\"epoch\": %d, \"loss\": %.6f, \"accuracy\": %.4f, \"seconds\": %.3f, "
            "\"allreduce_seconds\": %.3f}",
            e ? "," : "", e + 1, epochs[e].loss, epochs[e].accuracy, epochs[e].seconds,
            epochs[e].allreduce_seconds);
  fprintf(file, "]}\n");
  return fclose(file);
}

/* Makes one pass over this rank's images, in a new order. */
static Epoch run_epoch(const Options* options, Network* net, const Dataset* set, int* order,
                       unsigned char* labels, int epoch, int steps, uint64_t* state) {
  Epoch result = {0};
  const double start = MPI_Wtime();
  for (int i = set->count - 1; i > 0; --i) {
    const int j = (int)(random_next(state) % (uint64_t)(i + 1));
    const int held = order[i];
    order[i] = order[j];
    order[j] = held;
  }
  double loss[2] = {0.0, (double)steps * options->batch};
  int correct = 0;
  for (int step = 0; step < steps; ++step) {
    const double done = ((double)epoch * steps + step) / ((double)options->epochs * steps);
    const float rate = learning_rate * (float)(1.0 - done);
    load(net, set, order + (size_t)step * (size_t)options->batch, options->batch, labels);
    loss[0] += network_forward(net, labels, options->batch, &correct);
    network_backward(net, labels, options->batch);
    if (options->average_model) {
      network_step(net, rate, momentum);
      result.allreduce_seconds += average(net, net->model, options->per_layer);
    } else {
      result.allreduce_seconds += average(net, net->gradient, options->per_layer);
      network_step(net, rate, momentum);
    }
  }
  result.seconds = MPI_Wtime() - start;
  MPI_Allreduce(MPI_IN_PLACE, loss, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  result.loss = loss[0] / loss[1];
  return result;
}

static int train(const Options* options, Network* net, const Dataset* images, const Dataset* tests,
                 int* order, unsigned char* labels, Epoch* epochs, uint64_t* sums) {
  const int steps = images->count / options->batch;
  int* test_order = order + images->count;
  for (int i = 0; i < images->count; ++i) order[i] = i;
  for (int i = 0; i < tests->count; ++i) test_order[i] = i;
  uint64_t state = SEED * 0x2545f4914f6cdd1du + (uint64_t)rank;
  for (int e = 0; e < options->epochs; ++e) {
    epochs[e] = run_epoch(options, net, images, order, labels, e, steps, &state);
    epochs[e].accuracy = test(net, tests, test_order, labels);
    if (rank != 0) continue;
    printf("epoch %d of %d  loss %.4f  test accuracy %.2f %%  %.2f s, %.2f s of it in allreduce\n",
           e + 1, options->epochs, epochs[e].loss, 100.0 * epochs[e].accuracy, epochs[e].seconds,
           epochs[e].allreduce_seconds);
    fflush(stdout);
  }
  uint64_t sum = checksum(net);
  MPI_Gather(&sum, 1, MPI_UINT64_T, sums, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (rank != 0) return 0;
  int identical = 1;
  for (int r = 0; r < ranks; ++r) {
    printf("rank %d model checksum %016llx\n", r, (unsigned long long)sums[r]);
    identical &= sums[r] == sums[0];
  }
  printf("all ranks hold the same bytes: %s\n", identical ? "yes" : "no");
  return options->json && write_json(options, net, epochs, steps, sums, identical) != 0 ? 1 : 0;
}

/* Reads, allocates and trains; agrees with the other ranks before each step that could fail. */
static int run(const Options* options) {
  Dataset images, tests = {0};
  Network net = {0};
  char error[5000] = "";
  int sizes[NETWORK_LAYERS + 1] = {0}, *order = NULL, result = 1;
  unsigned char* labels = NULL;
  Epoch* epochs = NULL;
  uint64_t* sums = NULL;

  int good = dataset_read(&images, options->data, "train", options->limit, rank, ranks, error,
                          sizeof error) == 0 &&
             dataset_read(&tests, options->data, "t10k", 0, rank, ranks, error, sizeof error) == 0;
  if (good && tests.pixels != images.pixels) {
    snprintf(error, sizeof error, "%s: images of %d pixels to train on, but of %d to test with",
             options->data, images.pixels, tests.pixels);
    good = 0;
  }
  if (good && images.count < options->batch) {
    snprintf(error, sizeof error, "%d images per rank do not fill a --batch of %d", images.count,
             options->batch);
    good = 0;
  }
  if (good) {
    sizes[0] = images.pixels;
    memcpy(sizes + 1, hidden, sizeof hidden);
    sizes[HIDDEN_LAYERS + 1] = DATASET_CLASSES;
    order = malloc((size_t)(images.count + tests.count) * sizeof *order);
    labels = malloc((size_t)options->batch);
    epochs = calloc((size_t)options->epochs, sizeof *epochs);
    sums = malloc((size_t)ranks * sizeof *sums);
    good = network_make(&net, sizes, HIDDEN_LAYERS + 1, options->batch, SEED) == 0 && order &&
           labels && epochs && sums;
    if (!good) snprintf(error, sizeof error, "no memory for the model");
  }
  int first_bad = good ? ranks : rank;
  MPI_Allreduce(MPI_IN_PLACE, &first_bad, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first_bad == ranks)
    result = train(options, &net, &images, &tests, order, labels, epochs, sums);
  else if (first_bad == rank)
    fprintf(stderr, "train: %s\n", error);

  free(sums);
  free(epochs);
  free(labels);
  free(order);
  network_free(&net);
  dataset_free(&tests);
  dataset_free(&images);
  return result;
}

/* Returns whether the command line is understood. */
static int parse(Options* options, int argc, char** argv) {
  const struct option table[] = {{"epochs", required_argument, NULL, 'e'},
                                 {"batch", required_argument, NULL, 'b'},
                                 {"limit", required_argument, NULL, 'l'},
                                 {"data", required_argument, NULL, 'd'},
                                 {"json", required_argument, NULL, 'j'},
                                 {"per-layer", no_argument, &options->per_layer, 1},
                                 {"average-model", no_argument, &options->average_model, 1},
                                 {NULL, 0, NULL, 0}};
  opterr = rank == 0;
  for (int code; (code = getopt_long(argc, argv, "", table, NULL)) != -1;) {
    if (code == 'e') options->epochs = atoi(optarg);
    if (code == 'b') options->batch = atoi(optarg);
    if (code == 'l') options->limit = atoi(optarg);
    if (code == 'd') options->data = optarg;
    if (code == 'j') options->json = optarg;
    if (code == '?') return 0;
  }
  return optind == argc && options->epochs > 0 && options->batch > 0 && options->limit >= 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Options options = {.epochs = 5, .batch = 64, .data = "/usr/share/datasets/fashion-mnist"};
  const int understood = parse(&options, argc, argv);
  if (!understood && rank == 0) fputs(usage, stderr);
  const int status = understood ? run(&options) : 2;
  MPI_Finalize();
  return status;
}
