// SPDX-License-Identifier: BSD-3-Clause
// Shapes of matrices that the program names with slimpi_set_shape: at any time of the process, also
// before MPI is there, and from any thread. A call looks its shape up once, and its ranks compare
// what they found.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "base/option_types.h"

namespace slimpi {

class ShapeHints {
 public:
  // Those of the process; never destroyed.
  static ShapeHints& all();

  void set(const Shape& shape);

  // The shape that was last named for buffers of `count` floats.
  std::optional<Shape> find(std::uint64_t count) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Shape> shapes_;  // by count
};

}  // namespace slimpi
