// SPDX-License-Identifier: BSD-3-Clause
// The values of all options as plain data, generated from options.def. They depend only on the
// given environment, and on the file that SLIMPI_CONFIG names in it.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "options/option_types.h"

namespace slimpi {

// Whether an option belongs to a communicator, to a process or to the job, and how ranks compare
// it; see options.def.
enum class Scope { agree, contents, process, job };
enum class Source { built_in, file, environment, info };  // a later source overrides an earlier one

const char* to_string(Source source);  // "default", "file", "environment", "info key"

// The names of the options, in the order of the table, as an enumeration: Option::bits.
enum class Option {
#define SLIMPI_OPTION(name, type, parser, standard, scope, meaning) name,
#include "options/options.def"
};

// One row of the table, for programs that list options.
struct OptionRow {
  const char* name;      // "bits"
  std::string variable;  // "SLIMPI_BITS"
  const char* standard;  // the default as text; "" = unset
  Scope scope;
  const char* meaning;
  std::string accepted;  // "1 to 16"
};

// Returns all rows, in the table's order.
const std::vector<OptionRow>& option_rows();

struct Config {
#define SLIMPI_OPTION(name, type, parser, standard, scope, meaning) type name{};
#include "options/options.def"

  // How an option was set: the text of its value, the source, and for a file where it is there:
  // "FILE:LINE: ". `given` has one for each Option.
  struct Given {
    std::string text;
    Source source = Source::built_in;
    std::string where;
  };
  std::vector<Given> given;

  Config();  // every option has its default

  // Sets the option called `name` (lower case). Returns "", or one line with the error: the option
  // as its source spells it, the value, and what is accepted. After an error nothing is changed. An
  // empty value unsets an option that can be unset. If the present value is from a later Source,
  // the new one is checked but not set. `where` is that of Given.
  std::string set(std::string_view name, std::string_view value, Source source,
                  const std::string& where = "");

  // Returns the option's value as text. Equal values have equal texts, such as 65536 even if 64K
  // was written.
  std::string value_text(Option option) const;

  // Returns the option's name for an error: as its source spells it (SLIMPI_BITS, slimpi_bits), in
  // a file with the line ("FILE:LINE: bits").
  std::string written(Option option) const;

  bool is_set(Option option) const {
    return given[std::size_t(option)].source != Source::built_in;
  }
};

// The result of load_config(), which reads the environment and the file that SLIMPI_CONFIG names.
struct Loaded {
  Config config;
  std::string error;                  // "", or the one line that ends the job
  std::vector<std::string> warnings;  // unknown names, one line each
};
Loaded load_config(const Environment& environment);

// Returns the option called `name` (lower case), or nothing.
std::optional<Option> find_option(std::string_view name);

// Returns the option that `name`, with or without the prefix, probably means: the nearest one by
// edit distance, or else the first that begins with `name`, or "".
std::string nearest_option(std::string_view name);

// Returns the word of `words` that is nearest to `given` by edit distance (insertions, deletions,
// replacements, swaps of adjacent characters). The distance may be at most a third of the length of
// `given`, but is always allowed to be 1. If no word is so near and `given` has three characters or
// more, returns the first word that begins with it; otherwise "".
std::string nearest_word(std::string_view given, std::span<const std::string> words);

// Returns "; did you mean WORD?", or "" if no word is near or `given` is one of the words.
std::string did_you_mean(std::string_view given, std::span<const std::string> words);

// Returns the option name (bits) of an info key (slimpi_bits), or "" if the key is not slimpi's.
std::string info_key_option(std::string_view key);

}  // namespace slimpi
