// SPDX-License-Identifier: BSD-3-Clause
#include "base/config.h"

#include <algorithm>
#include <fstream>
#include <numeric>

namespace slimpi {

namespace {

std::string upper_case(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  return result;
}

std::string spelled(std::string_view name, Source source) {
  if (source == Source::info) return "slimpi_" + std::string(name);
  if (source == Source::file) return std::string(name);
  return "SLIMPI_" + upper_case(name);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string unknown_name(std::string_view spelled_name, std::string_view option, bool upper) {
  std::string text = std::string(spelled_name) + " is not an option of slimpi";
  const std::string near = nearest_option(option);
  if (near.empty()) return text + " (slimpi-info -c lists them)";
  return text + "; did you mean " + (upper ? "SLIMPI_" + upper_case(near) : near) + "?";
}

// Reads `name = value` lines into the config. Returns "" or the error.
std::string read_file(const std::string& path, Config& config, std::vector<std::string>& unknown) {
  std::ifstream file(path);
  if (!file) return "SLIMPI_CONFIG=" + path + ": the file can not be read";
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string where = path + ":" + std::to_string(number) + ": ";
    line.resize(std::min(line.size(), line.find('#')));
    const std::size_t equals = line.find('=');
    const std::string name = lower_case(std::string_view(line).substr(0, equals));
    if (name.empty() && equals == std::string::npos) continue;
    if (equals == std::string::npos || name.empty()) return where + "expected name = value";
    const auto& rows = option_rows();
    if (std::none_of(rows.begin(), rows.end(),
                     [&](const OptionRow& row) { return name == row.name; })) {
      unknown.push_back(where + unknown_name(name, name, false));
      continue;
    }
    if (name == "config")
      return where + "config can not be set in a file; set SLIMPI_CONFIG in the environment";
    const std::size_t first = line.find_first_not_of(" \t", equals + 1);
    const std::string value = first == std::string::npos
                                  ? ""
                                  : line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
    if (const std::string error = config.set(name, value, Source::file); !error.empty())
      return where + error;
  }
  return "";
}

}  // namespace

const char* to_string(Source source) {
  switch (source) {
    case Source::built_in:
      return "default";
    case Source::file:
      return "file";
    case Source::environment:
      return "environment";
    case Source::info:
      return "info key";
  }
  return "";
}

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows = {
#define SLIMPI_OPTION(name, type, parser, standard, scope, meaning) \
  {#name, "SLIMPI_" + upper_case(#name), standard, Scope::scope, meaning, (parser).accepted()},
#include "base/options.def"
#undef SLIMPI_OPTION
  };
  return rows;
}

Config::Config() {
#define SLIMPI_OPTION(name, type, parser, standard, scope, meaning) \
  (void)(parser).parse(standard, this->name);                       \
  given.push_back({standard, Source::built_in});
#include "base/options.def"
#undef SLIMPI_OPTION
}

std::string Config::set(std::string_view option, std::string_view value, Source source) {
  const char* found = nullptr;
  std::string accepted;
#define SLIMPI_OPTION(name, type, parser, standard, scope, meaning)     \
  if (option == #name) {                                                \
    if (given[std::size_t(Option::name)].source > source) return "";    \
    type parsed{};                                                      \
    if (value.empty() && std::string_view(standard).empty()) return ""; \
    if ((parser).parse(value, parsed)) {                                \
      this->name = parsed;                                              \
      given[std::size_t(Option::name)] = {std::string(value), source};  \
      return "";                                                        \
    }                                                                   \
    found = #name;                                                      \
    accepted = (parser).accepted();                                     \
  }
#include "base/options.def"
#undef SLIMPI_OPTION
  if (found == nullptr)
    return unknown_name(spelled(option, source), option, source == Source::environment);
  return spelled(option, source) + "=" + std::string(value) +
         " can not be used; accepted: " + accepted;
}

std::string nearest_option(std::string_view name) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const OptionRow& row : option_rows()) {
    const std::size_t distance = edit_distance(lower_case(name), row.name);
    if (distance < least) {
      least = distance;
      best = row.name;
    }
  }
  return best;
}

std::string info_key_option(std::string_view key) {
  return key.starts_with("slimpi_") ? std::string(key.substr(7)) : "";
}

Loaded load_config(const Environment& environment) {
  Loaded loaded;
  std::vector<std::string> unknown;
  for (const auto& [variable, value] : environment) {
    const std::string name = lower_case(std::string_view(variable).substr(7));
    const auto& rows = option_rows();
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const OptionRow& r) { return r.variable == variable; });
    if (row == rows.end()) {
      unknown.push_back(unknown_name(variable, name, true));
      continue;
    }
    const std::string error = loaded.config.set(name, value, Source::environment);
    if (!error.empty() && loaded.error.empty()) loaded.error = error;
  }
  if (loaded.error.empty() && loaded.config.config)
    loaded.error = read_file(*loaded.config.config, loaded.config, unknown);
  if (loaded.error.empty() && loaded.config.strict && !unknown.empty())
    loaded.error = unknown.front() + " (SLIMPI_STRICT=1)";
  else
    loaded.warnings = std::move(unknown);
  return loaded;
}

}  // namespace slimpi
