// SPDX-License-Identifier: BSD-3-Clause
#include "options/config.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "base/files.h"
#include "base/process.h"

namespace slimpi {

namespace {

// Returns `text` for one line of a message: without control characters, and of limited length.
std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  std::string result(text.substr(0, kLongest));
  for (char& c : result)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  return text.size() > kLongest ? result + "..." : result;
}

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

// Returns "; did you mean bytegrad?" if `value` is nearly one of the words of `accepted`, otherwise
// "".
std::string suggestion(std::string_view value, std::string_view accepted) {
  std::vector<std::string> words;
  while (!accepted.empty()) {
    const std::size_t end = std::min(accepted.find_first_of(",/"), accepted.size());
    const std::string_view word = trimmed(accepted.substr(0, end));
    if (word.size() > 2) words.emplace_back(word);
    accepted.remove_prefix(std::min(end + 1, accepted.size()));
  }
  return value.size() < 3 ? "" : did_you_mean(lower_case(value), words);
}

std::string unknown_name(std::string_view spelled_name, std::string_view option, Source source) {
  const std::string text = printable(spelled_name) + " is not an option of slimpi";
  const std::string near = nearest_option(option);
  if (near.empty()) return text + " (slimpi-info -c lists them)";
  return text + "; did you mean " + spelled(near, source) + "?";
}

// Reads lines `name = value` into the config. Returns "" or the error. Adds a warning to `unknown`
// for each name that is no option.
std::string read_file(const std::string& path, Config& config, std::vector<std::string>& unknown) {
  const std::string refused = "SLIMPI_CONFIG=" + printable(path) + ": the file cannot be read: ";
  std::string all;
  if (const std::string why = read_text_file(path_from_start(path), all); !why.empty())
    return refused + why;
  std::istringstream lines(all);
  std::string text;
  for (int number = 1; std::getline(lines, text); ++number) {
    const std::string where = printable(path) + ":" + std::to_string(number) + ": ";
    const std::string_view line = content_of_line(text, number);
    if (line.empty()) continue;
    const std::size_t equals = line.find('=');
    const std::string name = lower_case(line.substr(0, equals));
    if (equals == line.npos || name.empty())
      return where + "expected name = value, found " + printable(line);
    if (!find_option(name)) {
      unknown.push_back(where + unknown_name(name, name, Source::file));
      continue;
    }
    if (name == "config")
      return where + "config cannot be set in a file; set SLIMPI_CONFIG in the environment";
    const std::string error =
        config.set(name, trimmed(line.substr(equals + 1)), Source::file, where);
    if (!error.empty()) return where + error;
  }
  return "";
}

}  // namespace

const char* to_string(Source source) {
  constexpr const char* kNames[] = {"default", "file", "environment", "info key"};
  return kNames[int(source)];
}

namespace {
// Adds one row. A single list of all rows would need more stack than a call may use.
[[gnu::noinline]] void add_row(std::vector<OptionRow>& rows, const char* name, const char* standard,
                               Scope scope, const char* meaning, std::string accepted) {
  rows.push_back(
      {name, "SLIMPI_" + upper_case(name), standard, scope, meaning, std::move(accepted)});
}

std::vector<OptionRow>* make_rows() {
  auto* const rows = new std::vector<OptionRow>;
#define SLIMPI_OPTION(name, type, parser, standard, scope, meaning) \
  add_row(*rows, #name, standard, Scope::scope, meaning, (parser).accepted());
#include "options/options.def"
  return rows;
}
}  // namespace

const std::vector<OptionRow>& option_rows() {
  // The rows are never destroyed, because programs call MPI from their exit handlers.
  static const std::vector<OptionRow>& rows = *make_rows();
  return rows;
}

Config::Config() {
#define SLIMPI_OPTION(name, type, parser, standard, scope, meaning) \
  (void)(parser).parse(standard, this->name);                       \
  given.push_back({standard, Source::built_in, ""});
#include "options/options.def"
}

std::string Config::set(std::string_view option, std::string_view value, Source source,
                        const std::string& where) {
#define SLIMPI_OPTION(name, type, parser, standard, scope, meaning) \
  if (option == #name) {                                            \
    type parsed{};                                                  \
    if (!(parser).parse(value, parsed))                             \
      return spelled(option, source) + "=" + printable(value) +     \
             " cannot be used; accepted: " + (parser).accepted() +  \
             suggestion(value, (parser).accepted());                \
    Given& was = given[std::size_t(Option::name)];                  \
    if (was.source > source) return "";                             \
    this->name = std::move(parsed);                                 \
    was = {std::string(trimmed(value)), source, where};             \
    return "";                                                      \
  }
#include "options/options.def"
  return unknown_name(spelled(option, source), option, source);
}

std::string Config::value_text(Option option) const {
  switch (option) {
#define SLIMPI_OPTION(name, type, parser, standard, scope, meaning) \
  case Option::name:                                                \
    return (parser).text(this->name);
#include "options/options.def"
  }
  return "";
}

std::string Config::written(Option option) const {
  const Given& how = given[std::size_t(option)];
  return how.where + spelled(option_rows()[std::size_t(option)].name, how.source);
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] =
          std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_word(std::string_view given, std::span<const std::string> words) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, given.size() / 3) + 1;
  for (const std::string& word : words) {
    const std::size_t distance = edit_distance(given, word);
    if (distance < least) {
      least = distance;
      best = word;
    }
  }
  if (!best.empty() || given.size() < 3) return best;
  for (const std::string& word : words)
    if (word.starts_with(given)) return word;
  return "";
}

std::string did_you_mean(std::string_view given, std::span<const std::string> words) {
  const std::string word = nearest_word(given, words);
  return word.empty() || word == given ? "" : "; did you mean " + word + "?";
}

std::optional<Option> find_option(std::string_view name) {
  const auto& rows = option_rows();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (name == rows[i].name) return Option(i);
  return std::nullopt;
}

std::string nearest_option(std::string_view name) {
  std::string given = lower_case(name);
  if (given.starts_with("slimpi_")) given.erase(0, 7);
  std::vector<std::string> names;
  for (const OptionRow& row : option_rows()) names.emplace_back(row.name);
  return nearest_word(given, names);
}

std::string info_key_option(std::string_view key) {
  return key.starts_with("slimpi_") ? std::string(key.substr(7)) : "";
}

Loaded load_config(const Environment& environment) {
  Loaded loaded;
  for (const auto& [variable, value] : environment) {
    const std::string name = lower_case(std::string_view(variable).substr(7));
    if (!find_option(name) || variable != spelled(name, Source::environment)) {
      loaded.warnings.push_back(unknown_name(variable, name, Source::environment));
      continue;
    }
    const std::string error = loaded.config.set(name, value, Source::environment);
    if (!error.empty() && loaded.error.empty()) loaded.error = error;
  }
  if (loaded.error.empty() && loaded.config.config)
    loaded.error = read_file(*loaded.config.config, loaded.config, loaded.warnings);
  return loaded;
}

}  // namespace slimpi
