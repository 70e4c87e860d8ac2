// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/core.h>

#include <regex>
#include <sstream>

#include "observe/statistics.h"
#include "tools/common/text.h"
#include "tools/info/info.h"

namespace slimpi::info {

using namespace tools;

namespace {

std::string or_unset(const std::string& value) {
  return value.empty() ? "unset" : value;
}

const char* scope_text(Scope scope) {
  switch (scope) {
    case Scope::agree:
      return "must be the same on all ranks";
    case Scope::contents:
      return "contents must be the same on all ranks";
    case Scope::process:
      return "ranks may differ. Not an info key";
    case Scope::job:
      return "must be the same on all ranks. Not an info key";
  }
  return "";
}

// Returns as a sentence a text that begins with a small letter and has no full stop at its end.
std::string sentence(std::string text) {
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = char(text[0] - 'a' + 'A');
  return text + ".";
}

std::string facts(const OptionRow& row) {
  return fmt::format("Accepted: {}. {}", row.accepted, sentence(scope_text(row.scope)));
}

std::string origin(const OptionRow& row, Source source) {
  std::string text = fmt::format("Default: {}", or_unset(row.standard));
  if (source != Source::built_in) text += fmt::format("; set by: {}", to_string(source));
  return text;
}

}  // namespace

std::string options_text(const Config& config, bool documented) {
  if (!documented) {
    Table table({"OPTION", "FROM", "VALUE"});
    for (std::size_t i = 0; i < option_rows().size(); ++i)
      table.add({option_rows()[i].variable, to_string(config.given[i].source),
                 or_unset(config.given[i].text)});
    return table.text();
  }
  std::string text = "# Options of slimpi, as a file for SLIMPI_CONFIG: see slimpi.conf(5).\n";
  for (std::size_t i = 0; i < option_rows().size(); ++i) {
    const OptionRow& row = option_rows()[i];
    const Config::Given& given = config.given[i];
    text += "\n" + wrapped("# ", row.meaning, "# ") + wrapped("# ", facts(row), "# ");
    text += wrapped("# ", origin(row, given.source) + ".", "# ");
    // A file cannot name itself.
    if (Option(i) == Option::config) {
      text += "# Set it in the environment or with slimpi-run; not in a file.\n";
      continue;
    }
    // An option that was not set is a comment.
    const bool set = given.source != Source::built_in && !given.text.empty();
    text += fmt::format("{}{} ={}{}\n", set ? "" : "# ", row.name, given.text.empty() ? "" : " ",
                        given.text);
  }
  return text;
}

std::string options_list() {
  std::string text;
  for (const OptionRow& row : option_rows())
    text += fmt::format("{}\t{}\n", row.name, row.accepted);
  return text;
}

namespace {

// Returns plain text as mdoc, with one sentence on a line and `quoted` words in a macro of their
// own. Lines have at most 100 columns, and none begins with a character that mandoc takes for
// markup.
std::string mdoc(std::string text) {
  static const std::regex quoted(" ?`([^`]*)`([.,;]?) ?"), end("\\. "), markup("(^|\n)(?=[.'])");
  text = std::regex_replace(text, quoted, "\n.Ql $1 $2\n");
  std::istringstream lines(std::regex_replace(text, end, ".\n"));
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".Ql "))
      result += wrapped("", line);
    else if (!line.empty())
      result += std::regex_replace(wrapped("", line), markup, "$1\\&");
  }
  return result;
}

}  // namespace

std::string options_mdoc() {
  std::string text;
  for (const OptionRow& row : option_rows()) {
    const std::string standard = row.standard;
    text += fmt::format(".It Ev {} Pq {}\n", row.variable, or_unset(standard));
    text += mdoc(row.meaning);
    text += mdoc(fmt::format("Accepted: {}.", row.accepted));
    // The manual page describes the scope of a communicator's options once, elsewhere.
    if (row.scope != Scope::agree) text += mdoc(sentence(scope_text(row.scope)));
  }
  return text;
}

std::string reasons_list() {
  std::string text;
  for (const BypassRow& row : kBypassRows) text += fmt::format("{}\t{}\n", row.name, row.meaning);
  return text;
}

std::string reasons_mdoc() {
  std::string text;
  for (const BypassRow& row : kBypassRows)
    text += fmt::format(".It Li {}\n", row.name) + mdoc(row.meaning);
  return text;
}

}  // namespace slimpi::info
