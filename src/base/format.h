// SPDX-License-Identifier: BSD-3-Clause
// Formatting into memory of the caller's. Strings are formatted by fmt::format of <fmt/core.h>.
#pragma once
#include <fmt/core.h>

#include <cstddef>
#include <span>

namespace slimpi {

// Returns the full length of the text, which is more than `text` holds if it was cut. Allocates
// nothing.
std::size_t vformat_into(std::span<char> text, fmt::string_view format, fmt::format_args values);

template <typename... Values>
std::size_t format_into(std::span<char> text, fmt::format_string<Values...> format,
                        Values&&... values) {
  return vformat_into(text, format, fmt::make_format_args(values...));
}

}  // namespace slimpi
