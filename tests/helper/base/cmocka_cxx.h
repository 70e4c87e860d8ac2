// SPDX-License-Identifier: BSD-3-Clause
// Includes CMocka from C++. A failing assertion leaves the test by longjmp, so destructors do not
// run. Tests therefore hold no resource in a local variable that a failure could leak into the next
// test.
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
extern "C" {
#include <cmocka.h>
}
