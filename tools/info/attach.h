// SPDX-License-Identifier: BSD-3-Clause
// slimpi-info --attach: reads the records in which a running process publishes its calls.
#pragma once
#include <string>
#include <vector>

#include "observe/activity.h"

namespace slimpi::info {

struct Attached {
  std::int32_t pid = 0, rank = -1, size = 0;  // rank and size are those of MPI_COMM_WORLD
  bool started = false;                       // the process has called a function of slimpi
  std::int64_t now = 0;                       // nanoseconds of CLOCK_MONOTONIC
  std::vector<Activity> calls;
};

// Fills `attached` with the records of process `pid`. Returns "", or a line that says why the
// process cannot be read.
std::string attach(const std::string& pid, Attached& attached);

// Converts nanoseconds to seconds. Returns 0 for a negative time, which results if the clock was
// read before the record was.
double seconds(std::int64_t nanoseconds);

// Reads the records that are in use from the file with the descriptor `file`. Returns false if the
// file is not one of slimpi's.
bool read_activity(int file, Attached& attached);

std::string attached_text(const Attached& attached);
std::string to_json(const Attached& attached);

}  // namespace slimpi::info
