/* SPDX-License-Identifier: BSD-3-Clause */
/* A device for tests without a GPU. The program cannot touch its memory: any access except by the
 * device ends the program. Its streams do queued work late, one transfer for each query, so that
 * code which forgets to wait finds old data. A program has the device if it links
 * libslimpi_protected.so or loads it with RTLD_GLOBAL. It takes memory with the functions below,
 * which do their work immediately. */
#ifndef SLIMPI_TESTS_HELPER_PROTECTED_DEVICE_H
#define SLIMPI_TESTS_HELPER_PROTECTED_DEVICE_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#define SLIMPI_PROTECTED __attribute__((visibility("default")))

/* Returns device memory that is aligned to 256 bytes and filled with a pattern; null if the limit
 * would be exceeded. */
SLIMPI_PROTECTED void* slimpi_protected_allocate(size_t bytes);
SLIMPI_PROTECTED void slimpi_protected_free(void* memory);

/* Copy to and from device memory. */
SLIMPI_PROTECTED void slimpi_protected_write(void* to, const void* from, size_t bytes);
SLIMPI_PROTECTED void slimpi_protected_read(void* to, const void* from, size_t bytes);

/* The first function returns the bytes of device and staging memory in use. The second sets a limit
 * for them; allocations beyond the limit fail. */
SLIMPI_PROTECTED size_t slimpi_protected_used(void);
SLIMPI_PROTECTED void slimpi_protected_limit(size_t bytes);

/* Returns how often device or staging memory was allocated since the program began. */
SLIMPI_PROTECTED unsigned long slimpi_protected_allocations(void);

/* Returns how many bytes streams have copied between device and host memory since the program
 * began. */
SLIMPI_PROTECTED unsigned long long slimpi_protected_host_bytes(void);

/* Loses the device after `transfers` more transfers were queued: queued work is never done, and
 * every function of the device fails with the text "the protected device is lost". Memory can still
 * be read and freed. The second function brings the device back. */
SLIMPI_PROTECTED void slimpi_protected_lose(unsigned long transfers);
SLIMPI_PROTECTED void slimpi_protected_repair(void);

/* Puts the device on the bus with this PCI id, where hwloc finds it. */
SLIMPI_PROTECTED void slimpi_protected_put_on_bus(const char* id);

/* Returns how many transfers were queued on streams since the program began. */
SLIMPI_PROTECTED unsigned long slimpi_protected_work(void);

#ifdef __cplusplus
}
#endif
#endif
