/* SPDX-License-Identifier: BSD-3-Clause */
/* slimpi's optional C API. Programs do not need it. */
#ifndef SLIMPI_H
#define SLIMPI_H
#ifdef __cplusplus
extern "C" {
#endif

#define SLIMPI_VERSION_MAJOR 0
#define SLIMPI_VERSION_MINOR 1
#define SLIMPI_VERSION_PATCH 0

#ifdef __cplusplus
}
#endif
#endif
