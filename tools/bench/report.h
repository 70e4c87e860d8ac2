// SPDX-License-Identifier: BSD-3-Clause
// What slimpi-bench says: a table while it measures, JSON when it is done.
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

// Why a file that the options name could not be written now; "" if all could.
std::string unwritable(const Options& options);

// Writes `text` to a file, or to standard output for "-". False, and one line, if that fails.
bool write_file(const std::string& path, const std::string& text);

}  // namespace slimpi::bench
