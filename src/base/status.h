// SPDX-License-Identifier: BSD-3-Clause
// How functions of slimpi report errors to each other. The function that detects an error describes
// it with fail(), and its callers pass the Status on unchanged, so the description of the cause
// reaches the program.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace slimpi {

enum class [[nodiscard]] Status{
    ok = 0,
    no_memory,     // host or device memory could not be allocated
    mpi,           // a call to the process's own MPI failed
    bad_message,   // not the expected message, or another rank sums something else
    absent,        // another rank does not take part in the call, or is too late
    disagreement,  // ranks differ in options, calls, states or shapes
    device,        // the GPU or its driver failed
    hook,          // a user's hook failed; all ranks know at the same point
    rank_failed,   // the process of a rank has failed, says MPI (ULFM)
    revoked,       // the program has revoked its communicator (ULFM)
    unsupported,   // not supported by this build or machine
    internal,      // a C++ exception other than std::bad_alloc: a bug in slimpi
};

// Keeps `text` as this thread's explanation of the error, without allocating, and returns `status`.
Status fail(Status status, std::string_view text);

// Returns the text of this thread's last fail(), or "".
std::string failure_text();

// Copies failure_text() to `text`, cut to its size, without allocating.
void copy_failure_text(std::span<char> text);

// Protects the thread's failure text while code that may fail again handles a failure. As long as
// the object exists, it holds the texts of new failures; afterwards failure_text() returns the old
// text again. Objects are on the stack and nest, and new texts go to the innermost. Allocates
// nothing.
class FailureScope {
 public:
  FailureScope();
  ~FailureScope();
  FailureScope(const FailureScope&) = delete;
  FailureScope& operator=(const FailureScope&) = delete;

  // Returns the text of the failure that is being handled, valid while the object lives.
  const char* before() const;

  static constexpr std::size_t kMost = 2048;  // bytes of a text

 private:
  static char* current();
  friend Status fail(Status status, std::string_view text);
  friend std::string failure_text();
  friend void copy_failure_text(std::span<char> text);

  char text_[kMost];
  FailureScope* const outer_;
};

// Returns a short name of the status, such as "no memory".
const char* to_string(Status status);

constexpr bool is_done(Status status) {
  return status == Status::ok;
}

}  // namespace slimpi

// Returns from the calling function unless `expression`, a Status or a comm::Verdict, is done.
#define SLIMPI_TRY(expression)                                                                  \
  do {                                                                                          \
    if (const auto slimpi_result = (expression); !is_done(slimpi_result)) return slimpi_result; \
  } while (0)
