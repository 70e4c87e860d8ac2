// SPDX-License-Identifier: BSD-3-Clause
#include "options/option_types.h"

#include <charconv>
#include <limits>

namespace slimpi {

// In these functions white space and case are those of the C locale, whatever locale the program
// has set.
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
}

std::string_view content_of_line(std::string_view line, int number) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (number == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  for (std::size_t at = line.find('#'); at != line.npos; at = line.find('#', at + 1))
    if (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t') line = line.substr(0, at);
  return trimmed(line);
}

std::string lower_case(std::string_view text) {
  std::string result(trimmed(text));
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
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

bool HalfBits::parse(std::string_view text, double& value) const {
  text = trimmed(text);
  const std::size_t point = text.find('.');
  std::string_view behind = point == text.npos ? "0" : text.substr(point + 1);
  while (behind.size() > 1 && behind.ends_with('0')) behind.remove_suffix(1);
  std::uint64_t whole = 0;
  if (!parse_integer(text.substr(0, point), whole) || (behind != "0" && behind != "5"))
    return false;
  const double parsed = double(whole) + (behind == "5" ? 0.5 : 0);
  if (parsed < low || parsed > high) return false;
  value = parsed;
  return true;
}

std::string HalfBits::accepted() const {
  return std::to_string(low) + " to " + std::to_string(high) + ", packed also 2.5";
}

std::string HalfBits::text(double value) const {
  const auto whole = std::uint64_t(value);
  return std::to_string(whole) + (double(whole) == value ? "" : ".5");
}

std::string Integer::accepted() const {
  if (high == std::numeric_limits<std::int64_t>::max())
    return std::to_string(low) + " or more, below 2^63";
  return std::to_string(low) + " to " + std::to_string(high);
}

bool Frequency::parse(std::string_view text, std::uint64_t& value) const {
  if (const std::string word = lower_case(text); word == "off" || word == "first")
    return value = word == "off" ? 0 : kFirst, true;
  return Integer{0, INT64_MAX}.parse(text, value);
}

std::string Frequency::text(std::uint64_t value) const {
  return value == 0 ? "off" : value == kFirst ? "first" : std::to_string(value);
}

bool Size::parse(std::string_view text, std::uint64_t& value) const {
  constexpr std::string_view kUnits = "kmg";
  std::string digits = lower_case(text);
  const bool binary = digits.ends_with("ib");
  if (binary)
    digits.resize(digits.size() - 2);
  else if (digits.ends_with("b"))
    digits.pop_back();
  const std::size_t unit = digits.empty() ? kUnits.npos : kUnits.find(digits.back());
  if (binary && unit == kUnits.npos) return false;
  const int shift = unit == kUnits.npos ? 0 : 10 * (int(unit) + 1);
  if (shift != 0) digits.pop_back();
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

std::string Fraction::text(double value) const {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

bool Text::parse(std::string_view text, std::string& value) const {
  if (trimmed(text).empty()) return false;
  value = trimmed(text);
  return true;
}

bool Target::parse(std::string_view text, std::string& value) const {
  bool is_switch = false;
  return !Boolean{}.parse(text, is_switch) && Text{""}.parse(text, value);
}

// The values of SLIMPI_ALGORITHM that are not algorithms; src/algorithm/policy says what they mean.
constexpr const char* kOtherValues[] = {"auto", "off"};

bool AlgorithmName::parse(std::string_view text, std::string& value) const {
  const std::string_view given = trimmed(text);
  const std::string word = lower_case(given);
  const auto accept = [&](std::string_view accepted) {
    value = accepted;
    return true;
  };
  for (const char* const other : kOtherValues)
    if (word == other) return accept(word);
  for (const AlgorithmWord& row : kAlgorithmWords)
    if (row.argument[0] == '\0' ? word == row.name
                                : given.starts_with(row.name + std::string(":/")))
      return accept(row.argument[0] == '\0' ? word : given);
  return false;
}

std::string AlgorithmName::accepted() const {
  std::string names, with_argument;
  for (const AlgorithmWord& row : kAlgorithmWords)
    (row.argument[0] == '\0' ? names : with_argument) +=
        row.name + std::string(row.argument) + ", ";
  for (const char* const other : kOtherValues) names += std::string(other) + ", ";
  std::string list = names + with_argument;
  list.resize(list.size() - 2);
  return list;
}

namespace {

// Parses names of rows of `table`, separated by commas, to a set in which bit i stands for row i.
// Returns false if there is no row with one of these names.
template <typename Row, std::size_t rows>
bool parse_names(std::string_view text, const Row (&table)[rows], unsigned& bits) {
  bits = 0;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const std::string word = lower_case(text.substr(0, comma));
    more = comma != text.npos;
    if (more) text.remove_prefix(comma + 1);
    std::size_t row = 0;
    while (row < rows && word != table[row].name) ++row;
    if (row == rows) return false;
    bits |= 1u << row;
  }
  return true;
}

template <typename Row, std::size_t rows>
std::string join_names(const Row (&table)[rows], unsigned bits, const char* between) {
  std::string list;
  for (std::size_t row = 0; row < rows; ++row)
    if ((bits >> row & 1) != 0)
      list += (list.empty() ? "" : between) + std::string(table[row].name);
  return list;
}

}  // namespace

bool TypeNames::parse(std::string_view text, ElementTypes& value) const {
  ElementTypes types;
  if (!parse_names(text, kElementRows, types.bits) || !types.has(ElementType::float32))
    return false;
  value = types;
  return true;
}

std::string TypeNames::accepted() const {
  return "float, then any of " + join_names(kElementRows, ~1u, ", ") + ", such as float,double";
}

std::string TypeNames::text(const ElementTypes& value) const {
  return join_names(kElementRows, value.bits, ",");
}

bool CollectiveNames::parse(std::string_view text, Collectives& value) const {
  Collectives collectives;
  if (!parse_names(text, kCollectiveRows, collectives.bits)) return false;
  value = collectives;
  return true;
}

std::string CollectiveNames::accepted() const {
  return "any of " + join_names(kCollectiveRows, ~0u, ", ") + ", with commas between";
}

std::string CollectiveNames::text(const Collectives& value) const {
  return join_names(kCollectiveRows, value.bits, ",");
}

bool Shapes::parse(std::string_view text, std::vector<Shape>& value) const {
  std::vector<Shape> shapes;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const std::string_view row = text.substr(0, comma);
    more = comma != text.npos;
    if (more) text.remove_prefix(comma + 1);
    const std::size_t equals = row.find('='), times = row.find_first_of("xX");
    if (equals == row.npos || times == row.npos || times < equals) return false;
    Shape shape{};
    if (!parse_integer(row.substr(0, equals), shape.count)) return false;
    if (!parse_integer(row.substr(equals + 1, times - equals - 1), shape.rows)) return false;
    if (!parse_integer(row.substr(times + 1), shape.columns)) return false;
    std::uint64_t product = 0;
    if (shape.count == 0 || __builtin_mul_overflow(shape.rows, shape.columns, &product) ||
        product != shape.count)
      return false;
    for (const Shape& other : shapes)
      if (other.count == shape.count) return false;
    shapes.push_back(shape);
  }
  value = std::move(shapes);
  return true;
}

std::string Shapes::text(const std::vector<Shape>& value) const {
  std::string list;
  for (const Shape& shape : value)
    list += (list.empty() ? "" : ",") + std::to_string(shape.count) + "=" +
            std::to_string(shape.rows) + "x" + std::to_string(shape.columns);
  return list;
}

}  // namespace slimpi
