// SPDX-License-Identifier: BSD-3-Clause
// Loading options from an environment and a file, and what is said of those that cannot be used.
#include "options/config.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "tests/helper/base/unit_test.h"

using namespace slimpi;

namespace {

const std::string kBits = " cannot be used; accepted: 1 to 16, packed also 2.5";

char g_path[] = "config_test_XXXXXX";

int make_file(void**) {
  const int descriptor = mkstemp(g_path);
  return descriptor < 0 ? -1 : close(descriptor);
}

int remove_file(void**) {
  return unlink(g_path);
}

// Loads `text` as the option file, under `environment`.
Loaded load(const std::string& text, Environment environment = {}) {
  std::ofstream(g_path) << text;
  environment["SLIMPI_CONFIG"] = g_path;
  return load_config(environment);
}

void expect_error(const Loaded& loaded, const std::string& expected) {
  assert_string_equal(loaded.error.c_str(), expected.c_str());
}

std::string in_file(int line) {
  return std::string(g_path) + ":" + std::to_string(line) + ": ";
}

UNIT_TEST(defaults) {
  const Loaded loaded = load_config({});
  expect_error(loaded, "");
  assert_int_equal(loaded.warnings.size(), 0);
  const Config& config = loaded.config;
  assert_string_equal(config.algorithm.c_str(), "bytegrad");
  assert_int_equal(config.bits, 8);
  assert_int_equal(config.bucket, 512);
  assert_int_equal(config.min_size, 65536);
  assert_int_equal(config.interval, 1);
  assert_true(config.log == LogLevel::warn);
  assert_true(config.hierarchy == Hierarchy::automatic);
  assert_false(config.rounding.has_value());
  assert_false(config.error_feedback.has_value());
  assert_false(config.max_error.has_value());
  assert_false(config.start.has_value());
  assert_false(config.report.has_value());
}

// The default of each row is a value that its own parser takes, and what Config() starts with.
UNIT_TEST(table_is_sound) {
  const Config config;
  std::set<std::string> names;
  assert_int_equal(config.given.size(), option_rows().size());
  for (std::size_t i = 0; i < option_rows().size(); ++i) {
    const OptionRow& row = option_rows()[i];
    Config again;
    assert_string_equal(again.set(row.name, row.standard, Source::environment).c_str(), "");
    assert_string_equal(config.given[i].text.c_str(), row.standard);
    assert_true(config.given[i].source == Source::built_in);
    assert_false(config.is_set(Option(i)));
    assert_true(again.is_set(Option(i)));
    assert_true(names.insert(row.name).second);
    assert_true(row.variable.starts_with("SLIMPI_"));
    assert_string_equal(lower_case(row.variable.substr(7)).c_str(), row.name);
    assert_true(row.accepted.size() > 0 && row.meaning[0] >= 'A');
    assert_int_equal(row.meaning[strlen(row.meaning) - 1], '.');
  }
}

// Gives each option a value that it refuses: the line names option, value and what is accepted.
UNIT_TEST(every_option_refuses_in_one_line) {
  for (const OptionRow& row : option_rows()) {
    const bool text = strstr(row.accepted.c_str(), "a file") != nullptr;
    if (text) continue;  // any text may be a file's name
    const Loaded loaded = load_config({{row.variable, "no such\nvalue"}});
    expect_error(loaded, row.variable + "=no such?value cannot be used; accepted: " + row.accepted);
    Config config;
    const std::string info = config.set(row.name, "\x01", Source::info);
    assert_string_equal(info.c_str(), ("slimpi_" + std::string(row.name) +
                                       "=? cannot be used; accepted: " + row.accepted)
                                          .c_str());
    assert_false(config.is_set(Option(&row - option_rows().data())));
  }
  // double is accepted only beside float, so it is no suggestion by itself.
  expect_error(load_config({{"SLIMPI_TYPES", "double"}}),
               "SLIMPI_TYPES=double cannot be used; accepted: float, then any of double, float16, "
               "bfloat16, such as float,double");
}

UNIT_TEST(long_values_are_cut) {
  const Loaded loaded = load_config({{"SLIMPI_BITS", std::string(100000, '7')}});
  assert_true(loaded.error.size() < 300);
  assert_non_null(strstr(loaded.error.c_str(), "777... cannot be used; accepted: 1 to 16, packed"));
}

UNIT_TEST(empty_value_unsets) {
  const Loaded loaded = load("max_error = 1e-3\nreport = stderr\nbits = 4\n",
                             {{"SLIMPI_MAX_ERROR", ""}, {"SLIMPI_REPORT", " "}});
  expect_error(loaded, "");
  assert_false(loaded.config.max_error.has_value());
  assert_false(loaded.config.report.has_value());
  assert_int_equal(loaded.config.bits, 4);
  for (const OptionRow& row : option_rows())
    expect_error(load_config({{row.variable, ""}}),
                 row.standard[0] == '\0'
                     ? ""
                     : row.variable + "= cannot be used; accepted: " + row.accepted);
  expect_error(load("start =\nrounding = # unset\n"), "");
}

UNIT_TEST(same_value_same_text) {
  const auto text = [](const char* name, const char* value) {
    Config config;
    assert_string_equal(config.set(name, value, Source::info).c_str(), "");
    for (std::size_t i = 0; i < option_rows().size(); ++i)
      if (std::string_view(option_rows()[i].name) == name) return config.value_text(Option(i));
    return std::string();
  };
  constexpr struct {
    const char *name, *one, *other, *text;
  } kPairs[] = {{"min_size", "64K", " 65536", "65536"},
                {"bits", "08", "8", "8"},
                {"max_error", "0.001", "1e-3", "0.001"},
                {"error_feedback", "ON", "y", "1"},
                {"error_feedback", "", " ", ""},
                {"error_feedback", "no", "0", "0"},
                {"hierarchy", "Sharded", "sharded", "sharded"},
                {"rounding", "STOCHASTIC", "stochastic ", "stochastic"},
                {"algorithm", "QSGD", "qsgd", "qsgd"},
                {"algorithm", "hook:/A.so", " hook:/A.so", "hook:/A.so"},
                {"powersgd_shapes", "6=2x3, 8=2X4", "6=2x3,8=2x4", "6=2x3,8=2x4"}};
  for (const auto& pair : kPairs) {
    assert_string_equal(text(pair.name, pair.one).c_str(), pair.text);
    assert_string_equal(text(pair.name, pair.other).c_str(), pair.text);
  }
  assert_string_not_equal(text("max_error", "1e-3").c_str(), text("max_error", "1.1e-3").c_str());
}

UNIT_TEST(unknown_names) {
  const auto warning = [](const char* name) {
    const Loaded loaded = load_config({{name, "4"}});
    assert_string_equal(loaded.error.c_str(), "");
    assert_int_equal(loaded.warnings.size(), 1);
    return loaded.warnings[0];
  };
  for (const auto& [name, near] : {std::pair{"SLIMPI_BIT", "SLIMPI_BITS"},
                                   {"SLIMPI_BTIS", "SLIMPI_BITS"},
                                   {"SLIMPI_bits", "SLIMPI_BITS"},
                                   {"SLIMPI_LOGG", "SLIMPI_LOG"},
                                   {"SLIMPI_ALGO", "SLIMPI_ALGORITHM"},
                                   {"SLIMPI_MINSIZE", "SLIMPI_MIN_SIZE"},
                                   {"SLIMPI_ERROR_FEEDBAK", "SLIMPI_ERROR_FEEDBACK"}})
    assert_string_equal(
        warning(name).c_str(),
        (name + std::string(" is not an option of slimpi; did you mean ") + near + "?").c_str());
  for (const char* name : {"SLIMPI_FOO", "SLIMPI_QUANTUM", "SLIMPI_"})
    assert_string_equal(
        warning(name).c_str(),
        (name + std::string(" is not an option of slimpi (slimpi-info -c lists them)")).c_str());

  Config config;
  assert_string_equal(config.set("bit", "4", Source::info).c_str(),
                      "slimpi_bit is not an option of slimpi; did you mean slimpi_bits?");
  assert_int_equal(load_config({{"SLIMPI_BIT", "4"}, {"SLIMPI_SED", "1"}}).warnings.size(), 2);
}

UNIT_TEST(unknown_names_in_a_file) {
  const Loaded loaded = load("bit = 4\nslimpi_seed = 5\n");
  expect_error(loaded, "");
  assert_int_equal(loaded.warnings.size(), 2);
  assert_string_equal(
      loaded.warnings[1].c_str(),
      (in_file(2) + "slimpi_seed is not an option of slimpi; did you mean seed?").c_str());
}

UNIT_TEST(file_syntax) {
  const Loaded loaded = load(
      "# a comment\n"
      "\n"
      "   \t \n"
      "algorithm=qsgd\n"
      "  BITS = 4   # another\r\n"
      "bucket\t=\t1K\n"
      "trace = /tmp/a#b = c.json # kept up to here\n"
      "seed = 1\n"
      "seed = 2\n"
      "verify = 5\t# behind a tab\n"
      "report = stderr");
  expect_error(loaded, "");
  assert_int_equal(loaded.warnings.size(), 0);
  assert_string_equal(loaded.config.algorithm.c_str(), "qsgd");
  assert_int_equal(loaded.config.bits, 4);
  assert_int_equal(loaded.config.bucket, 1024);
  assert_string_equal(loaded.config.trace->c_str(), "/tmp/a#b = c.json");
  assert_int_equal(loaded.config.seed, 2);
  assert_int_equal(loaded.config.verify, 5);
  assert_string_equal(loaded.config.report->c_str(), "stderr");
  assert_true(loaded.config.given[std::size_t(Option::bits)].source == Source::file);
  expect_error(load(""), "");
}

UNIT_TEST(file_errors) {
  assert_int_equal(load("\xef\xbb\xbf"
                        "bits = 5\n")
                       .config.bits,
                   5);
  expect_error(load("bits = 4\nbits 5\n"), in_file(2) + "expected name = value, found bits 5");
  expect_error(load("= 5\n"), in_file(1) + "expected name = value, found = 5");
  expect_error(load("\n\nbits = 17\n"), in_file(3) + "bits=17" + kBits);
  expect_error(load("bits = #4\n"), in_file(1) + "bits=" + kBits);
  expect_error(load("config = other\n"),
               in_file(1) + "config cannot be set in a file; set SLIMPI_CONFIG in the environment");
  expect_error(load_config({{"SLIMPI_CONFIG", "/no/such/file"}}),
               "SLIMPI_CONFIG=/no/such/file: the file cannot be read: No such file or directory");
  expect_error(load_config({{"SLIMPI_CONFIG", "/"}}),
               "SLIMPI_CONFIG=/: the file cannot be read: Is a directory");
  // A file that never ends, or that could keep a rank waiting, is refused.
  expect_error(load_config({{"SLIMPI_CONFIG", "/dev/zero"}}),
               "SLIMPI_CONFIG=/dev/zero: the file cannot be read: it is a pipe or a device, not a "
               "regular file");
  unlink(g_path);
  assert_int_equal(mkfifo(g_path, 0600), 0);
  alarm(20);
  expect_error(load_config({{"SLIMPI_CONFIG", g_path}}),
               "SLIMPI_CONFIG=" + std::string(g_path) +
                   ": the file cannot be read: it is a pipe or a device, not a regular file");
  alarm(0);
  unlink(g_path);
  expect_error(load(std::string(1 << 20, '\n')), "");
  expect_error(load(std::string((1 << 20) + 1, '\n')),
               "SLIMPI_CONFIG=" + std::string(g_path) +
                   ": the file cannot be read: it is longer than 1 MiB");
}

UNIT_TEST(precedence) {
  Loaded loaded = load("bits = 2\nseed = 3\n", {{"SLIMPI_BITS", "4"}});
  Config& config = loaded.config;
  assert_int_equal(config.bits, 4);
  assert_int_equal(config.seed, 3);
  const auto& given = config.given[std::size_t(Option::bits)];
  assert_true(given.source == Source::environment);
  assert_string_equal(given.text.c_str(), "4");

  assert_string_equal(config.set("bits", "6", Source::info).c_str(), "");
  assert_int_equal(config.bits, 6);
  assert_true(given.source == Source::info);
  assert_string_equal(config.set("bits", "7", Source::environment).c_str(), "");
  assert_string_equal(config.set("bits", "7", Source::file).c_str(), "");
  assert_int_equal(config.bits, 6);
  assert_string_equal(given.text.c_str(), "6");
}

// A value that loses against a stronger source is still a mistake worth knowing.
UNIT_TEST(overridden_values_are_checked) {
  expect_error(load("bits = 99\n", {{"SLIMPI_BITS", "4"}}), in_file(1) + "bits=99" + kBits);
}

UNIT_TEST(info_keys) {
  assert_string_equal(info_key_option("slimpi_bits").c_str(), "bits");
  assert_string_equal(info_key_option("bits").c_str(), "");
  assert_string_equal(info_key_option("SLIMPI_BITS").c_str(), "");
  assert_string_equal(info_key_option("slimpi_").c_str(), "");
}

GROUP_FIXTURES(make_file, remove_file);

}  // namespace
