/* SPDX-License-Identifier: BSD-3-Clause */
/* A preloaded liballocations.so replaces the C library's allocation functions and counts the calls
 * that come from slimpi, that is from code of libslimpi.so, which has its own copy of operator new.
 * A test finds the functions below with dlsym(RTLD_DEFAULT, ...). */
#ifndef SLIMPI_TESTS_HELPER_ALLOCATIONS_H
#define SLIMPI_TESTS_HELPER_ALLOCATIONS_H

/* Returns how often slimpi has allocated memory so far. */
unsigned long test_allocations(void);

/* Makes allocations of slimpi fail: allocation number `first` from now on (1 is the next one) and
 * the `more` allocations after it. If `first` is 0, none fails. */
void test_fail_allocations(unsigned long first, unsigned long more);

#endif
