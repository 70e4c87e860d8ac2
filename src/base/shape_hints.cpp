// SPDX-License-Identifier: BSD-3-Clause
#include "base/shape_hints.h"

namespace slimpi {

ShapeHints& ShapeHints::all() {
  static auto& hints = *new ShapeHints;
  return hints;
}

void ShapeHints::set(const Shape& shape) {
  const std::lock_guard lock(mutex_);
  shapes_[shape.count] = shape;
}

std::optional<Shape> ShapeHints::find(std::uint64_t count) const {
  const std::lock_guard lock(mutex_);
  const auto found = shapes_.find(count);
  return found == shapes_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace slimpi
