// SPDX-License-Identifier: BSD-3-Clause
// The output of slimpi-bench: a table while it measures, JSON and a picture at the end.
#pragma once
#include <string>
#include <vector>

#include "tools/bench/measure.h"

namespace slimpi::bench {

// Lines that start with '#', then one line a row. A value that is not known is "-". Columns have
// fixed widths and one unit each.
std::string table_head(const Options& options, const World& world);
std::string table_line(const Options& options, const Row& row, const Row& plain);

std::string to_json(const Options& options, const World& world, const std::vector<Row>& rows);

// Makes gnuplot draw a picture into the file options.plot: time and bus bandwidth over size, with
// the limits that a node's link sets. On failure prints a line to standard error and returns false.
// Without gnuplot the script is kept, in the directory of the picture.
bool plot(const Options& options, const World& world, const std::vector<Row>& rows);

// Prints digests of sums that are the same on every machine: a row of docs/data/digests.csv for
// each sum that the ranks of the job can make. Collective over MPI_COMM_WORLD. Returns the exit
// status: 1 if ranks that must have the same bytes differ, or without sha256sum, otherwise 0.
int print_digests(const World& world);

// Returns why a file that the options name could not be written now; "" if all could be written.
std::string unwritable(const Options& options);

// Writes `text` to a file, or to standard output for "-". On failure prints a line, returns false.
bool write_file(const std::string& path, const std::string& text);

}  // namespace slimpi::bench
