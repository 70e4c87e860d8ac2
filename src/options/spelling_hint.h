// SPDX-License-Identifier: BSD-3-Clause
// "Did you mean ...?": the word that a misspelt one probably means.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace slimpi {

// The word of `words` that is nearest to `given` by edit distance (insertions, deletions,
// replacements, swaps of adjacent characters), at most a third of its characters away, at least
// one. Else the first that begins with `given`, if that has three characters or more. "" if there
// is none.
std::string nearest_word(std::string_view given, std::span<const std::string> words);

// "; did you mean WORD?", or "" where no word is near, or it is one of them.
std::string did_you_mean(std::string_view given, std::span<const std::string> words);

}  // namespace slimpi
