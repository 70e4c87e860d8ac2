// SPDX-License-Identifier: BSD-3-Clause
// Compiles fmt itself; slimpi does not need libfmt.so. All other files include <fmt/core.h>, which
// only declares fmt and compiles in one second. <fmt/format.h> with FMT_HEADER_ONLY takes four.
#include <fmt/format-inl.h>

// Instantiates two templates, which <fmt/format.h> only declares as extern.
template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl<char>(locale_ref);
template char fmt::detail::decimal_point_impl<char>(locale_ref);
