// SPDX-License-Identifier: BSD-3-Clause
#include "tools/bench/options.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "base/process.h"
#include "options/config.h"
#include "options/option_types.h"
#include "tools/common/command_line.h"

namespace slimpi::bench {
namespace {

constexpr const char* kVersion = "slimpi-bench " SLIMPI_PACKAGE_VERSION;
constexpr Size kBytes{4, std::uint64_t(1) << 40};

// A check for CLI11 that replaces a size such as 64K by its number of bytes, which must be a
// multiple of a float. Returns an error text, or "".
const CLI::Validator kSize(
    [](std::string& text) {
      std::uint64_t bytes = 0;
      if (!kBytes.parse(text, bytes))
        return fmt::format("{} is not a size such as 64K or 1M", text);
      text = std::to_string(bytes / sizeof(float) * sizeof(float));
      return std::string();
    },
    "");

// Parses the rate of a network, which is a number of bits per second and a unit such as 1gbit,
// 500mbit or 2.5G (powers of 1000). Returns false for any other text. A number without a unit is
// refused, because its unit would be a guess.
bool parse_rate(std::string_view text, double& bits_per_second) {
  const std::string lower = lower_case(text);
  double parsed = 0;
  const auto [end, error] = std::from_chars(lower.data(), lower.data() + lower.size(), parsed);
  std::string_view unit(end, std::size_t(lower.data() + lower.size() - end));
  if (error != std::errc() || unit.empty() || !(parsed > 0) || !std::isfinite(parsed)) return false;
  if (unit.ends_with("bit")) unit.remove_suffix(3);
  constexpr std::string_view kPrefixes = "kmgt";
  const std::size_t power = unit.empty() ? 0 : kPrefixes.find(unit) + 1;
  if (unit.size() > 1 || (power == 0 && !unit.empty())) return false;
  for (std::size_t i = 0; i < power; ++i) parsed *= 1000;
  bits_per_second = parsed;
  return true;
}

// A check for CLI11 that replaces a rate by its bits per second.
const CLI::Validator kRate(
    [](std::string& text) {
      double rate = 0;
      if (!parse_rate(text, rate)) return text + " is not a rate such as 1gbit";
      text = fmt::format("{}", rate);
      return std::string();
    },
    "");

// Returns why an option of slimpi cannot have this value; "" if it can.
std::string check_option(const std::string& name, const std::string& value) {
  return Config().set(name, value, Source::file);
}

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  for (const Collective sum : {Collective::allreduce, Collective::reduce_scatter})
    names.emplace_back(row_of(sum).name);
  return names;
}

// The words of the command line, before they become Options.
struct Words {
  std::uint64_t least = 4 << 10, most = 64 << 20;
  double factor = 2;
  std::string collective = "allreduce";
  std::vector<std::string> set;
};

void finish(const Words& words, bool standard_sizes, Options& options) {
  if (options.sizes.empty() && options.predict && standard_sizes)
    options.sizes = {1 << 20, 64 << 20};
  if (options.sizes.empty())
    for (auto size = double(words.least); size <= double(words.most); size *= words.factor)
      options.sizes.push_back(std::uint64_t(size) / sizeof(float) * sizeof(float));
  for (const std::string& word : words.set) {
    const std::size_t equals = word.find('=');
    options.set.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  const std::vector<std::string> names = collective_names();
  options.collective =
      Collective(std::find(names.begin(), names.end(), words.collective) - names.begin());
  if (options.wire == 0)
    (void)parse_rate(environment_variable("SLIMPILAB_RATE") + "bit", options.wire);
  if (options.interface.empty()) options.interface = environment_variable("SLIMPILAB_INTERFACE");
}

// A check of a number's range. CLI11's own check would add its range to --help.
template <typename T>
CLI::Validator range(T low, T high) {
  return CLI::Range(low, high).description("");
}

void add_measurement(CLI::App& app, Words& words, Options& options) {
  app.option_defaults()->group("Sizes");
  app.add_option("--min", words.least, "smallest size; K, M and G are KiB, MiB and GiB (4K)")
      ->transform(kSize)
      ->type_name("SIZE");
  app.add_option("--max", words.most, "largest size (64M)")->transform(kSize)->type_name("SIZE");
  app.add_option("--factor", words.factor, "from one size to the next (2)")
      ->check(range(1.01, 1e6))
      ->type_name("NUMBER");
  app.add_option("--size", options.sizes, "these sizes instead")
      ->delimiter(',')
      ->transform(kSize)
      ->type_name("SIZE");
  app.option_defaults()->group("Candidates");
  app.add_option("--algorithm", options.algorithms,
                 "algorithms to compare (the environment's, allreduce, fp16)")
      ->delimiter(',')
      ->check([](const std::string& text) { return check_option("algorithm", text); })
      ->type_name("NAME");
  app.add_option("--bits", options.bits,
                 "bits per value of the quantizers, 1 to 16; of packed also 2.5")
      ->delimiter(',')
      ->check([](const std::string& text) { return check_option("bits", text); })
      ->type_name("N");
  app.add_option("--set", words.set, "another option of slimpi, for every algorithm")
      ->check([](const std::string& word) {
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos || equals == 0)
          return fmt::format("{} is not NAME=VALUE", word);
        return check_option(lower_case(word.substr(0, equals)), word.substr(equals + 1));
      })
      ->type_name("NAME=VALUE");
  app.option_defaults()->group("Calls");
  app.add_option("--iterations", options.iterations, "timed calls (as many as fit into 2 s)")
      ->check(range(1, 1'000'000))
      ->type_name("N");
  app.add_option("--warmup", options.warmup, "calls before the timed ones (2)")
      ->check(range(0, 1'000'000))
      ->type_name("N");
  app.add_option("--collective", words.collective,
                 "allreduce, or reduce_scatter: MPI_Reduce_scatter_block of vectors of this size "
                 "(allreduce)")
      ->check(CLI::IsMember(collective_names()).description(""))
      ->type_name("NAME");
  app.add_flag("--in-place", options.in_place, "use MPI_IN_PLACE");
  app.add_flag_callback(
      "--no-check", [&] { options.check = false; }, "do not compare with the exact sum");
  app.add_flag("--digests", options.digests,
               "instead of times, print digests of sums, as docs/data/digests.csv has");
}

void add_results(CLI::App& app, Options& options) {
  app.option_defaults()->group("Results");
  app.add_option("--wire", options.wire, "rate of a node's link, such as 1gbit (the lab's)")
      ->transform(kRate)
      ->type_name("RATE");
  app.add_option("--interface", options.interface, "device whose bytes are counted (the lab's)")
      ->type_name("NAME");
  app.add_option("--json", options.json, "write the results; - or nothing is standard output")
      ->expected(0, 1)
      ->default_str("-")
      ->option_text("[FILE]");
  app.add_option("--plot", options.plot, "draw a picture: FILE.svg or FILE.png")
      ->check([](const std::string& file) {
        return file.ends_with(".svg") || file.ends_with(".png")
                   ? std::string()
                   : fmt::format("{} does not end in .svg or .png", file);
      })
      ->type_name("FILE");
}

void add_model(CLI::App& app, Options& options) {
  app.option_defaults()->group("Cost model");
  app.add_flag("--predict", options.predict, "print the model's predictions, without MPI");
  app.add_option("--nodes", options.nodes, "of --predict (some from 2 to 100000)")
      ->check(range(1, 100'000))
      ->type_name("N");
  app.add_option("--ranks-per-node", options.ranks_per_node, "of --predict (1)")
      ->check(range(1, 1024))
      ->type_name("N");
  app.add_option("--latency", options.latency, "of --predict: one way, in seconds (24e-6)")
      ->check(range(0.0, 10.0))
      ->type_name("SECONDS");
  app.add_option("--cores", options.cores, "of --predict: of a node (one a rank)")
      ->check(range(1, 4096))
      ->type_name("N");
}

// Returns an option that was given without --predict and has no effect without it; "" if there is
// none.
std::string without_predict(const CLI::App& app) {
  for (const char* const name : {"--nodes", "--ranks-per-node", "--latency", "--cores"})
    if (app.count(name) != 0 && app.count("--predict") == 0) return name;
  return "";
}

}  // namespace

std::string in_kib(std::uint64_t bytes) {
  return fmt::format("{:.10g}", double(bytes) / 1024);
}

Parsed parse(int argc, char** argv) {
  Parsed parsed;
  Options& options = parsed.options;
  Words words;
  CLI::App app("Time of sums of floats in MPI, size by size, through slimpi and through plain MPI.",
               "slimpi-bench");
  app.set_help_flag("-h,--help", "print this and exit");
  app.set_version_flag("--version", kVersion, "print the version and exit");
  add_measurement(app, words, options);
  add_results(app, options);
  add_model(app, options);
  const auto refused = [&](const std::string& text) {
    return Parsed{options, 2,
                  fmt::format("slimpi-bench: {} (slimpi-bench --help lists the options)\n", text)};
  };
  try {
    app.parse(argc, argv);
    finish(words, app.count("--min") + app.count("--max") + app.count("--factor") == 0, options);
    if (const std::string name = without_predict(app); !name.empty())
      parsed = refused(fmt::format("{} is an option of --predict; add that", name));
    else if (options.sizes.empty())
      parsed = refused(fmt::format("--min {} KiB is above --max {} KiB", in_kib(words.least),
                                   in_kib(words.most)));
  } catch (const CLI::CallForHelp&) {
    parsed = {options, 0, tools::help(app)};
  } catch (const CLI::CallForVersion&) {
    parsed = {options, 0, std::string(kVersion) + "\n"};
  } catch (const CLI::ParseError& error) {
    const std::string unknown = tools::unknown_option(app, argc, argv);
    parsed = refused(unknown.empty() ? tools::message(error) : unknown);
  }
  return parsed;
}

}  // namespace slimpi::bench
