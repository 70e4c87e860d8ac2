// SPDX-License-Identifier: BSD-3-Clause
// The output of slimpi-bench: a table that grows while it measures, and JSON and a picture at the
// end.
#pragma once
#include <string>
#include <vector>

#include "tools/bench/measure.h"

namespace slimpi::bench {

// The table: a head whose lines start with '#', then a line for each row. "-" stands for a value
// that is not known. Columns have fixed widths, and each has one unit.
std::string table_head(const Options& options, const World& world);
std::string table_line(const Options& options, const Row& row, const Row& plain);

std::string to_json(const Options& options, const World& world, const std::vector<Row>& rows);

// Lets gnuplot draw a picture into the file options.plot. It shows time and bus bandwidth over
// size, with the limits that a node's link sets. On failure prints a line to standard error and
// returns false; if gnuplot is missing, its script is kept in the directory of the picture.
bool plot(const Options& options, const World& world, const std::vector<Row>& rows);

// Prints a row of docs/data/digests.csv for each sum that the ranks of the job can make: a digest
// of the results, which are the same on every machine. Collective over MPI_COMM_WORLD. Returns the
// exit status: 1 if ranks that must have the same bytes differ, or if there is no sha256sum;
// otherwise 0.
int print_digests(const World& world);

// Returns which of the output files that the options name cannot be written, and why; "" if all can
// be. Called before anything is measured.
std::string unwritable(const Options& options);

// Writes `text` to a file, or to standard output if the path is "-". On failure prints a line and
// returns false.
bool write_file(const std::string& path, const std::string& text);

}  // namespace slimpi::bench
