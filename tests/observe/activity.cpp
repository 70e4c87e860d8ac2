// SPDX-License-Identifier: BSD-3-Clause
// The record of a call, and what slimpi-info --attach reads of it: in this process, in a child of
// it, and in processes that have none.
#include "observe/activity.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>

// Before CMocka, which has a macro of the name of a function in base/status.h.
#include "tools/info/attach.h"

#include "tests/helper/base/unit_test.h"

using namespace slimpi;
using Clock = std::chrono::steady_clock;

namespace {

const ActiveCall::Subject g_subject{3, "gradients", 1, 4, 7, 65536};

std::string attach_text(int pid) {
  info::Attached attached;
  const std::string problem = info::attach(std::to_string(pid), attached);
  return problem.empty() ? info::attached_text(attached) : problem;
}

void expect_text(const std::string& text, const char* start, const std::string& end) {
  if (!text.starts_with(start) || !text.ends_with(end)) fail_msg("%s", text.c_str());
}

std::string own(const char* text) {
  return "process " + std::to_string(getpid()) + ", rank 1 of 4" + text;
}

UNIT_TEST(states) {
  expect_text(attach_text(getpid()), own(": in the program, or").c_str(), "leaves to MPI\n");
  {
    ActiveCall call(g_subject);
    assert_ptr_equal(ActiveCall::current(), &call);
    expect_text(attach_text(getpid()), own(": in slimpi for 0.").c_str(),
                "call 7 on gradients (communicator 3, rank 1 of 4), 65536 floats\n");
    call.waits(WaitStage::node_barrier, Clock::now() - std::chrono::seconds(90));
    expect_text(attach_text(getpid()), own(": waits for 90.").c_str(),
                "65536 floats, stage barrier in the node\n");
    call.reported("not heard from: " + describe_ranks(std::vector<int>{0, 2, 3}));
    expect_text(attach_text(getpid()), own(": waits for 90.").c_str(),
                "65536 floats, stage barrier in the node: not heard from: ranks 0, 2 and 3\n");
    call.in_mpi();
    expect_text(attach_text(getpid()), own(": in MPI for 0.").c_str(), "65536 floats\n");
    call.works();
    expect_text(attach_text(getpid()), own(": in slimpi").c_str(), "65536 floats\n");
  }
  assert_null(ActiveCall::current());
  expect_text(attach_text(getpid()), own(": in the program").c_str(), "leaves to MPI\n");
}

UNIT_TEST(json) {
  ActiveCall call(g_subject);
  call.waits(WaitStage::all_gather, Clock::now());
  const std::string report = describe_ranks(std::vector<int>(100, 5));
  call.reported(report);
  info::Attached attached;
  assert_string_equal(info::attach(std::to_string(getpid()), attached).c_str(), "");
  const std::string json = info::to_json(attached);
  for (const std::string& part : {std::string(R"("stage": "all-gather",)"),
                                  std::string(R"("call": 7,)"), R"("report": ")" + report + "\""})
    if (json.find(part) == json.npos) fail_msg("%s: not in %s", part.c_str(), json.c_str());
  expect_text(info::attached_text(attached), "process", ", stage all-gather: " + report + "\n");
  expect_text(report, "ranks 5, 5,", " 5, 5 and 84 more");
  // A longer text is cut.
  call.reported(std::string(1000, 'x'));
  attached = {};
  assert_string_equal(info::attach(std::to_string(getpid()), attached).c_str(), "");
  expect_text(info::attached_text(attached), "process", std::string(255, 'x') + "\n");
}

// Calls of several threads each have a record in the file; where there are more calls, the rest has
// records that only this process sees, and nothing else changes.
UNIT_TEST(many) {
  std::vector<std::unique_ptr<ActiveCall>> calls;
  for (std::size_t i = 0; i < ActivityFile::kRecords + 4; ++i)
    calls.push_back(std::make_unique<ActiveCall>(g_subject));
  info::Attached attached;
  assert_string_equal(info::attach(std::to_string(getpid()), attached).c_str(), "");
  assert_int_equal(attached.calls.size(), ActivityFile::kRecords);
  // Messages and traces of each call depend on its record.
  ActiveCall::Subject subject = g_subject;
  subject.count = 5;
  ++subject.call;
  calls.push_back(std::make_unique<ActiveCall>(subject));
  const ActiveCall& before = *calls[calls.size() - 2];
  assert_int_equal(before.record().count, g_subject.count);
  assert_int_equal(before.record().call, g_subject.call);
  assert_int_equal(calls.back()->record().count, 5);
  while (!calls.empty()) calls.pop_back();
  info::Attached after;
  assert_string_equal(info::attach(std::to_string(getpid()), after).c_str(), "");
  assert_int_equal(after.calls.size(), 0);
}

// A long name is cut, and ends.
UNIT_TEST(long_name) {
  const std::string name(200, 'x');
  ActiveCall::Subject subject = g_subject;
  subject.name = name;
  const ActiveCall call(subject);
  assert_int_equal(std::strlen(call.record().name), sizeof call.record().name - 1);
}

UNIT_TEST(child) {
  const pid_t pid = fork();
  if (pid == 0) {
    pause();
    _exit(0);
  }
  const std::string text = attach_text(pid);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  expect_text(text, "--attach ",
              (": a child of process " + std::to_string(getpid()) + ", which is the rank").c_str());
  expect_text(attach_text(pid), "--attach ", ": there is no such process on this machine");
}

UNIT_TEST(no_pid) {
  for (const char* text : {"", "0", "-3", "abc", "12x", "99999999999999"}) {
    info::Attached attached;
    expect_text(info::attach(text, attached), "--attach ", "a whole number");
  }
}

// --attach refuses a file of another program that has the same name, and a file that is too short.
UNIT_TEST(foreign) {
  const int file = memfd_create("other", MFD_CLOEXEC);
  info::Attached attached;
  assert_false(info::read_activity(file, attached));
  assert_int_equal(ftruncate(file, sizeof(ActivityFile)), 0);
  assert_false(info::read_activity(file, attached));
  close(file);
}

int prepare(void**) {
  start_activity();
  set_activity_rank(1, 4);
  return 0;
}
GROUP_FIXTURES(prepare, nullptr);

}  // namespace
