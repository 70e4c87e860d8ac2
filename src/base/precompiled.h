// SPDX-License-Identifier: BSD-3-Clause
// The headers of libraries that many files include, which the makefile compiles once for all. It
// puts this file in front of each; a file includes what it uses all the same, and compiles without
// this one: make PRECOMPILED= does that.
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
