// SPDX-License-Identifier: BSD-3-Clause
#include "observe/report.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/files.h"

namespace slimpi {

namespace {

bool write_file(const std::string& path, const std::string& text) {
  if (!within_file_size_limit(text.size())) {
    errno = EFBIG;
    return false;
  }
  const int file = open_result(path.c_str());
  if (file < 0) return false;
  const bool written = write_all(file, text);
  const int error = errno;
  if (close(file) != 0) return false;
  errno = error;
  return written;
}

}  // namespace

std::string bytes_text(double value) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 2, units[unit]);
}

std::string number_of(std::uint64_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

Share share_of(const Report& report, const Counts& counts, const char* codec) {
  const auto found = std::find(report.codecs.begin(), report.codecs.end(), codec);
  if (found == report.codecs.end()) return {};
  return counts.codecs[std::size_t(found - report.codecs.begin())];
}

CallsBetweenNodes calls_between_nodes(const Report& report) {
  const std::uint64_t float32 = share_of(report, report.own, "float32").calls,
                      float64 = share_of(report, report.own, "float64").calls;
  return {report.own.compressed - float32 - float64, float32, float64};
}

std::optional<BypassReason> dominant_reason(const Counts& counts) {
  auto calls = counts.bypassed;
  calls[std::size_t(BypassReason::single_node)] += counts.exact_in_node;
  const auto most = std::max_element(calls.begin(), calls.end());
  if (*most == 0) return std::nullopt;
  return BypassReason(most - calls.begin());
}

Totals totals_of(const Report& report) {
  const double elsewhere = double(report.nodes - 1) / report.ranks *
                           double(report.job.bytes_bypassed_elsewhere);  // an upper bound
  const double left = double(report.job.bytes_bypassed) + elsewhere;
  const auto plain = double(report.job.bytes_plain);
  Totals totals{plain + left, double(report.job.bytes_sent) + left, 0};
  const auto in = double(report.job.bytes_in);
  const auto uncompressed = double(share_of(report, report.job, "float32").bytes_in +
                                   share_of(report, report.job, "float64").bytes_in);
  const double coded = in > 0 ? 1 - uncompressed / in : 0;
  if (totals.plain > 0) totals.compressed_share = plain * coded / totals.plain;
  return totals;
}

std::string advice_of(BypassReason reason, const std::string& command) {
  std::string text = row_of(reason).advice;
  if (reason != BypassReason::datatype) return text;
  const std::string program = command.substr(0, command.find(' '));
  const bool python = program.substr(program.rfind('/') + 1).starts_with("python");
  return text + (python ? ": give --types float,double where they are float64, as NumPy arrays are "
                          "unless made otherwise, or make the buffers float32"
                        : ", so MPI makes them as without slimpi; SLIMPI_TYPES lists other types");
}

std::uint64_t states_never_reused(const Counts& counts) {
  return counts.state_first_times - std::min(counts.state_first_times, counts.state_second_times);
}

std::string algorithms_of(const Report& report) {
  std::string names;
  for (std::size_t i = 0; i < kAlgorithms; ++i) {
    if (report.own.algorithms[i].calls == 0) continue;
    const std::string name = to_string(AlgorithmId(i));
    // If SLIMPI_ALGORITHM has an argument after the name, such as a path, the list has both.
    const bool chosen = report.algorithm.starts_with(name + ":");
    names += (names.empty() ? "" : ", ") + (chosen ? report.algorithm : name);
  }
  return names.empty() ? report.algorithm : names;
}

bool is_stream(const std::string& target) {
  return target == "stderr" || target == "stdout" || target == "-";
}

bool is_text(const std::string& target) {
  return is_stream(target) || target.ends_with(".txt") || target.ends_with(".log");
}

std::string why_not_writable(const std::string& path) {
  if (access(path.c_str(), W_OK) == 0) {
    struct stat file {};
    const bool directory = stat(path.c_str(), &file) == 0 && S_ISDIR(file.st_mode);
    return directory ? std::strerror(EISDIR) : "";
  }
  if (errno != ENOENT) return std::strerror(errno);
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == path.npos ? "." : path.substr(0, slash + 1);
  return access(directory.c_str(), W_OK) == 0 ? "" : std::strerror(errno);
}

Status write_to(const std::string& target, const char* variable, const std::string& text) {
  const bool written = is_stream(target)
                           ? write_all(target == "stderr" ? STDERR_FILENO : STDOUT_FILENO, text)
                           : write_file(target, text);
  if (written) return Status::ok;
  return fail(Status::unsupported,
              std::string(variable) + "=" + target + " cannot be written: " + why_no_result(errno));
}

// The functions that write the report as text.

namespace {

bool is_number(const std::string& text) {
  return text[0] >= '0' && text[0] <= '9';
}

void append(std::string& list, const std::string& item) {
  list += (list.empty() ? "" : ", ") + item;
}

std::string calls_line(const Report& report) {
  const Counts& own = report.own;
  const CallsBetweenNodes between = calls_between_nodes(report);
  std::string done, reasons;
  if (between.compressed != 0) append(done, fmt::format("{} compressed", between.compressed));
  if (between.float32 != 0) append(done, fmt::format("{} in float32", between.float32));
  if (between.float64 != 0) append(done, fmt::format("{} in float64", between.float64));
  if (own.exact_in_node != 0) append(done, fmt::format("{} exact in node", own.exact_in_node));
  for (std::size_t i = 0; i < kBypassReasons; ++i)
    if (own.bypassed[i] != 0)
      append(reasons, fmt::format("{} {}", own.bypassed[i], to_string(BypassReason(i))));
  return fmt::format("  calls    {} allreduce{}{}: {}{}\n", own.calls,
                     own.reduce_scatters == 0 ? "" : " and reduce_scatter",
                     own.allgathers == 0 ? "" : " and allgather",
                     done.empty() ? "0 compressed" : done,
                     reasons.empty() ? "" : "; left to MPI: " + reasons);
}

// Returns the line of the algorithms and codecs that ran, which may differ from SLIMPI_ALGORITHM
// and SLIMPI_BITS, because rules or SLIMPI_MAX_ERROR may have chosen others.
std::string used_line(const Report& report) {
  if (report.own.compressed == 0) return "";
  std::string algorithms, codecs;
  for (std::size_t i = 0; i < kAlgorithms; ++i)
    if (const Share& share = report.own.algorithms[i]; share.calls != 0)
      append(algorithms, fmt::format("{} {}", share.calls, to_string(AlgorithmId(i))));
  for (std::size_t i = 0; i < report.codecs.size(); ++i) {
    const std::string& name = report.codecs[i];
    const char* const unit = !is_number(name) ? "" : name == "1" ? " bit" : " bits";
    if (const Share& share = report.own.codecs[i]; share.calls != 0)
      append(codecs, fmt::format("{} in {}{}", share.calls, name, unit));
  }
  for (std::size_t i = 1; i < kElementTypes; ++i)
    if (const Share& share = report.own.types[i]; share.calls != 0)
      codecs += fmt::format("; {} of type {}", share.calls, kElementRows[i].name);
  for (std::size_t i = 1; i < kCollectives; ++i)
    if (const Share& share = report.own.collectives[i]; share.calls != 0)
      codecs += fmt::format("; {} in {}", share.calls, kCollectiveRows[i].name);
  return fmt::format("  used     {}; {}{}\n", algorithms, codecs,
                     report.own.repeated == 0
                         ? ""
                         : "; " + number_of(report.own.repeated, "exchange") + " repeated");
}

// Returns a line if sums in float32 reduce the compression ratio.
std::string float32_line(const Report& report, const Totals& totals) {
  const CallsBetweenNodes between = calls_between_nodes(report);
  const Share float32 = share_of(report, report.job, "float32");
  if (between.compressed == 0 || between.float32 == 0 || report.job.bytes_in == 0) return "";
  const double rest = 1 - double(float32.bytes_in) / double(report.job.bytes_in);
  const double sent = double(report.job.bytes_sent - float32.bytes_sent);
  if (sent <= 0 || totals.done <= 0) return "";
  return fmt::format(
      "           without {} in float32, such as first steps of state and short buckets, the "
      "ratio is {:.2f}\n",
      number_of(between.float32, "sum"), rest * double(report.job.bytes_plain) / sent);
}

std::string bytes_line(const Report& report) {
  const Totals totals = totals_of(report);
  if (totals.plain == 0) return "  bytes    none between nodes\n";
  std::string text = fmt::format("  bytes    {} between nodes, plain {}", bytes_text(totals.done),
                                 bytes_text(totals.plain));
  if (totals.done > 0)
    text += fmt::format(": compression ratio {:.2f}", totals.plain / totals.done);
  text += fmt::format(
      "; {:.3g}% compressed{}\n", 100 * totals.compressed_share,
      report.ranks_counted < report.ranks ? "; of rank 0 alone: no float sum had all ranks" : "");
  return text + float32_line(report, totals);
}

// Returns a line if slimpi sent more than a bandwidth-optimal sum, with 2 % allowed for headers.
std::string more_bytes_line(const Report& report) {
  constexpr double kHeaders = 1.02;
  if (double(report.job.bytes_sent) <= kHeaders * double(report.job.bytes_plain) ||
      report.job.bytes_plain == 0)
    return "";
  return "  warning  slimpi sent more than a bandwidth-optimal sum of floats: --algorithm off, or "
         "bytegrad in few bits, sends less\n";
}

// Returns the line of advice if most bytes of sums were not compressed. The bytes of nonblocking
// sums that MPI made may be unknown, so these decide by their number if they outnumber the
// compressed calls.
std::string advice_line(const Report& report) {
  Counts counts = report.own;
  if (counts.compressed != 0) {
    const Totals totals = totals_of(report);
    const std::uint64_t nonblocking = counts.bypassed[std::size_t(BypassReason::nonblocking)];
    if (nonblocking > counts.compressed)
      counts.bypassed = {};
    else if (totals.plain == 0 || totals.compressed_share >= 0.5)
      return "";
    if (nonblocking > counts.compressed)
      counts.bypassed[std::size_t(BypassReason::nonblocking)] = nonblocking;
    // Calls with these reasons are often many but have few bytes, so they do not decide.
    for (const BypassReason few :
         {BypassReason::small, BypassReason::datatype, BypassReason::op, BypassReason::comm})
      counts.bypassed[std::size_t(few)] = 0;
  }
  const std::optional<BypassReason> reason = dominant_reason(counts);
  if (!reason && counts.compressed != 0) return "";
  return fmt::format("  advice   {}\n", reason ? advice_of(*reason, report.command)
                                               : "the program called no MPI_Allreduce that slimpi "
                                                 "sees; PMPI_Allreduce is not seen");
}

std::string rules_lines(const Report& report) {
  std::string text;
  for (const std::string& row : report.unmatched_rules)
    text += fmt::format("  rules    no call of rank 0 had the row {}\n", row);
  return text;
}

// Returns the N of SLIMPI_VERIFY=N if the user has set it, otherwise 0.
std::uint64_t verify_of(const Report& report) {
  std::uint64_t every = 0;
  for (const auto& [name, value] : report.options)
    if (name == "verify") parse_integer(value, every);
  return every;
}

std::string seconds_line(const Counts& own) {
  std::string text = fmt::format(
      "  seconds  {:.3f} in slimpi, encode {:.3f}, exchange {:.3f}, decode {:.3f}, intra {:.3f}",
      in_seconds(own.nanoseconds), in_seconds(own.encode_nanoseconds),
      in_seconds(own.exchange_nanoseconds), in_seconds(own.decode_nanoseconds),
      in_seconds(own.intra_nanoseconds));
  if (own.verify_nanoseconds != 0)
    text += fmt::format(", verify {:.3f}", in_seconds(own.verify_nanoseconds));
  return text + "\n";
}

// Returns lines about the use of tensor states (data kept from call to call), which do not help if
// most calls sum a new buffer.
std::string state_lines(const Report& report) {
  const Counts& own = report.own;
  if (own.state_calls == 0) return "";
  std::string text =
      fmt::format("  state    {}, {} with a buffer met for the first time; {} dropped",
                  number_of(own.state_calls, "call"), own.state_first_times, own.state_dropped);
  text += fmt::format(", {} never used again\n", states_never_reused(own));
  if (2 * own.state_first_times > own.state_calls && own.state_calls > 8)
    text +=
        "           new buffers lose their state: set SLIMPI_CALLS_PER_STEP to the sums of a "
        "step, those below SLIMPI_MIN_SIZE left out\n";
  return text;
}

// Returns a line for each size class where SLIMPI_ALGORITHM=auto tried candidates.
std::string auto_lines(const Report& report) {
  std::string text;
  for (const AutoChoice& choice : report.choices) {
    std::string tried;
    for (const AutoChoice::Candidate& each : choice.candidates)
      append(tried, fmt::format("{} {:.3f} ms in {}", each.name, double(each.least) * 1e-6,
                                number_of(each.calls, "call")));
    text += fmt::format("  auto     from {}: {}; least times: {}\n",
                        bytes_text(double(choice.from_bytes)),
                        choice.chosen.empty() ? "still on trial" : choice.chosen, tried);
  }
  return text;
}

std::string error_text(const VerifiedErrors& errors) {
  return fmt::format("mean {:.2e}, max {:.2e} in {}\n", errors.mean(errors.relative_l2),
                     errors.most_relative_l2, number_of(errors.checked, "call"));
}

// Returns a line for all calls and, if their sizes differ, a line for each size class.
std::string error_lines(const Report& report) {
  VerifiedErrors total;
  for (const VerifiedErrors& errors : report.errors) total.add(errors);
  const std::string beyond =
      report.job.beyond_bound == 0
          ? ""
          : fmt::format("{} beyond what the codec may lose: a defect of slimpi, or of a hook\n",
                        number_of(report.job.beyond_bound, "element"));
  if (total.checked == 0 && beyond != "") return "  error    " + beyond;
  if (const std::uint64_t every = verify_of(report); total.checked == 0)
    return every <= report.own.compressed || report.own.compressed == 0
               ? ""
               : fmt::format(
                     "  error    none was checked: SLIMPI_VERIFY={} checks every {}th of {} on a "
                     "communicator; give --verify 1\n",
                     every, every, number_of(report.own.compressed, "compressed call"));
  std::string text = "  error    relative L2 " + error_text(total);
  text += fmt::format(
      "           vNMSE {:.2e}; of values that are not 0, {:.2g}% became 0, {:.2g}% changed sign\n",
      total.mean(total.vnmse), 100 * total.share(total.zeros),
      100 * total.share(total.wrong_signs));
  for (std::size_t i = 0; i < kSizeClasses; ++i)
    if (const VerifiedErrors& errors = report.errors[i];
        errors.checked != 0 && errors.checked != total.checked)
      text +=
          fmt::format("           from {}: {}", bytes_text(double(1ull << i)), error_text(errors));
  if (beyond != "") text += "           " + beyond;
  if (report.own.state_bytes != 0)
    text += "           (with error feedback it includes what later calls add)\n";
  return text;
}

}  // namespace

std::string to_text(const Report& report) {
  std::string text =
      fmt::format("slimpi {}: {} on {}, {} ({})\n", report.version, algorithms_of(report),
                  number_of(std::uint64_t(report.ranks), "rank"),
                  number_of(std::uint64_t(report.nodes), "node"), report.mpi);
  text += calls_line(report) + rules_lines(report) + advice_line(report) + used_line(report) +
          bytes_line(report);
  text += more_bytes_line(report);
  text += seconds_line(report.own) + state_lines(report) + auto_lines(report);
  text += error_lines(report);
  if (report.job.overflowed != 0)
    text += fmt::format("  overflow {} of sums infinite in 16 bits\n",
                        number_of(report.job.overflowed, "value"));
  text += fmt::format("  memory   {} for messages, {} for state, {} in {}\n",
                      bytes_text(double(report.own.most_scratch)),
                      bytes_text(double(report.own.state_bytes)),
                      bytes_text(double(report.own.most_segment_bytes)),
                      number_of(report.own.most_segments, "shared segment"));
  return text;
}

}  // namespace slimpi
