// SPDX-License-Identifier: BSD-3-Clause
#include "options/spelling_hint.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace slimpi {

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] =
          std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_word(std::string_view given, std::span<const std::string> words) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, given.size() / 3) + 1;
  for (const std::string& word : words) {
    const std::size_t distance = edit_distance(given, word);
    if (distance < least) {
      least = distance;
      best = word;
    }
  }
  if (!best.empty() || given.size() < 3) return best;
  for (const std::string& word : words)
    if (word.starts_with(given)) return word;
  return "";
}

std::string did_you_mean(std::string_view given, std::span<const std::string> words) {
  const std::string word = nearest_word(given, words);
  return word.empty() || word == given ? "" : "; did you mean " + word + "?";
}

}  // namespace slimpi
