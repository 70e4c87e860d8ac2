// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/owner_sum.h"

#include <algorithm>

#include "algorithm/communicator.h"

namespace slimpi::algorithm {

void sum_at_owner(Call& call, const kernels::Draw& draw, const Owned& piece,
                  const std::function<const std::byte*(int member)>& encoded) {
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
    float* const partial = reinterpret_cast<float*>(call.communicator.partial.data());
    call.device.kernels()->sum_encode(
        call.plan.format, draw, addends, last - first, carry, end ? piece.residual : nullptr,
        piece.count, end ? piece.code : nullptr, end ? piece.out : partial, call.stream);
    carry = partial;
  }
}

}  // namespace slimpi::algorithm
