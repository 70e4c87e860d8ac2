/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded, liballocations.so stands in for the C library's allocation functions. It tells which
 * calls come from slimpi: from code of libslimpi.so, which has its own copy of operator new. A
 * program finds these functions with dlsym(RTLD_DEFAULT, ...). */
#ifndef SLIMPI_TESTS_HELPER_ALLOCATIONS_H
#define SLIMPI_TESTS_HELPER_ALLOCATIONS_H

/* How often slimpi has allocated memory. */
unsigned long test_allocations(void);

/* From now on (1), or no more (0), each of them writes its backtrace to stderr. */
void test_show_allocations(int on);

/* Of slimpi's allocations from now on, number `first` (1 is the next one) and the `more` after it
 * fail. 0: none does. */
void test_fail_allocations(unsigned long first, unsigned long more);

#endif
