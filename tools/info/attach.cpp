// SPDX-License-Identifier: BSD-3-Clause
#include "tools/info/attach.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>

#include "base/files.h"
#include "options/option_types.h"

namespace slimpi::info {

namespace {

// Copies a record that the process of slimpi may be changing. Returns false if the record could not
// be read, or if it changed during every attempt.
bool read_record(int file, std::size_t index, Activity& record) {
  const off_t place = off_t(offsetof(ActivityFile, records) + index * sizeof(Activity));
  for (int attempt = 0; attempt < 1000; ++attempt) {
    Activity again;
    if (pread(file, &record, sizeof record, place) != ssize_t(sizeof record) ||
        pread(file, &again, sizeof again, place) != ssize_t(sizeof again))
      return false;
    if (record.version % 2 == 0 && record.version == again.version) return true;
  }
  return false;
}

bool maps_slimpi(const std::string& process) {
  std::ifstream maps(process + "/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libslimpi.so") != std::string::npos) return true;
  return false;
}

}  // namespace

double seconds(std::int64_t nanoseconds) {
  return double(std::max<std::int64_t>(nanoseconds, 0)) * 1e-9;
}

namespace {

std::string call_text(const Activity& call, std::int64_t now) {
  const std::string what = describe_call(call);
  const auto since = [&](std::int64_t time) { return seconds(now - time); };
  switch (call.state) {
    case Activity::State::waits:
      return fmt::format("waits for {:.1f} s in {}, stage {}{}{}", since(call.waits_since), what,
                         to_string(call.stage), call.report[0] == '\0' ? "" : ": ", call.report);
    case Activity::State::in_mpi:
      return fmt::format("in MPI for {:.1f} s, which does {}", since(call.waits_since), what);
    case Activity::State::works:
      break;
  }
  return fmt::format("in slimpi for {:.1f} s in {}", since(call.since), what);
}

}  // namespace

bool read_activity(int file, Attached& attached) {
  ActivityFile head;
  constexpr std::size_t kHead = offsetof(ActivityFile, records);
  if (pread(file, &head, kHead, 0) != ssize_t(kHead) || head.magic != ActivityFile::kMagic)
    return false;
  attached.started = true;
  attached.pid = head.pid;
  attached.rank = head.rank;
  attached.size = head.size;
  for (std::size_t i = 0; i < ActivityFile::kRecords; ++i) {
    Activity record;
    if (!read_record(file, i, record) || record.in_use == 0) continue;
    record.name[sizeof record.name - 1] = '\0';
    record.tensor[sizeof record.tensor - 1] = '\0';
    record.report[sizeof record.report - 1] = '\0';
    attached.calls.push_back(record);
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  attached.now = std::chrono::nanoseconds(now).count();
  return true;
}

std::string attach(const std::string& pid, Attached& attached) {
  std::uint64_t number = 0;
  if (!parse_integer(pid, number) || number == 0 || number > INT32_MAX)
    return fmt::format("--attach {} cannot be used; give the process id of a rank, a whole number",
                       pid);
  const std::string process = fmt::format("/proc/{}", number);
  if (access(process.c_str(), F_OK) != 0)
    return fmt::format("--attach {}: there is no such process on this machine", number);
  const std::unique_ptr<DIR, int (*)(DIR*)> files(opendir((process + "/fd").c_str()), &closedir);
  if (files == nullptr)
    return fmt::format("--attach {}: {}; run slimpi-info as the user of the process", number,
                       std::strerror(errno));
  const std::string wanted = std::string("/memfd:") + ActivityFile::kName;
  while (const dirent* const entry = readdir(files.get())) {
    const std::string path = process + "/fd/" + entry->d_name;
    char target[256] = "";
    if (readlink(path.c_str(), target, sizeof target - 1) < 0 ||
        !std::string_view(target).starts_with(wanted))
      continue;
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.open() || !read_activity(file.get(), attached)) continue;
    if (attached.pid == std::int32_t(number)) return "";
    return fmt::format("--attach {}: a child of process {}, which is the rank", number,
                       attached.pid);
  }
  attached.pid = std::int32_t(number);
  if (maps_slimpi(process)) return "";
  return fmt::format("--attach {}: this process runs without slimpi", number);
}

std::string attached_text(const Attached& attached) {
  std::string text = fmt::format("process {}", attached.pid);
  if (attached.rank >= 0) text += fmt::format(", rank {} of {}", attached.rank, attached.size);
  if (!attached.started) return text + ": in the program; it has called nothing of slimpi yet\n";
  if (attached.calls.empty())
    return text + ": in the program, or in a call that slimpi leaves to MPI\n";
  for (const Activity& call : attached.calls)
    text += (attached.calls.size() == 1 ? ": " : "\n  ") + call_text(call, attached.now);
  return text + "\n";
}

}  // namespace slimpi::info
