// SPDX-License-Identifier: BSD-3-Clause
// Compiles fmt itself, so that slimpi does not need libfmt.so. All other files include
// <fmt/core.h>, which only declares fmt and compiles much faster than <fmt/format.h> with
// FMT_HEADER_ONLY.
#include <fmt/format-inl.h>

// <fmt/format.h> declares these templates as extern, so they are instantiated here. In fmt 11.1,
// vformat_to() is no template.
template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl<char>(locale_ref);
template char fmt::detail::decimal_point_impl<char>(locale_ref);
#if FMT_VERSION < 110000
template void fmt::detail::vformat_to<char>(buffer<char>&, string_view, format_args, locale_ref);
#endif
