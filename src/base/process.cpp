// SPDX-License-Identifier: BSD-3-Clause
#include "base/process.h"

#include <unistd.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <string_view>

namespace slimpi {

namespace {
const std::chrono::steady_clock::time_point g_loaded = std::chrono::steady_clock::now();

char g_directory[4096];
const bool g_has_directory = getcwd(g_directory, sizeof g_directory) != nullptr;
}  // namespace

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=+@%^";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

std::string process_command() {
  constexpr std::size_t kLongest = 2000;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string command;
  for (std::string word; command.size() < kLongest && std::getline(file, word, '\0');)
    command += (command.empty() ? "" : " ") + shell_word(word);
  if (command.size() > kLongest) command = command.substr(0, kLongest) + "...";
  return command;
}

double seconds_since_load() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - g_loaded).count();
}

std::string path_from_start(const std::string& path) {
  if (path.empty() || path.front() == '/' || !g_has_directory) return path;
  return std::string(g_directory) + "/" + path;
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  char text[32] = "";
  gmtime_r(&now, &utc);
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace slimpi
