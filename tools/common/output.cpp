// SPDX-License-Identifier: BSD-3-Clause
#include "tools/common/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace slimpi::tools {

namespace {
int g_error = 0;  // errno of the first failure
}

void put(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && g_error == 0)
    g_error = errno;
}

int finish_output(const char* program, int status) {
  errno = 0;
  if (std::fflush(stdout) != 0 && g_error == 0) g_error = errno;
  if (g_error == 0) return status;
  std::fprintf(stderr, "%s: standard output cannot be written: %s\n", program,
               std::strerror(g_error));
  return status == 0 ? 1 : status;
}

}  // namespace slimpi::tools
