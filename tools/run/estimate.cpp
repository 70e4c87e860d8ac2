// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/estimate.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "observe/report.h"

namespace slimpi::tools {

namespace {

void write_estimate(const std::string& json, const std::string& target, const Cluster& cluster) {
  Estimate counted;
  std::string problem = read_estimate(json, &counted);
  if (problem.empty()) {
    const Prediction prediction = predict(std::move(counted), cluster);
    const std::string text = is_text(target) ? to_text(prediction) : to_json(json, prediction);
    if (write_to(target, "--estimate", text) != Status::ok) problem = failure_text();
  }
  if (!problem.empty()) std::fprintf(stderr, "slimpi-run: %s\n", problem.c_str());
}

[[noreturn]] void read_and_predict(int pipe, const std::string& target, const Cluster& cluster) {
  std::string json;
  char part[65536];
  for (ssize_t got = 1; got != 0;) {
    got = read(pipe, part, sizeof part);
    if (got < 0 && errno != EINTR) break;
    if (got <= 0) continue;
    json.append(part, std::size_t(got));
    if (json.back() != '\n' || !is_complete(json)) continue;
    write_estimate(json, target, cluster);
    json.clear();
  }
  _exit(0);
}

}  // namespace

void start_estimate(const std::string& target, const Cluster& cluster) {
  int ends[2];
  if (pipe(ends) != 0) return;
  const pid_t child = fork();
  if (child == 0) {
    if (fork() != 0) _exit(0);
    // Launchers watch other files of a rank, such as a socket, for its end.
    dup2(ends[0], STDIN_FILENO);
    close_range(STDERR_FILENO + 1, ~0u, 0);
    read_and_predict(STDIN_FILENO, target, cluster);
  }
  close(ends[0]);
  if (child < 0) {
    close(ends[1]);
    return;
  }
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  setenv("SLIMPIRUN_ESTIMATE", std::to_string(ends[1]).c_str(), 1);
}

}  // namespace slimpi::tools
