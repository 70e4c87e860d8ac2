/* SPDX-License-Identifier: BSD-3-Clause */
/* A device for tests without a GPU. Its memory can not be touched by the program: every access from
 * outside dies. Its streams run what was queued on them late, one piece of work at each poll, so
 * that code which forgets to wait finds old data. Linking libslimpi_guarded.so, or loading it, is
 * all that a program does to have the device; it takes memory with these functions, which do their
 * work at once. */
#ifndef SLIMPI_TESTS_HELPER_GUARDED_DEVICE_H
#define SLIMPI_TESTS_HELPER_GUARDED_DEVICE_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#define SLIMPI_GUARDED __attribute__((visibility("default")))

/* Device memory aligned to 256 bytes, filled with a pattern; null when the limit is reached. */
SLIMPI_GUARDED void* slimpi_guarded_allocate(size_t bytes);
SLIMPI_GUARDED void slimpi_guarded_free(void* memory);

/* Copies to and from device memory. */
SLIMPI_GUARDED void slimpi_guarded_write(void* to, const void* from, size_t bytes);
SLIMPI_GUARDED void slimpi_guarded_read(void* to, const void* from, size_t bytes);

/* Device and staging memory in use, and from now on at most this much of it: allocations beyond
 * fail. */
SLIMPI_GUARDED size_t slimpi_guarded_used(void);
SLIMPI_GUARDED void slimpi_guarded_limit(size_t bytes);

/* How often device or staging memory was allocated since the program began. */
SLIMPI_GUARDED unsigned long slimpi_guarded_allocations(void);

/* Bytes that streams have copied between device and host memory since the program began. */
SLIMPI_GUARDED unsigned long long slimpi_guarded_host_bytes(void);

/* Loses the device when `pieces` more pieces of work have been queued: nothing that is queued
 * happens any more, and every function of it fails with the text "the guarded device is lost".
 * Memory can still be read and freed. Then has it back. */
SLIMPI_GUARDED void slimpi_guarded_lose(unsigned long pieces);
SLIMPI_GUARDED void slimpi_guarded_repair(void);

/* From now on other processes can not open memory of this one. */
SLIMPI_GUARDED void slimpi_guarded_keep_to_itself(void);

/* Where hwloc finds the device: a PCI bus id. */
SLIMPI_GUARDED void slimpi_guarded_put_on_bus(const char* id);

/* How many pieces of work have been queued on streams since the program began. */
SLIMPI_GUARDED unsigned long slimpi_guarded_work(void);

#ifdef __cplusplus
}
#endif
#endif
