// SPDX-License-Identifier: BSD-3-Clause
// The one file that compiles fmt itself: elsewhere <fmt/core.h> only declares it, which takes a
// second where <fmt/format.h> with FMT_HEADER_ONLY takes four. Nothing needs libfmt.so.
#include <fmt/format-inl.h>

// <fmt/format.h> says that these are instantiated elsewhere.
template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl<char>(locale_ref);
template char fmt::detail::decimal_point_impl<char>(locale_ref);
