// SPDX-License-Identifier: BSD-3-Clause
// Includes library headers that many files use. The makefile compiles this file once and puts it in
// front of each source (`-include`). Sources include what they use all the same, so that `make
// PRECOMPILED=` builds without it.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
