// SPDX-License-Identifier: BSD-3-Clause
#include "base/option_types.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace slimpi {

namespace {
constexpr const char* kAlgorithms[] = {"bytegrad",
                                       "qsgd",
                                       "fp16",
                                       "bf16",
                                       "powersgd",
                                       "batched_powersgd",
                                       "decentralized",
                                       "low_precision_decentralized",
                                       "allreduce",
                                       "auto",
                                       "off"};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}
}  // namespace

std::string lower_case(std::string_view text) {
  std::string result(trimmed(text));
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool parse_integer(std::string_view text, std::uint64_t& value) {
  text = trimmed(text);
  std::uint64_t parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return false;
  value = parsed;
  return true;
}

bool Integer::parse(std::string_view text, std::int64_t& value) const {
  std::uint64_t parsed = 0;
  if (!parse_integer(text, parsed) || parsed > std::uint64_t(high) || std::int64_t(parsed) < low)
    return false;
  value = std::int64_t(parsed);
  return true;
}

bool Integer::parse(std::string_view text, std::uint64_t& value) const {
  std::int64_t parsed = 0;
  if (!parse(text, parsed)) return false;
  value = std::uint64_t(parsed);
  return true;
}

bool Integer::parse(std::string_view text, int& value) const {
  std::int64_t parsed = 0;
  if (!parse(text, parsed)) return false;
  value = static_cast<int>(parsed);
  return true;
}

std::string Integer::accepted() const {
  if (high == std::numeric_limits<std::int64_t>::max()) return std::to_string(low) + " or more";
  return std::to_string(low) + " to " + std::to_string(high);
}

bool Size::parse(std::string_view text, std::uint64_t& value) const {
  std::string digits = lower_case(text);
  if (digits.size() > 2 && digits.ends_with("ib"))
    digits.resize(digits.size() - 2);
  else if (digits.size() > 1 && digits.ends_with("b"))
    digits.resize(digits.size() - 1);
  int shift = 0;
  if (!digits.empty()) {
    const std::size_t unit = std::string_view("kmg").find(digits.back());
    if (unit != std::string_view::npos) {
      shift = 10 * (int(unit) + 1);
      digits.pop_back();
    }
  }
  std::uint64_t number = 0;
  if (!parse_integer(digits, number) ||
      number > (std::numeric_limits<std::uint64_t>::max() >> shift))
    return false;
  number <<= shift;
  if (!(zero && number == 0) && (number < low || number > high)) return false;
  value = number;
  return true;
}

std::string Size::accepted() const {
  const auto text = [](std::uint64_t n) {
    for (const auto& [shift, unit] : {std::pair{30, "G"}, {20, "M"}, {10, "K"}})
      if (n != 0 && n % (1ull << shift) == 0) return std::to_string(n >> shift) + unit;
    return std::to_string(n);
  };
  std::string range = high == std::numeric_limits<std::uint64_t>::max()
                          ? text(low) + " or more"
                          : text(low) + " to " + text(high);
  return (zero && low > 0 ? "0, or " : "") + range + " (K, M, G allowed)";
}

bool Boolean::parse(std::string_view text, bool& value) const {
  const std::string word = lower_case(text);
  for (const char* yes : {"1", "y", "yes", "true", "on"})
    if (word == yes) return value = true, true;
  for (const char* no : {"0", "n", "no", "false", "off"})
    if (word == no) return value = false, true;
  return false;
}

bool Fraction::parse(std::string_view text, double& value) const {
  text = trimmed(text);
  double parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return false;
  if (!(parsed > 0 && parsed < 1)) return false;
  value = parsed;
  return true;
}

bool Text::parse(std::string_view text, std::string& value) const {
  if (trimmed(text).empty()) return false;
  value = trimmed(text);
  return true;
}

bool AlgorithmName::parse(std::string_view text, std::string& value) const {
  const std::string_view given = trimmed(text);
  if (given.starts_with("hook:")) {
    if (!given.substr(5).starts_with("/")) return false;
    value = given;
    return true;
  }
  const std::string word = lower_case(given);
  if (std::find(std::begin(kAlgorithms), std::end(kAlgorithms), word) == std::end(kAlgorithms))
    return false;
  value = word;
  return true;
}

std::string AlgorithmName::accepted() const {
  std::string list;
  for (const char* name : kAlgorithms) list += std::string(name) + ", ";
  return list + "hook:/ABSOLUTE/PATH.so";
}

bool Shapes::parse(std::string_view text, std::vector<Shape>& value) const {
  std::vector<Shape> shapes;
  while (!trimmed(text).empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view row = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const std::size_t equals = row.find('='), times = row.find_first_of("xX");
    if (equals == std::string_view::npos || times == std::string_view::npos || times < equals)
      return false;
    Shape shape{};
    if (!parse_integer(row.substr(0, equals), shape.count)) return false;
    if (!parse_integer(row.substr(equals + 1, times - equals - 1), shape.rows)) return false;
    if (!parse_integer(row.substr(times + 1), shape.columns)) return false;
    std::uint64_t product = 0;
    if (shape.rows == 0 || __builtin_mul_overflow(shape.rows, shape.columns, &product) ||
        product != shape.count)
      return false;
    shapes.push_back(shape);
  }
  if (shapes.empty()) return false;
  value = std::move(shapes);
  return true;
}

}  // namespace slimpi
