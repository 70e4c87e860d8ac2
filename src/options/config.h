// SPDX-License-Identifier: BSD-3-Clause
// Every option's value, as plain data generated from options.def. Loading is a pure function of the
// given environment and of the file that it names.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "options/option_types.h"

namespace slimpi {

// Where an option belongs, and how ranks compare it; see options.def.
enum class Scope { agree, contents, process, job };
enum class Source { built_in, file, environment, info };  // a later one overrides an earlier one

const char* to_string(Source source);  // "default", "file", "environment", "info key"

// The names of the table, in its order, as an enumeration: Option::bits.
enum class Option {
#define SLIMPI_OPTION(name, type, parser, standard, scope, meaning) name,
#include "options/options.def"
#undef SLIMPI_OPTION
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

// All rows, in the table's order.
const std::vector<OptionRow>& option_rows();

struct Config {
#define SLIMPI_OPTION(name, type, parser, standard, scope, meaning) type name{};
#include "options/options.def"
#undef SLIMPI_OPTION

  // Each option's value as it was written, and its source; indexed by Option.
  struct Given {
    std::string text;
    Source source = Source::built_in;
  };
  std::vector<Given> given;

  Config();  // every option has its default

  // Sets the option called `name` (lower case). Returns "" or one line that names the option as its
  // source spells it, the value, and what is accepted; on an error nothing changes. An empty value
  // unsets an option that can be unset. A value from an earlier Source than the current one is
  // checked, then ignored.
  std::string set(std::string_view name, std::string_view value, Source source);

  // The option's value as text, the same for equal values: 65536 also where 64K was written.
  std::string value_text(Option option) const;

  // Whether the user set the option.
  bool is_set(Option option) const {
    return given[std::size_t(option)].source != Source::built_in;
  }
};

// Reads the environment and the file that SLIMPI_CONFIG names.
struct Loaded {
  Config config;
  std::string error;                  // "" or the one line that ends the job
  std::vector<std::string> warnings;  // unknown names, one line each
};
Loaded load_config(const Environment& environment);

// Whether there is an option called `name` (lower case).
bool is_option(std::string_view name);

// The option that `name`, with or without the prefix, probably means: the nearest by edit distance,
// else the first that begins with it; "" when there is none.
std::string nearest_option(std::string_view name);

// The word of `words` that is nearest to `given` by edit distance (insertions, deletions,
// replacements, swaps of adjacent characters), at most a third of its characters away, at least
// one. Else the first that begins with `given`, if that has three characters or more. "" if there
// is none.
std::string nearest_word(std::string_view given, std::span<const std::string> words);

// "; did you mean WORD?", or "" where no word is near, or it is one of them.
std::string did_you_mean(std::string_view given, std::span<const std::string> words);

// The option name (bits) of an info key (slimpi_bits); "" when the key is not one of slimpi's.
std::string info_key_option(std::string_view key);

}  // namespace slimpi
