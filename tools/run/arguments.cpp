// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/arguments.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "options/config.h"
#include "tools/common/text.h"

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

// Returns an option's name as the command line spells it: "--min-size" for "min_size".
std::string dashed(const std::string& name) {
  return "--" + with('-', '_', name);
}

std::string unknown(const std::string& word, const std::string& name) {
  // A common mistake is an option of the launcher that stands behind slimpi-run.
  for (const char* launcher : {"-n", "-np", "-N", "-f", "-ppn", "-hosts", "-host", "-genv"})
    if (word == launcher)
      return word + " belongs to the launcher: mpiexec " + word + " ... slimpi-run PROGRAM";
  const std::string near = nearest_option(name);
  return word + " is not an option of slimpi" +
         (near.empty() ? " (slimpi-run --help lists them)"
                       : "; did you mean " + dashed(near) + "?");
}

// Returns an addition to the error text about an option's wrong value: if it is an on/off option
// that was given without a value, so that the name of the program was taken for one, it says how to
// switch the option on. Returns "" otherwise.
std::string value_missing(const OptionRow& row, const std::string& value) {
  const bool is_switch = row.accepted.starts_with("1/0");
  return is_switch && value[0] != '-' ? "; to switch it on: " + dashed(row.name) + " 1 " + value
                                      : "";
}

constexpr std::pair<std::string_view, bool Arguments::*> kSwitches[] = {
    {"help", &Arguments::help},         {"version", &Arguments::version},
    {"dry_run", &Arguments::dry_run},   {"compare", &Arguments::compare},
    {"stand_in", &Arguments::stand_in}, {"torch", &Arguments::torch}};

// An option of --torch. Its values are those of slimpi's option `like`; if that is "", those that
// `accepted` lists.
struct TorchOption {
  std::string_view name, like;
  std::string accepted, what;
  std::string Arguments::*value;
};
const TorchOption kTorchOptions[] = {
    {"torch_sums", "", "gradients, all", "sums it is for", &Arguments::torch_sums},
    {"torch_weights", "bits", "", "weights it is for", &Arguments::torch_weights}};

// The headings of --help. Each has the name of the option before which it stands, the first of its
// group.
constexpr std::pair<std::string_view, const char*> kHeadings[] = {
    {"algorithm", "Compression"},
    {"min_size", "Which calls"},
    {"hierarchy", "Nodes and peers"},
    {"powersgd_rank", "Low rank, and state of buffers"},
    {"rules", "Rules, progress and transport"},
    {"log", "Output"},
    {"config", "Option sources"},
};

// Returns the word that stands for an option's value in --help, such as "N", "FILE" or "on|off",
// derived from the accepted values.
std::string value_name(const std::string& accepted) {
  constexpr std::size_t kLongest = 24;
  const auto has = [&](std::string_view text) { return accepted.find(text) != accepted.npos; };
  if (accepted.starts_with("1/0")) return "on|off";
  if (has("K, M, G")) return "SIZE";
  if (has("COUNT=")) return "SHAPES";
  if (has("a file")) return "FILE";
  if (has("; ")) return "LIST";
  if (has("a number")) return "NUMBER";
  if (accepted[0] >= '0' && accepted[0] <= '9') return "N";
  std::string names = accepted;
  for (std::size_t at = 0; (at = names.find(", ", at)) != names.npos;) names.replace(at, 2, "|");
  return names.size() <= kLongest ? names : "NAME";
}

std::string described(const OptionRow& row) {
  constexpr std::size_t kColumn = 30;
  const bool optional = std::string_view(row.name) == "estimate";
  std::string name =
      "  " + dashed(row.name) + (optional ? "[=FILE]" : " " + value_name(row.accepted));
  const std::string indent(kColumn, ' ');
  std::string text;
  if (name.size() + 2 > kColumn) {
    text = name + "\n";
    name = indent;
  }
  name.resize(kColumn, ' ');
  const std::string standard = row.standard[0] == '\0' ? "unset" : row.standard;
  text += wrapped(name, row.meaning);
  return text + wrapped(indent, "Accepted: " + row.accepted + ". Default: " + standard + ".");
}

}  // namespace

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
    const auto* const of_torch =
        std::find_if(std::begin(kTorchOptions), std::end(kTorchOptions),
                     [&](const TorchOption& one) { return one.name == name; });
    const bool is_of_torch = of_torch != std::end(kTorchOptions);
    const OptionRow* row = find_row(is_of_torch ? std::string(of_torch->like) : name);
    if (row == nullptr && !is_of_torch) return result.error = unknown(given, name), result;
    if (name == "estimate" && equals == word.npos) {  // the only option whose value may be left out
      result.variables[row->variable] = "stderr";
      continue;
    }
    if (equals == word.npos && at + 1 == argc)
      return result.error =
                 given + " needs a value; accepted: " +
                 (row == nullptr ? of_torch->accepted : std::string(row->accepted)),
             result;
    const std::string value(equals == word.npos ? argv[++at] : word.substr(equals + 1));
    if (is_of_torch) result.*of_torch->value = value;
    if (row == nullptr) {
      if ((", " + of_torch->accepted + ",").find(", " + value + ",") == std::string::npos)
        return result.error =
                   given + "=" + value + " cannot be used; accepted: " + of_torch->accepted,
               result;
      continue;
    }
    Config tried;
    Config& config = is_of_torch ? tried : probe;
    if (const std::string error = config.set(row->name, value, Source::file); !error.empty())
      return result.error = given + error.substr(std::strlen(row->name)) +
                            value_missing(*row, value),
             result;
    if (is_of_torch) continue;
    result.variables[row->variable] = value;
  }
  result.program = at;
  for (const TorchOption& one : kTorchOptions)
    if (!(result.*one.value).empty() && !result.torch)
      result.error = dashed(std::string(one.name)) + " needs --torch, whose " + one.what;
  if (result.compare && result.variables.contains("SLIMPI_ESTIMATE"))
    result.error = "--compare and --estimate cannot be used together; use one after the other";
  return result;
}

std::string help_text() {
  std::string text =
      "Usage: slimpi-run [OPTION VALUE ...] [--] PROGRAM [ARGUMENT ...]\n\n"
      "Runs PROGRAM with libslimpi.so preloaded. Put it after the launcher:\n\n"
      "  mpiexec -n 8 slimpi-run --bits 4 ./train\n\n"
      "  --compare                   compare each result with MPI's own sum; errors by size at the "
      "end\n"
      "  --stand-in                  for programs that load MPI by dlopen, such as Julia's\n"
      "  --torch                     PyTorch programs: sums of DistributedDataParallel go through "
      "MPI\n"
      "  --torch-sums gradients|all  of --torch: what is compressed: gradients (the default), or "
      "all\n"
      "                              float sums of SLIMPI_MIN_SIZE and more\n"
      "  --torch-weights N           of --torch: bits of the weights that FSDP and ZeRO gather; "
      "without\n"
      "                              it they are exact\n"
      "  --dry-run                   print the variables and the command instead\n"
      "  --version                   print slimpi's version and exit\n"
      "  -h, --help                  print this and exit\n\n"
      "Each option below sets the environment variable of its name, such as SLIMPI_BITS for "
      "--bits.\nSee slimpi(7) and slimpi-options(7).\n";
  for (const OptionRow& row : option_rows()) {
    for (const auto& [first, heading] : kHeadings)
      if (row.name == first) text += std::string("\n") + heading + ":\n";
    text += described(row);
  }
  return text;
}

}  // namespace slimpi::tools
