// SPDX-License-Identifier: BSD-3-Clause
#include "policy/rules.h"

#include <fnmatch.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/option_types.h"

namespace slimpi::policy {

namespace {

std::string parse_row(const std::vector<std::string>& words, Rule& rule) {
  const Size size{0, UINT64_MAX};
  const Integer bits{1, 8};
  if (words.size() != 5) return "a row is: min_size max_size communicator algorithm bits";
  if (words[0] != "*" && !size.parse(words[0], rule.min_size))
    return "min_size " + words[0] + " cannot be used; accepted: *, " + size.accepted();
  if (words[1] != "*" && !size.parse(words[1], rule.max_size))
    return "max_size " + words[1] + " cannot be used; accepted: *, " + size.accepted();
  if (rule.max_size < rule.min_size) return "max_size is below min_size: the row never holds";
  rule.communicator = words[2];
  if (!AlgorithmName{}.parse(words[3], rule.algorithm))
    return "algorithm " + words[3] + " cannot be used; accepted: " + AlgorithmName{}.accepted();
  int parsed = 0;
  if (words[4] != "*" && !bits.parse(words[4], parsed))
    return "bits " + words[4] + " cannot be used; accepted: *, " + bits.accepted();
  if (words[4] != "*") rule.bits = parsed;
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
    rules.push_back(rule);
  }
  return "";
}

std::string read_rules(const std::string& path, const char* option, Rules& rules) {
  const std::string refused = std::string(option) + "=" + path + ": the file cannot be read: ";
  errno = 0;
  std::ifstream file(path);
  if (!file) return refused + std::strerror(errno);
  std::ostringstream text;
  for (std::string line; std::getline(file, line);) text << line << '\n';
  if (file.bad()) return refused + std::strerror(errno);
  return parse_rules(text.str(), path, rules);
}

bool is_for(const Rule& rule, const std::string& name) {
  return fnmatch(rule.communicator.c_str(), name.c_str(), 0) == 0;
}

std::string describe(const Rules& rules, const std::string& name) {
  std::string text;
  for (const Rule& rule : rules)
    if (is_for(rule, name))
      text += std::to_string(rule.min_size) + "-" + std::to_string(rule.max_size) + " " +
              rule.algorithm + (rule.bits ? " " + std::to_string(*rule.bits) : "") + "; ";
  return text;
}

}  // namespace slimpi::policy
