// SPDX-License-Identifier: BSD-3-Clause
// A file of options or rules, read whole.
#pragma once
#include <string>

namespace slimpi {

// Reads the file `path`. Returns "" or why it cannot be read. Only a regular file of at most 1 MiB
// is read: a pipe or a device could keep a rank waiting for ever, or never end.
std::string read_text_file(const std::string& path, std::string& text);

}  // namespace slimpi
