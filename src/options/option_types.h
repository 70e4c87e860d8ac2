// SPDX-License-Identifier: BSD-3-Clause
// The types of option values, and their parsers. Each parser converts a text to a value, describes
// for error messages what it accepts, and converts values to texts, where equal values have equal
// texts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slimpi {

enum class Rounding { nearest, stochastic };
enum class Buffers { any, device, host };
enum class Hierarchy { automatic, flat, leader, sharded };
constexpr const char* kHierarchies[] = {"auto", "flat", "leader", "sharded"};
constexpr const char* to_string(Hierarchy hierarchy) {
  return kHierarchies[int(hierarchy)];
}
enum class Progress { calls, thread };
enum class Peers { ring, shift_one, all };
enum class Intra { automatic, nccl, shm, mpi };
enum class LogLevel { error, warn, info, debug };

// The types of elements that slimpi can sum, of which SLIMPI_TYPES selects those that a process
// sums. call/element_type.h has MPI's names for them, and how they become floats.
enum class ElementType { float32, float64, float16, bfloat16 };
struct ElementRow {
  const char* name;  // in SLIMPI_TYPES and the report
  unsigned bytes;
};
constexpr ElementRow kElementRows[] = {
    {"float", 4}, {"double", 8}, {"float16", 2}, {"bfloat16", 2}};
constexpr int kElementTypes = std::size(kElementRows);
constexpr const ElementRow& row_of(ElementType type) {
  return kElementRows[int(type)];
}

// The functions of MPI that slimpi can take, with their nonblocking, persistent and large-count
// forms. SLIMPI_CALLS selects those that it takes.
enum class Collective { allreduce, reduce_scatter, allgather };
struct CollectiveRow {
  const char* name;  // in SLIMPI_CALLS
  // An optimal algorithm sends phases * (nodes - 1) / nodes of the vector from each node.
  unsigned phases;
};
constexpr CollectiveRow kCollectiveRows[] = {
    {"allreduce", 2}, {"reduce_scatter", 1}, {"allgather", 1}};
constexpr int kCollectives = std::size(kCollectiveRows);
constexpr const CollectiveRow& row_of(Collective collective) {
  return kCollectiveRows[int(collective)];
}

template <typename Enum>
struct EnumSet {
  unsigned bits = 0;
  bool has(Enum one) const { return (bits >> int(one) & 1) != 0; }
  void add(Enum one) { bits |= 1u << int(one); }
};
using ElementTypes = EnumSet<ElementType>;
using Collectives = EnumSet<Collective>;

// The names of algorithms.def, for code that uses no other column of this table.
enum class AlgorithmId : std::size_t {
#define SLIMPI_ALGORITHM(name, argument, functions, ...) name,
#include "options/algorithms.def"
};

struct AlgorithmWord {
  const char* name;
  const char* argument;  // "" or ":/ABSOLUTE/PATH.so"
};

// The names, in the order of the enumerators.
inline constexpr AlgorithmWord kAlgorithmWords[] = {
#define SLIMPI_ALGORITHM(name, argument, functions, ...) {#name, argument},
#include "options/algorithms.def"
};
inline constexpr std::size_t kAlgorithms = std::size(kAlgorithmWords);

constexpr const char* to_string(AlgorithmId id) {
  return kAlgorithmWords[std::size_t(id)].name;
}

// One tensor shape of SLIMPI_POWERSGD_SHAPES: a buffer of `count` elements is `rows` x `columns`.
struct Shape {
  std::uint64_t count, rows, columns;
  bool operator==(const Shape&) const = default;
};

std::string_view trimmed(std::string_view text);  // without white space at either end
std::string lower_case(std::string_view text);    // also trimmed

// Returns the content of line `number` (from 1) of a file of options or rules, without white space
// at either end and without the comment, which begins at a # that is first on the line or follows
// white space. In the first line, also skips the byte order mark that Windows editors write there.
std::string_view content_of_line(std::string_view line, int number);
bool parse_integer(std::string_view text, std::uint64_t& value);

// A number of bits from `low` to `high`, in steps of 0.5, such as 2.5.
struct HalfBits {
  int low = 1, high = 16;
  bool parse(std::string_view text, double& value) const;
  std::string accepted() const;
  std::string text(double value) const;
};

