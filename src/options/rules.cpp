// SPDX-License-Identifier: BSD-3-Clause
#include "options/rules.h"

#include <fnmatch.h>

#include <sstream>

#include "base/files.h"
#include "options/option_types.h"

namespace slimpi {

namespace {

std::string parse_row(const std::vector<std::string>& words, Rule& rule) {
  const Size size{0, UINT64_MAX};
  const HalfBits bits;
  const bool off = words.size() > 3 && lower_case(words[3]) == "off";  // off has no bits
  if (words.size() != 5 && !(off && words.size() == 4))
    return "a row is: min_size max_size communicator algorithm bits; off needs no bits";
  if (words[0] != "*" && !size.parse(words[0], rule.min_size))
    return "min_size " + words[0] + " cannot be used; accepted: *, " + size.accepted();
  if (words[1] != "*" && !size.parse(words[1], rule.max_size))
    return "max_size " + words[1] + " cannot be used; accepted: *, " + size.accepted();
  if (rule.max_size < rule.min_size) return "max_size is below min_size: the row never holds";
  rule.communicator = words[2];
  if (!AlgorithmName{}.parse(words[3], rule.algorithm))
    return "algorithm " + words[3] + " cannot be used; accepted: " + AlgorithmName{}.accepted();
  double parsed = 0;
  if (off || words[4] == "*") return "";
  if (!bits.parse(words[4], parsed))
    return "bits " + words[4] + " cannot be used; accepted: *, " + bits.accepted();
  rule.bits = parsed;
  return "";
}

}  // namespace

std::string parse_rules(std::string_view text, const std::string& where, Rules& rules) {
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream row(std::string(content_of_line(line, number)));
    std::vector<std::string> words;
    for (std::string word; row >> word;) words.push_back(word);
    if (words.empty()) continue;
    Rule rule;
    if (const std::string error = parse_row(words, rule); !error.empty())
      return where + ":" + std::to_string(number) + ": " + error;
    rule.where = where + ":" + std::to_string(number) + ":";
    for (const std::string& word : words) rule.where += " " + word;
    rules.push_back(rule);
  }
  return "";
}

std::string read_rules(const std::string& path, const std::string& option, Rules& rules) {
  std::string text;
  if (const std::string why = read_text_file(path, text); !why.empty())
    return option + "=" + path + ": the file cannot be read: " + why +
           "; the option names a file with a row a line: min_size max_size communicator algorithm "
           "bits, such as: * 1M * off";
  return parse_rules(text, path, rules);
}

std::vector<std::string> unmatched(const Rules& rules) {
  std::vector<std::string> rows;
  for (const Rule& rule : rules)
    if (!rule.matched->load(std::memory_order_relaxed)) rows.push_back(rule.where);
  return rows;
}

bool is_for(const Rule& rule, const std::string& name) {
  return fnmatch(rule.communicator.c_str(), name.c_str(), 0) == 0;
}

std::string describe(const Rules& rules, const std::string& name) {
  std::string text;
  for (const Rule& rule : rules)
    if (is_for(rule, name))
      text += (text.empty() ? "" : "; ") +
              (rule.min_size == 0 ? "*" : std::to_string(rule.min_size)) + " " +
              (rule.max_size == UINT64_MAX ? "*" : std::to_string(rule.max_size)) + " " +
              rule.algorithm + (rule.bits ? " " + HalfBits{}.text(*rule.bits) : "");
  return text;
}

}  // namespace slimpi
