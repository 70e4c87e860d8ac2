// SPDX-License-Identifier: BSD-3-Clause
// Error and help texts of the commands that parse their command line with CLI11.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "options/config.h"

namespace slimpi::tools {

// Returns a message that names the first word of the command line that begins like an option and is
// none; "" if there is no such word. The message of CLI11 would list all of them in reverse order,
// with their values.
inline std::string unknown_option(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  for (int i = 1; i < argc && std::string(argv[i]) != "--"; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
    if (!word.starts_with("--") || app.get_option_no_throw(word) != nullptr) continue;
    return word + " is not an option" + did_you_mean(word, known);
  }
  return "";
}

// Returns the text of an error of CLI11 so that it can end a line that the caller begins.
inline std::string message(const CLI::ParseError& error) {
  std::string text = error.what();
  if (text[0] >= 'A' && text[0] <= 'Z') text[0] = char(text[0] - 'A' + 'a');
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

// Returns the text of --help with the usage first, as in the other tools, and without empty lines
// in a row.
inline std::string help(const CLI::App& app) {
  std::string text = app.help();
  for (std::size_t at = 0; (at = text.find("\n\n\n")) != text.npos;) text.erase(at, 1);
  while (text.ends_with("\n\n")) text.pop_back();
  const std::size_t usage = text.find("Usage: "), end = text.find('\n', usage);
  return text.substr(usage, end - usage) + "\n\n" + text.substr(0, usage) + text.substr(end + 1);
}

}  // namespace slimpi::tools
