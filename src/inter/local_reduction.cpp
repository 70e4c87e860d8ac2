// SPDX-License-Identifier: BSD-3-Clause
#include "inter/local_reduction.h"

#include <algorithm>

#include "comm/communicator.h"

namespace slimpi::inter {

namespace {
// Adds in groups of as many members as a kernel takes. The last group writes `code` and `result`.
void add_up(comm::Call& call, const kernels::RandomStream& draw, const Owned& piece,
            const std::function<const std::byte*(int member)>& encoded, float* residual,
            std::byte* code, float* result) {
  const float* carry = nullptr;
  for (int first = 0; first < piece.group_size; first += kernels::kMaxAddends) {
    const int last = std::min(piece.group_size, first + kernels::kMaxAddends);
    kernels::Addend addends[kernels::kMaxAddends] = {};
    for (int member = first; member < last; ++member) {
      kernels::Addend& addend = addends[member - first];
      if (member == piece.me)
        addend.exact = piece.in;
      else
        addend.encoded = encoded(member);
    }
    const bool end = last == piece.group_size;
    float* const partial = reinterpret_cast<float*>(call.communicator.scratch().partial.data());
    call.device.kernels()->sum_encode(call.plan.format, draw, addends, last - first, carry,
                                      end ? residual : nullptr, piece.count, end ? code : nullptr,
                                      end ? result : partial, call.stream);
    carry = partial;
  }
}
}  // namespace

void reduce_at_owner(comm::Call& call, const kernels::RandomStream& draw, const Owned& piece,
                     const std::function<const std::byte*(int member)>& encoded) {
  // The exact total comes first, because piece.out may be piece.in.
  if (piece.total != nullptr) add_up(call, draw, piece, encoded, nullptr, nullptr, piece.total);
  add_up(call, draw, piece, encoded, piece.residual, piece.code, piece.out);
}

}  // namespace slimpi::inter
