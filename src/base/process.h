// SPDX-License-Identifier: BSD-3-Clause
// What a report says about the process that it comes from.
#pragma once
#include <string>

namespace slimpi {

// The words that the process was started with, as a shell reads them back; cut after 2000
// characters.
std::string process_command();

// Seconds since this library was loaded: for a preloaded library, since the program began.
double seconds_since_load();

// `path`, where it is relative: in the directory that the process was in when this library was
// loaded. The program may have changed directories since. Unchanged where that directory is
// unknown.
std::string path_from_start(const std::string& path);

// "2026-11-22T10:00:00Z"
std::string date_now();

// `word` as a shell reads it back.
std::string shell_word(const std::string& word);

}  // namespace slimpi
