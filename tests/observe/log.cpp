// SPDX-License-Identifier: BSD-3-Clause
// The form of a line on stderr, and the lines that each level writes.
#include "observe/log.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/process.h"
#include "base/status.h"
#include "tests/helper/base/unit_test.h"

using namespace slimpi;

namespace {

int g_pipe[2], g_stderr;

// Between these two, stderr is a pipe.
int catch_stderr(void**) {
  g_stderr = dup(STDERR_FILENO);
  return pipe2(g_pipe, O_NONBLOCK) != 0 || dup2(g_pipe[1], STDERR_FILENO) < 0;
}

int restore_stderr(void**) {
  dup2(g_stderr, STDERR_FILENO);
  for (const int descriptor : {g_pipe[0], g_pipe[1], g_stderr}) close(descriptor);
  set_log(LogLevel::warn, -1);
  return 0;
}

const char* written() {
  static char text[4096];
  const ssize_t size = read(g_pipe[0], text, sizeof text - 1);
  text[size < 0 ? 0 : size] = '\0';
  return text;
}

UNIT_TEST(lines, catch_stderr, restore_stderr) {
  set_log(LogLevel::debug, -1);
  log_error("one");
  assert_string_equal(written(), "slimpi error: one\n");
  set_log_rank(3);
  log_warn("two");
  assert_string_equal(written(), "slimpi[3] warning: two\n");
  log_info("three");
  assert_string_equal(written(), "slimpi[3]: three\n");
  log_debug("four");
  assert_string_equal(written(), "slimpi[3] debug: four\n");
}

UNIT_TEST(levels, catch_stderr, restore_stderr) {
  const LogLevel all[] = {LogLevel::error, LogLevel::warn, LogLevel::info, LogLevel::debug};
  for (const LogLevel level : all) {
    set_log(level, 0);
    for (const LogLevel of : all) {
      log(of, "x");
      assert_int_equal(written()[0] != '\0', of <= level);
      assert_int_equal(log_enabled(of), of <= level);
    }
  }
}

UNIT_TEST(once, catch_stderr, restore_stderr) {
  set_log(LogLevel::error, 0);
  log_once(LogLevel::warn, "later");  // not said, so not counted as said
  set_log(LogLevel::warn, 0);
  log_once(LogLevel::warn, "later");
  assert_string_equal(written(), "slimpi[0] warning: later\n");
  log_once(LogLevel::warn, "later");
  assert_string_equal(written(), "");
  log_once(LogLevel::warn, "another");
  assert_string_equal(written(), "slimpi[0] warning: another\n");
}

Status refuse() {
  return (fail)(Status::no_memory, "no room for 12 bytes");  // not CMocka's macro
}

Status call_mpi() {
  SLIMPI_TRY(refuse());
  return Status::ok;
}

UNIT_TEST(failures_carry_their_text) {
  assert_true(call_mpi() == Status::no_memory);
  assert_string_equal(failure_text().c_str(), "no room for 12 bytes");
  assert_string_equal(to_string(Status::no_memory), "no memory");
}

UNIT_TEST(environment_is_read_as_it_is) {
  setenv("SLIMPI_TEST_A", "x=y", 1);
  setenv("SLIMPI_TEST_B", "", 1);
  setenv("OTHER_TEST", "z", 1);
  const Environment all = slimpi_environment();
  assert_string_equal(all.at("SLIMPI_TEST_A").c_str(), "x=y");
  assert_string_equal(all.at("SLIMPI_TEST_B").c_str(), "");
  assert_int_equal(all.count("OTHER_TEST"), 0);
  assert_string_equal(environment_variable("OTHER_TEST").c_str(), "z");
  assert_string_equal(environment_variable("NO_SUCH_TEST").c_str(), "");
}

}  // namespace
