// SPDX-License-Identifier: BSD-3-Clause
// Includes CMocka from C++. A failing assertion leaves by longjmp, so destructors do not run: tests
// keep no resource in a local that a failure could leak into the next test.
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
extern "C" {
#include <cmocka.h>
}