// A whole number from `low` to `high`.
struct Integer {
  std::int64_t low, high;
  template <typename T>
  bool parse(std::string_view text, T& value) const {
    std::uint64_t parsed = 0;
    if (!parse_integer(text, parsed) || parsed > std::uint64_t(high) || std::int64_t(parsed) < low)
      return false;
    value = T(parsed);
    return true;
  }
  std::string accepted() const;
  std::string text(std::uint64_t value) const { return std::to_string(value); }
};

// How often something is done. N means at every Nth sum, 0 never (off), and kFirst at the first sum
// only.
struct Frequency {
  static constexpr std::uint64_t kFirst = UINT64_MAX;
  bool parse(std::string_view text, std::uint64_t& value) const;
  std::string accepted() const { return "off, first, or a number of sums"; }
  std::string text(std::uint64_t value) const;
};

// A number of bytes or elements from `low` to `high`, with K, M or G (powers of 1024), or 0 if
// `zero` is set.
struct Size {
  std::uint64_t low, high;
  bool zero = false;
  bool parse(std::string_view text, std::uint64_t& value) const;
  std::string accepted() const;
  std::string text(std::uint64_t value) const { return std::to_string(value); }
};

struct Boolean {
  bool parse(std::string_view text, bool& value) const;
  std::string accepted() const { return "1/0, y/n, yes/no, true/false, on/off"; }
  std::string text(bool value) const { return value ? "1" : "0"; }
};

// A number above 0 and below 1.
struct Fraction {
  bool parse(std::string_view text, double& value) const;
  std::string accepted() const { return "a number between 0 and 1, such as 1e-3"; }
  std::string text(double value) const;
};

// Any text, such as a path. `what` describes the text in the documentation.
struct Text {
  const char* what;
  bool parse(std::string_view text, std::string& value) const;
  std::string accepted() const { return what; }
  std::string text(const std::string& value) const { return value; }
};

// Where a text goes: stderr, stdout, or a file. Refuses a value of Boolean, such as 1 or yes.
struct Target {
  bool parse(std::string_view text, std::string& value) const;
  std::string accepted() const { return "stderr, stdout, or a file"; }
  std::string text(const std::string& value) const { return value; }
};

// The algorithms of algorithms.def, auto and off.
struct AlgorithmName {
  bool parse(std::string_view text, std::string& value) const;
  std::string accepted() const;
  std::string text(const std::string& value) const { return value; }
};

// The names of element types, separated by commas. `float` must be among them, because a rank
// without it could not compare its options with the other ranks before a sum of floats.
struct TypeNames {
  bool parse(std::string_view text, ElementTypes& value) const;
  std::string accepted() const;
  std::string text(const ElementTypes& value) const;
};

// The names of collectives, separated by commas.
struct CollectiveNames {
  bool parse(std::string_view text, Collectives& value) const;
  std::string accepted() const;
  std::string text(const Collectives& value) const;
};

// Tensor shapes: COUNT=ROWSxCOLUMNS,...
struct Shapes {
  bool parse(std::string_view text, std::vector<Shape>& value) const;
  std::string accepted() const {
    return "COUNT=ROWSxCOLUMNS,... with ROWS x COLUMNS = COUNT, each COUNT once";
  }
  std::string text(const std::vector<Shape>& value) const;
};

// One of `names`, in the order of the enumerators of E.
template <typename E>
struct Choice {
  std::initializer_list<const char*> names;
  bool parse(std::string_view text, E& value) const {
    int index = 0;
    for (const char* name : names) {
      if (lower_case(text) == name) {
        value = static_cast<E>(index);
        return true;
      }
      ++index;
    }
    return false;
  }
  std::string accepted() const {
    std::string list;
    for (const char* name : names) list += (list.empty() ? "" : ", ") + std::string(name);
    return list;
  }
  std::string text(E value) const { return names.begin()[std::size_t(value)]; }
};

// A value that may be unset (empty text).
template <typename Parser>
struct Maybe {
  Parser parser;
  template <typename T>
  bool parse(std::string_view text, std::optional<T>& value) const {
    if (trimmed(text).empty()) {
      value.reset();
      return true;
    }
    T parsed{};
    if (!parser.parse(text, parsed)) return false;
    value = parsed;
    return true;
  }
  std::string accepted() const { return parser.accepted(); }
  template <typename T>
  std::string text(const std::optional<T>& value) const {
    return value ? parser.text(*value) : "";
  }
};

}  // namespace slimpi
