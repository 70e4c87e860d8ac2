// SPDX-License-Identifier: BSD-3-Clause
// Matrix shapes that the program sets with slimpi_set_shape: at any time, also before MPI is
// initialized, and from any thread. A call reads its shape once, and its ranks compare what they
// read.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "base/option_types.h"

namespace slimpi {

class ShapeHints {
 public:
  // The shapes of the process; never destroyed.
  static ShapeHints& all();

  void set(const Shape& shape);

  // The shape that was last set for buffers of `count` floats.
  std::optional<Shape> find(std::uint64_t count) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Shape> shapes_;  // key: count of floats
};

}  // namespace slimpi
