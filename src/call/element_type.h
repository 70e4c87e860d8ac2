// SPDX-License-Identifier: BSD-3-Clause
// The types of elements that slimpi sums: their names in MPI, and the codecs that convert between
// them and floats. A new type needs a row in kElementRows (options/option_types.h), and its name in
// element_type(), mpi_has() and codec_of().
#pragma once
#include <cstdint>
#include <optional>

#include "call/request.h"
#include "kernels/codecs.h"
#include "options/option_types.h"

namespace slimpi::call {

// Returns the element type of an MPI datatype, or nothing if slimpi cannot sum it. Compares handles
// only and calls no MPI function.
inline std::optional<ElementType> element_type(mpi::Datatype type) {
  const mpi::Abi& abi = mpi::abi;
  if (type == abi.type_float || type == abi.type_real || type == abi.type_real4)
    return ElementType::float32;
  if (type == abi.type_double || type == abi.type_double_precision || type == abi.type_real8)
    return ElementType::float64;
  if (type == mpi::Datatype()) return std::nullopt;  // MPI lacks this type, so its handle is null
  if (type == abi.type_float16 || type == abi.type_real2) return ElementType::float16;
  if (type == abi.type_bfloat16) return ElementType::bfloat16;
  return std::nullopt;
}

// Returns whether the process's MPI has the type.
inline bool mpi_has(ElementType type) {
  for (const mpi::Datatype name : {mpi::abi.type_float, mpi::abi.type_double, mpi::abi.type_float16,
                                   mpi::abi.type_real2, mpi::abi.type_bfloat16})
    if (element_type(name) == type) return true;
  return false;
}

// Returns the codec that encodes a float as one element of the type, and decodes each element
// exactly. Returns nothing for doubles, which kernels/math/float64.h converts.
constexpr std::optional<kernels::Codec> codec_of(ElementType type) {
  switch (type) {
    case ElementType::float32:
      return kernels::Codec::float32;
    case ElementType::float16:
      return kernels::Codec::fp16;
    case ElementType::bfloat16:
      return kernels::Codec::bf16;
    case ElementType::float64:
      break;
  }
  return std::nullopt;
}

// Returns the element type of a call that is known to have one.
inline ElementType type_of(const Request& request) {
  return element_type(request.datatype).value_or(ElementType::float32);
}

// Returns the bytes of the whole vector in the program's type.
inline std::uint64_t bytes_of(const Request& request) {
  return std::uint64_t(request.count) * row_of(type_of(request)).bytes;
}

}  // namespace slimpi::call
