/* SPDX-License-Identifier: BSD-3-Clause */
#include "train_options.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: train [options]\n"
    "Trains a multilayer perceptron on Fashion-MNIST, data-parallel over all MPI ranks.\n"
    "  --epochs N       passes over the training images (5)\n"
    "  --batch N        images per rank and step (64)\n"
    "  --hidden A,B,..  sizes of the hidden layers (256,128)\n"
    "  --rate X         learning rate, falling linearly to 0 (0.05)\n"
    "  --momentum X     (0.9)\n"
    "  --seed N         of the first model and of the order of images (1)\n"
    "  --per-layer      one MPI_Allreduce per layer instead of one for the whole gradient\n"
    "  --average-model  step on the rank's own gradient, then average the models\n"
    "  --data DIR       idx files, plain or gzipped (/usr/share/datasets/fashion-mnist)\n"
    "  --limit N        only the first N training images\n"
    "  --json FILE      write the results, from rank 0\n"
    "  --help\n";

static int whole(const char* text, long lowest, long highest, long* out) {
  char* end;
  *out = strtol(text, &end, 10);
  return end != text && *end == '\0' && *out >= lowest && *out <= highest;
}

static int real(const char* text, double lowest, double highest, float* out) {
  char* end;
  const double value = strtod(text, &end);
  *out = (float)value;
  return end != text && *end == '\0' && value >= lowest && value <= highest;
}

static int hidden_sizes(const char* text, Options* options) {
  options->hidden_layers = 0;
  for (const char* at = text;; ++at) {
    char* end;
    const long size = strtol(at, &end, 10);
    if (end == at || size < 1 || size > 16384 || options->hidden_layers == NETWORK_LAYERS - 1)
      return 0;
    options->hidden[options->hidden_layers++] = (int)size;
    if (*end == '\0') return 1;
    if (*end != ',') return 0;
    at = end;
  }
}

int options_parse(Options* options, int argc, char** argv, int speak) {
  static const struct option table[] = {{"epochs", required_argument, 0, 'e'},
                                        {"batch", required_argument, 0, 'b'},
                                        {"hidden", required_argument, 0, 'h'},
                                        {"rate", required_argument, 0, 'r'},
                                        {"momentum", required_argument, 0, 'm'},
                                        {"seed", required_argument, 0, 's'},
                                        {"per-layer", no_argument, 0, 'p'},
                                        {"average-model", no_argument, 0, 'a'},
                                        {"data", required_argument, 0, 'd'},
                                        {"limit", required_argument, 0, 'l'},
                                        {"json", required_argument, 0, 'j'},
                                        {"help", no_argument, 0, 'H'},
                                        {0, 0, 0, 0}};
  *options = (Options){.epochs = 5,
                       .batch = 64,
                       .hidden = {256, 128},
                       .hidden_layers = 2,
                       .rate = 0.05f,
                       .momentum = 0.9f,
                       .seed = 1,
                       .data = "/usr/share/datasets/fashion-mnist"};
  opterr = speak;
  for (int code, index = 0; (code = getopt_long(argc, argv, "", table, &index)) != -1;) {
    long number = 0;
    int good = 1;
    const char* accepted = "a whole number from 1 to 1000000";
    switch (code) {
      case 'e':
        good = whole(optarg, 1, 1000000, &number);
        options->epochs = (int)number;
        break;
      case 'b':
        good = whole(optarg, 1, 1000000, &number);
        options->batch = (int)number;
        break;
      case 'l':
        good = whole(optarg, 1, 1000000, &number);
        options->limit = (int)number;
        break;
      case 's':
        good = whole(optarg, 0, LONG_MAX, &number);
        options->seed = (uint64_t)number;
        accepted = "a whole number from 0";
        break;
      case 'h':
        good = hidden_sizes(optarg, options);
        accepted = "1 to 7 sizes from 1 to 16384, such as 256,128";
        break;
      case 'r':
        good = real(optarg, 0.0, 1000.0, &options->rate);
        accepted = "a number from 0 to 1000";
        break;
      case 'm':
        good = real(optarg, 0.0, 1.0, &options->momentum);
        accepted = "a number from 0 to 1";
        break;
      case 'p':
        options->per_layer = 1;
        break;
      case 'a':
        options->average_model = 1;
        break;
      case 'd':
        options->data = optarg;
        break;
      case 'j':
        options->json = optarg;
        break;
      case 'H':
        if (speak) fputs(usage, stdout);
        return 1;
      default:
        if (speak) fputs("train: --help lists the options\n", stderr);
        return 3;
    }
    if (!good) {
      if (speak)
        fprintf(stderr, "train: --%s takes %s, not '%s'\n", table[index].name, accepted, optarg);
      return 3;
    }
  }
  if (optind < argc) {
    if (speak) fprintf(stderr, "train: '%s' is not an option\n", argv[optind]);
    return 3;
  }
  return 0;
}
