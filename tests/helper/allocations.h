/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded, liballocations.so stands in for the C library's allocation functions. It tells which
 * calls come from slimpi: from code of libslimpi.so, which has its own copy of operator new. A
 * program finds these functions with dlsym(RTLD_DEFAULT, ...). */
#ifndef SLIMPI_TESTS_HELPER_ALLOCATIONS_H
#define SLIMPI_TESTS_HELPER_ALLOCATIONS_H

/* The number of slimpi's allocations so far. */
unsigned long test_allocations(void);

/* Makes allocations of slimpi fail: number `first` from now on (1 is the next allocation) and the
 * `more` allocations after it. With `first` 0 no allocation fails. */
void test_fail_allocations(unsigned long first, unsigned long more);

#endif
