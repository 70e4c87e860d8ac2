// SPDX-License-Identifier: BSD-3-Clause
// The text of slimpi-run --help: the options in groups, each option with a name for its value.
#include <string_view>
#include <utility>

#include "options/config.h"
#include "tools/common/text.h"
#include "tools/run/arguments.h"

namespace slimpi::tools {

namespace {

// Pairs of an option that is the first of its group in the table, and the heading of the group.
constexpr std::pair<std::string_view, const char*> kHeadings[] = {
    {"algorithm", "Compression"},
    {"min_size", "Which calls"},
    {"hierarchy", "Nodes and peers"},
    {"powersgd_rank", "Low rank, and state of buffers"},
    {"rules", "Rules, progress and transport"},
    {"log", "Output"},
    {"config", "Option sources"},
};

// Returns a name for an option's value, such as "N", "FILE", "on|off", from the accepted values.
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
