// SPDX-License-Identifier: BSD-3-Clause
#include "tools/bench/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "base/config.h"
#include "base/option_types.h"
#include "slimpi.h"

namespace slimpi::bench {
namespace {

constexpr Size kBytes{4, std::uint64_t(1) << 40};

// CLI11 takes a check that returns what is wrong, or nothing.
std::string check_size(const std::string& text) {
  std::uint64_t value;
  return kBytes.parse(text, value) ? "" : fmt::format("{} is not a size such as 64K or 1M", text);
}

std::string check_rate(const std::string& text) {
  double value;
  return parse_rate(text, value) ? "" : fmt::format("{} is not a rate such as 1gbit", text);
}

std::string check_algorithm(const std::string& text) {
  std::string value;
  const AlgorithmName parser;
  return parser.parse(text, value)
             ? ""
             : fmt::format("{} is not an algorithm; accepted: {}", text, parser.accepted());
}

std::uint64_t bytes(const std::string& text) {
  std::uint64_t value = 0;
  (void)kBytes.parse(text, value);
  return value / sizeof(float) * sizeof(float);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string version() {
  return fmt::format("slimpi-bench {}.{}.{}", SLIMPI_VERSION_MAJOR, SLIMPI_VERSION_MINOR,
                     SLIMPI_VERSION_PATCH);
}

// What CLI11 has read as text, before it is made into Options.
struct Words {
  std::string least = "4K", most = "64M", wire, latency;
  double factor = 2;
  bool standard_sizes = true;
  std::vector<std::string> sizes, set;
};

void finish(const Words& words, Options& options) {
  for (const std::string& size : words.sizes) options.sizes.push_back(bytes(size));
  if (options.sizes.empty() && options.predict && words.standard_sizes)
    options.sizes = {1 << 20, 64 << 20};
  if (options.sizes.empty()) {
    const double most = double(bytes(words.most));
    for (double size = double(bytes(words.least)); size <= most; size *= words.factor)
      options.sizes.push_back(std::uint64_t(size) / sizeof(float) * sizeof(float));
  }
  for (const std::string& word : words.set) {
    const std::size_t equals = word.find('=');
    options.set.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  const std::string lab_rate = environment("SLIMPILAB_RATE");
  (void)parse_rate(words.wire.empty() ? lab_rate : words.wire, options.wire);
  if (options.interface.empty()) options.interface = environment("SLIMPILAB_INTERFACE");
}

}  // namespace

bool parse_rate(const std::string& text, double& bits_per_second) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  std::string unit = lower_case(end);
  if (unit.ends_with("bit")) unit.resize(unit.size() - 3);
  const std::string prefixes = " kmgt";
  const std::size_t power = unit.empty() ? 0 : prefixes.find(unit);
  if (end == text.c_str() || unit.size() > 1 || power == std::string::npos || !(number > 0))
    return false;
  bits_per_second = number;
  for (std::size_t i = 0; i < power; ++i) bits_per_second *= 1000;
  return true;
}

std::string written(std::uint64_t bytes) {
  const char* units = "KMGT";
  int unit = -1;
  while (bytes >= 1024 && bytes % 1024 == 0 && unit < 3) {
    bytes /= 1024;
    ++unit;
  }
  return unit < 0 ? fmt::format("{}", bytes) : fmt::format("{}{}", bytes, units[unit]);
}

Parsed parse(int argc, char** argv) {
  Parsed parsed;
  Options& options = parsed.options;
  Words words;
  CLI::App app(
      "Time of MPI_Allreduce of floats, size by size, through slimpi and through plain MPI.",
      "slimpi-bench");
  app.set_version_flag("--version", version());
  app.add_option("--min", words.least, "smallest size in bytes")
      ->check(check_size)
      ->capture_default_str();
  app.add_option("--max", words.most, "largest size")->check(check_size)->capture_default_str();
  app.add_option("--factor", words.factor, "from one size to the next")
      ->check(CLI::Range(1.01, 1e6))
      ->capture_default_str();
  app.add_option("--size", words.sizes, "these sizes instead")->delimiter(',')->check(check_size);
  app.add_option("--algorithm", options.algorithms,
                 "algorithms to compare (as the environment says)")
      ->delimiter(',')
      ->check(check_algorithm);
  app.add_option("--bits", options.bits, "bits per value of the quantizers")
      ->delimiter(',')
      ->check(CLI::Range(1, 8));
  app.add_option("--set", words.set, "another option of slimpi, for every algorithm: NAME=VALUE")
      ->check([](const std::string& word) {
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos || equals == 0)
          return fmt::format("{} is not NAME=VALUE", word);
        return Config().set(lower_case(word.substr(0, equals)), word.substr(equals + 1),
                            Source::file);
      });
  app.add_option("--iterations", options.iterations, "timed calls (as many as fit into 2 s)")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--warmup", options.warmup, "calls before the timed ones")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_flag("--in-place", options.in_place, "use MPI_IN_PLACE");
  app.add_flag("--check,!--no-check", options.check, "compare with the exact sum (on)");
  app.add_option("--wire", words.wire, "rate of a node's link, such as 1gbit (the lab's)")
      ->check(check_rate);
  app.add_option("--interface", options.interface, "device whose bytes are counted (the lab's)");
  app.add_option("--json", options.json, "write the results; - is standard output");
  app.add_option("--plot", options.plot, "draw a picture: FILE.svg or FILE.png")
      ->check([](const std::string& file) {
        return file.ends_with(".svg") || file.ends_with(".png")
                   ? std::string()
                   : fmt::format("{} does not end in .svg or .png", file);
      });
  app.add_option("--calibrate", options.calibrate, "measure the cost model's constants into FILE");
  app.add_option("--constants", options.constants, "that file; adds a predicted column")
      ->check(CLI::ExistingFile);
  app.add_flag("--predict", options.predict, "print the cost model's predictions, without MPI");
  app.add_option("--nodes", options.nodes, "of --predict (2 to 100000)")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--ranks-per-node", options.ranks_per_node, "of --predict")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--latency", options.latency, "of --predict: one way, in seconds (measured)")
      ->check(CLI::Range(0.0, 10.0));
  app.add_option("--cores", options.cores, "of --predict: of a node (one a rank)")
      ->check(CLI::Range(1, 4096));
  try {
    app.parse(argc, argv);
    words.standard_sizes = app.count("--min") + app.count("--max") + app.count("--factor") == 0;
    finish(words, options);
    if (options.sizes.empty())
      parsed = {options, 2,
                fmt::format("slimpi-bench: --min {} is above --max {}\n", words.least, words.most)};
  } catch (const CLI::CallForHelp&) {
    parsed = {options, 0, app.help()};
  } catch (const CLI::CallForVersion&) {
    parsed = {options, 0, version() + "\n"};
  } catch (const CLI::ParseError& error) {
    parsed = {
        options, 2,
        fmt::format("slimpi-bench: {} (slimpi-bench --help lists the options)\n", error.what())};
  }
  return parsed;
}

}  // namespace slimpi::bench
