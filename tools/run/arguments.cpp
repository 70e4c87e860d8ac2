// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/arguments.h"

#include <algorithm>
#include <string_view>

#include "options/config.h"

namespace slimpi::tools {

namespace {

std::string with(char wanted, char other, std::string text) {
  std::replace(text.begin(), text.end(), other, wanted);
  return text;
}

const OptionRow* find_row(const std::string& name) {
  for (const OptionRow& row : option_rows())
    if (name == row.name) return &row;
  return nullptr;
}

std::string unknown(const std::string& word, const std::string& name) {
  // A usual mistake: an option of the launcher stands behind slimpi-run.
  for (const char* launcher : {"-n", "-np", "-N", "-f", "-ppn", "-hosts", "-host", "-genv"})
    if (word == launcher)
      return word + " belongs to the launcher: mpiexec " + word + " ... slimpi-run PROGRAM";
  const std::string near = nearest_option(name);
  return word + " is not an option of slimpi" +
         (near.empty() ? " (slimpi-run --help lists them)"
                       : "; did you mean " + dashed(near) + "?");
}

// If an on/off option is given without its value, the program's name was taken for the value.
std::string value_missing(const OptionRow& row, const std::string& value) {
  const bool is_switch = row.accepted.starts_with("1/0");
  return is_switch && value[0] != '-' ? "; to switch it on: " + dashed(row.name) + " 1 " + value
                                      : "";
}

const std::string kTorchSums = "gradients, all";

constexpr std::pair<std::string_view, bool Arguments::*> kSwitches[] = {
    {"help", &Arguments::help},         {"version", &Arguments::version},
    {"dry_run", &Arguments::dry_run},   {"compare", &Arguments::compare},
    {"stand_in", &Arguments::stand_in}, {"torch", &Arguments::torch}};

}  // namespace

std::string dashed(const std::string& name) {
  return "--" + with('-', '_', name);
}

Arguments parse_arguments(int argc, const char* const* argv) {
  Arguments result;
  Config probe;
  int at = 1;
  for (; at < argc; ++at) {
    const std::string_view word = argv[at];
    if (word == "--") {
      ++at;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    const std::size_t equals = word.find('=');
    const std::string given(word.substr(0, equals));
    const std::string name = given == "-h"             ? "help"
                             : given.starts_with("--") ? with('_', '-', given.substr(2))
                                                       : "";
    const auto* const found = std::find_if(std::begin(kSwitches), std::end(kSwitches),
                                           [&](const auto& one) { return one.first == name; });
    if (found != std::end(kSwitches)) {
      if (equals != word.npos) return result.error = given + " takes no value", result;
      result.*found->second = true;
      continue;
    }
    const bool of_torch = name == "torch_sums";
    const OptionRow* row = find_row(name);
    if (row == nullptr && !of_torch) return result.error = unknown(given, name), result;
    if (name == "estimate" && equals == word.npos) {  // the only option whose value may be left out
      result.variables[row->variable] = "stderr";
      continue;
    }
    if (equals == word.npos && at + 1 == argc)
      return result.error =
                 given + " needs a value; accepted: " + (of_torch ? kTorchSums : row->accepted),
             result;
    const std::string value(equals == word.npos ? argv[++at] : word.substr(equals + 1));
    if (of_torch) {
      if (value != "gradients" && value != "all")
        return result.error = given + "=" + value + " cannot be used; accepted: " + kTorchSums,
               result;
      result.torch_sums = value;
      continue;
    }
    if (const std::string error = probe.set(name, value, Source::file); !error.empty())
      return result.error = given + error.substr(name.size()) + value_missing(*row, value), result;
    result.variables[row->variable] = value;
  }
  result.program = at;
  if (!result.torch_sums.empty() && !result.torch)
    result.error = "--torch-sums needs --torch, whose sums it is for";
  if (result.compare && result.variables.contains("SLIMPI_ESTIMATE"))
    result.error = "--compare and --estimate cannot be used together; use one after the other";
  return result;
}

}  // namespace slimpi::tools
