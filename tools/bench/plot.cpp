// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>

#include "observe/report.h"
#include "tools/bench/report.h"

namespace slimpi::bench {
namespace {

// Returns the labels of the candidates, which are the same at each size.
std::vector<std::string> labels_of(const std::vector<Row>& rows) {
  std::vector<std::string> labels;
  for (const Row& row : rows) {
    if (row.bytes != rows.front().bytes) break;
    labels.push_back(row.label());
  }
  return labels;
}

// Returns the gnuplot data block of one label. A line has a size, milliseconds, bus bandwidth, and
// the limits that the link sets for these two.
std::string data_block(const std::vector<Row>& rows, const std::string& label, std::size_t index) {
  std::string text = fmt::format("$d{} << END\n", index);
  for (const Row& row : rows) {
    if (row.label() != label) continue;
    text += fmt::format("{} {} {}", row.bytes, row.median * 1e3, row.busbw / 1e9);
    if (row.limit)
      text += fmt::format(" {} {}", *row.limit * 1e3,
                          double(row.bytes) / *row.limit * row.busbw / row.algbw / 1e9);
    text += "\n";
  }
  return text + "END\n";
}

// Returns gnuplot commands for one panel of the picture. Each label has a linetype, that is a
// colour and, for pictures without colours, a marker. The limit of the link has the colour of its
// label.
std::string panel(const std::vector<Row>& rows, const std::vector<std::string>& labels,
                  const char* axis, int column) {
  std::string text = fmt::format("set ylabel '{}'\nplot ", axis);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    text += fmt::format("{}$d{} using 1:{} with linespoints lt {} lw 2 title '{}'",
                        i == 0 ? "" : ", ", i, column, i + 1, labels[i]);
    if (rows[i].limit)
      text += fmt::format(", $d{} using 1:{} with lines lt {} dt 3 lw 1.5 title '{}'", i,
                          column + 2, i + 1, i == 0 ? "limit of the link" : "");
  }
  return text + "\n";
}

// Returns the marks of the axis of sizes: at most eight sizes, in KiB.
std::string tics(const std::vector<std::uint64_t>& sizes) {
  std::string text;
  const std::size_t step = (sizes.size() + 7) / 8;
  for (std::size_t i = 0; i < sizes.size(); i += step)
    text += fmt::format("{}'{}' {}", i == 0 ? "" : ", ", in_kib(sizes[i]), sizes[i]);
  return text;
}

// Returns the gnuplot script, with its data, that draws the picture into the file options.plot.
std::string plot_script(const Options& options, const World& world, const std::vector<Row>& rows) {
  const bool svg = options.plot.ends_with(".svg");
  const std::vector<std::string> labels = labels_of(rows);
  std::string file = options.plot;
  for (std::size_t at = 0; (at = file.find('\'', at)) != std::string::npos; at += 2)
    file.replace(at, 1, 2, '\'');
  std::string text =
      fmt::format("set terminal {}\nset output '{}'\n",
                  svg ? "svg size 1000,420 dynamic background rgb 'white' font 'sans,12'"
                      : "pngcairo size 1000,420 font 'sans,10'",
                  file);
  for (std::size_t i = 0; i < labels.size(); ++i) text += data_block(rows, labels[i], i);
  text += fmt::format(
      "set multiplot layout 1,2 title '{} on {}, {}{}' noenhanced\n"
      "set logscale xy\nset grid xtics ytics lt 1 lw 1 lc rgb '#e0e0e0'\nset bmargin at screen "
      "0.3\n"
      "set key noenhanced at screen 0.5, 0.02 center bottom horizontal\n"
      "set xlabel 'size of the buffer (KiB, logarithmic)'\nset xtics ({})\n",
      number_of(std::uint64_t(world.ranks), "rank"), number_of(std::uint64_t(world.nodes), "node"),
      world.mpi,
      options.wire > 0 ? fmt::format(", links of {:.6g} Mbit/s", options.wire / 1e6) : "",
      tics(options.sizes));
  text += fmt::format("set xrange [{}:{}]\n", double(rows.front().bytes) / 1.5,
                      double(rows.back().bytes) * 1.5);
  text += panel(rows, labels, "time (ms, logarithmic)", 2);
  text += "unset key\n";  // the first panel has the key for both panels
  text += panel(rows, labels, "bus bandwidth (GB/s, logarithmic)", 3);
  return text + "unset multiplot\n";
}

}  // namespace

bool plot(const Options& options, const World& world, const std::vector<Row>& rows) {
  const std::string script = plot_script(options, world, rows);
  const std::string kept = options.plot + ".gnuplot";
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) {
    if (write_file(kept, script))
      fmt::print(stderr, "slimpi-bench: gnuplot was not found; `gnuplot {}` draws the picture\n",
                 kept);
    return false;
  }
  std::FILE* pipe = popen("gnuplot >/dev/null", "w");
  const bool written = pipe && std::fwrite(script.data(), 1, script.size(), pipe) == script.size();
  if (!pipe || pclose(pipe) != 0 || !written) {
    fmt::print(stderr, "slimpi-bench: gnuplot could not draw {}\n", options.plot);
    return false;
  }
  return true;
}

}  // namespace slimpi::bench
