// SPDX-License-Identifier: BSD-3-Clause
// Files of options that nobody would write: random names, values, line ends, bytes of any kind and
// endless lines. Each is read, or refused in one printable line that names the file and the line.
#include <unistd.h>

#include <fstream>
#include <random>

#include "options/config.h"
#include "tests/helper/base/unit_test.h"

using namespace slimpi;

namespace {

constexpr int kFiles = 400;
char g_path[] = "config_random_XXXXXX";
std::mt19937 g_random;

int make_file(void**) {
  const int descriptor = mkstemp(g_path);
  return descriptor < 0 ? -1 : close(descriptor);
}

int remove_file(void**) {
  return unlink(g_path);
}

std::size_t below(std::size_t end) {
  return std::size_t(g_random() % end);
}

template <typename T>
const T& among(const std::vector<T>& all) {
  return all[below(all.size())];
}

std::string any_bytes(std::size_t most) {
  std::string bytes(below(most + 1), '\0');
  for (char& byte : bytes) byte = char(below(256));
  return bytes;
}

std::string random_name() {
  static const std::vector<std::string> odd = {"",      "config",      "bit",       "slimpi_bits",
                                               "=",     "SLIMPI_BITS", "bits bits", "\xc3\xa9",
                                               "#bits", "hook:/a.so",  "-",         "bitz"};
  std::string name = below(4) == 0 ? among(odd) : std::string(among(option_rows()).name);
  if (below(10) == 0) std::transform(name.begin(), name.end(), name.begin(), ::toupper);
  if (below(20) == 0) name = any_bytes(30);
  if (below(60) == 0) name = std::string(100'000, 'a');
  return name;
}

std::string random_value() {
  static const std::vector<std::string> values = test::split(
      "|0|1|8|2048|64K|1e-3|nan|inf|-1|0x10|1e999|99999999999999999999|yes|OFF|2G|qsgd|fp16|"
      "hook:/a|hook:|sharded|nearest|a=b|6=2x3|6=2x|# bits|1 # one|1#one|stderr|%r%h%p|%|\t|16E|"
      "6=2x3,,");
  if (below(12) == 0) return any_bytes(60);
  if (below(60) == 0) return std::string(200'000, char('0' + below(10)));
  if (below(4) == 0) return among(option_rows()).standard;
  return among(values);
}

std::string random_line() {
  switch (below(12)) {
    case 0:
      return "# " + any_bytes(20);
    case 1:
      return std::string(below(5), ' ');
    case 2:
      return any_bytes(80);
    default:
      return std::string(below(3), ' ') + random_name() +
             among<std::string>({"=", " = ", "\t=", " "}) + random_value() +
             among<std::string>({"", "", " ", "\t# end"});
  }
}

std::string random_file() {
  static const std::vector<std::string> ends = {"\n", "\n", "\r\n", "\r", "\n\n"};
  std::string text = below(10) == 0 ? "\xef\xbb\xbf" : "";
  const std::string& end = among(ends);
  for (std::size_t lines = below(12); lines > 0; --lines) text += random_line() + end;
  return below(5) == 0 ? text + random_line() : text;
}

void assert_one_line(const std::string& text) {
  assert_true(text.size() < 1000);
  assert_true(std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < ' '; }));
}

// The line number behind the file's name at the front of the text.
long line_in(const std::string& text) {
  const std::string front = std::string(g_path) + ":";
  if (!text.starts_with(front)) return 0;
  char* end = nullptr;
  const long line = std::strtol(text.c_str() + front.size(), &end, 10);
  return std::strncmp(end, ": ", 2) == 0 ? line : 0;
}

// Each option has a value that its own parser takes.
void assert_valid(const Config& config) {
  for (std::size_t i = 0; i < option_rows().size(); ++i) {
    Config again;
    const std::string name = option_rows()[i].name;
    assert_string_equal(again.set(name, config.given[i].text, Source::environment).c_str(), "");
    assert_string_equal(again.value_text(Option(i)).c_str(), config.value_text(Option(i)).c_str());
  }
}

UNIT_TEST(random_files) {
  int read = 0;
  for (int number = 0; number < kFiles; ++number) {
    g_random.seed(unsigned(number));
    const std::string text = random_file();
    const long lines = 1 + std::count(text.begin(), text.end(), '\n');
    std::ofstream(g_path, std::ios::binary) << text;
    const Loaded loaded = load_config({{"SLIMPI_CONFIG", g_path}});
    assert_one_line(loaded.error);
    for (const std::string& warning : loaded.warnings) {
      assert_one_line(warning);
      assert_in_range(line_in(warning), 1, lines);
    }
    if (loaded.error.empty()) {
      ++read;
      assert_valid(loaded.config);
    } else {
      assert_in_range(line_in(loaded.error), 1, lines);
    }
  }
  assert_in_range(read, kFiles / 10,
                  kFiles * 9 / 10);  // the files are neither all good nor all bad
}

GROUP_FIXTURES(make_file, remove_file);

}  // namespace
