// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/owner_sum.h"

#include <algorithm>

#include "algorithm/communicator.h"

namespace slimpi::algorithm {

namespace {
// Adds in groups of as many as a kernel takes; the last group writes to `code` and `result`.
void add_up(Call& call, const kernels::Draw& draw, const Owned& piece,
            const std::function<const std::byte*(int member)>& encoded, float* residual,
            std::byte* code, float* result) {
  const float* carry = nullptr;
  for (int first = 0; first < piece.members; first += kernels::kMaxAddends) {
    const int last = std::min(piece.members, first + kernels::kMaxAddends);
    kernels::Addend addends[kernels::kMaxAddends] = {};
    for (int member = first; member < last; ++member) {
      kernels::Addend& addend = addends[member - first];
      if (member == piece.me)
        addend.exact = piece.in;
      else
        addend.encoded = encoded(member);
    }
    const bool end = last == piece.members;
    float* const partial = reinterpret_cast<float*>(call.communicator.scratch().partial.data());
    call.device.kernels()->sum_encode(call.plan.format, draw, addends, last - first, carry,
                                      end ? residual : nullptr, piece.count, end ? code : nullptr,
                                      end ? result : partial, call.stream);
    carry = partial;
  }
}
}  // namespace

void sum_at_owner(Call& call, const kernels::Draw& draw, const Owned& piece,
                  const std::function<const std::byte*(int member)>& encoded) {
  // First, because piece.out may be piece.in.
  if (piece.total != nullptr) add_up(call, draw, piece, encoded, nullptr, nullptr, piece.total);
  add_up(call, draw, piece, encoded, piece.residual, piece.code, piece.out);
}

}  // namespace slimpi::algorithm
