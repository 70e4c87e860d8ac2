/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that is not linked to MPI: it loads argv[1] with RTLD_LOCAL when it already runs, as
 * Python does, and sums floats through a library (argv[2]) of its own that was linked to MPI. With
 * argv[2] "self" it only loads argv[1] and uses it no further. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  void* first = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (first == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  if (strcmp(argv[2], "self") == 0) return 0;
  void* second = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (second == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  int (*run)(void) = (int (*)(void))dlsym(second, "run");
  return run == NULL ? 1 : run();
}
