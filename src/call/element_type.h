// SPDX-License-Identifier: BSD-3-Clause
// The types of elements that slimpi sums, and MPI's names for them.
#pragma once
#include <cstdint>
#include <optional>

#include "base/option_types.h"
#include "call/entry.h"

namespace slimpi::call {

// By any of MPI's names; empty for all other types. Looks at the handle only.
inline std::optional<ElementType> element_type(mpi::Datatype type) {
  const mpi::Abi& abi = mpi::abi;
  if (type == abi.type_float || type == abi.type_real || type == abi.type_real4)
    return ElementType::float32;
  if (type == abi.type_double || type == abi.type_double_precision || type == abi.type_real8)
    return ElementType::float64;
  return std::nullopt;
}

inline bool is_double(const Allreduce& call) {
  return element_type(call.datatype) == ElementType::float64;
}

// Of the program's buffer, for a call whose elements are of one of these types.
inline std::uint64_t bytes_of(const Allreduce& call) {
  return std::uint64_t(call.count) * (is_double(call) ? sizeof(double) : sizeof(float));
}

}  // namespace slimpi::call
