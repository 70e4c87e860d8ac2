/* SPDX-License-Identifier: BSD-3-Clause */
/* A device for tests without a GPU. Its memory cannot be touched by the program: every access from
 * outside dies. Its streams run what was queued on them late, one transfer of work at each query,
 * so that code which forgets to wait finds old data. Linking libslimpi_protected.so, or loading it
 * with RTLD_GLOBAL, is all that a program does to have the device; it takes memory with these
 * functions, which do their work at once. */
#ifndef SLIMPI_TESTS_HELPER_PROTECTED_DEVICE_H
#define SLIMPI_TESTS_HELPER_PROTECTED_DEVICE_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#define SLIMPI_PROTECTED __attribute__((visibility("default")))

/* Device memory aligned to 256 bytes, filled with a pattern; null when the limit is reached. */
SLIMPI_PROTECTED void* slimpi_protected_allocate(size_t bytes);
SLIMPI_PROTECTED void slimpi_protected_free(void* memory);

/* Copies to and from device memory. */
SLIMPI_PROTECTED void slimpi_protected_write(void* to, const void* from, size_t bytes);
SLIMPI_PROTECTED void slimpi_protected_read(void* to, const void* from, size_t bytes);

/* Device and staging memory in use, and from now on at most this much of it: allocations beyond
 * fail. */
SLIMPI_PROTECTED size_t slimpi_protected_used(void);
SLIMPI_PROTECTED void slimpi_protected_limit(size_t bytes);

/* How often device or staging memory was allocated since the program began. */
SLIMPI_PROTECTED unsigned long slimpi_protected_allocations(void);

/* Bytes that streams have copied between device and host memory since the program began. */
SLIMPI_PROTECTED unsigned long long slimpi_protected_host_bytes(void);

/* Loses the device when `transfers` more transfers of work have been queued: nothing that is queued
 * happens any more, and every function of it fails with the text "the protected device is lost".
 * Memory can still be read and freed. Then has it back. */
SLIMPI_PROTECTED void slimpi_protected_lose(unsigned long transfers);
SLIMPI_PROTECTED void slimpi_protected_repair(void);

/* Puts the device on the bus with this PCI id, where hwloc finds it. */
SLIMPI_PROTECTED void slimpi_protected_put_on_bus(const char* id);

/* How many transfers of work have been queued on streams since the program began. */
SLIMPI_PROTECTED unsigned long slimpi_protected_work(void);

#ifdef __cplusplus
}
#endif
#endif
