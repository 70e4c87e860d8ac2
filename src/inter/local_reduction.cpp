// SPDX-License-Identifier: BSD-3-Clause
#include "inter/local_reduction.h"

#include <algorithm>

namespace slimpi::inter {

namespace {
// Adds in groups of as many members as a kernel takes. The last group writes `code` and `result`.
void add_up(const Context& context, const kernels::RandomStream& draw, const Owned& piece,
            const std::function<const std::byte*(int member)>& encoded, float* residual,
            std::byte* code, float* result) {
  // The sum of the groups before, in fp32. `partial` is scratch of the exchange.
  const float* carry = nullptr;
  for (int first = 0; first < piece.group_size; first += kernels::kMaxAddends) {
    const int last = std::min(piece.group_size, first + kernels::kMaxAddends);
    kernels::Addend addends[kernels::kMaxAddends] = {};
    for (int member = first; member < last; ++member) {
      kernels::Addend& addend = addends[member - first];
      if (member == piece.me)
        // The owner's values are never encoded before they are added.
        addend.exact = piece.in;
      else
        addend.encoded = encoded(member);
    }
    const bool end = last == piece.group_size;
    context.kernels.sum_encode(context.format, draw, addends, last - first, carry,
                               end ? residual : nullptr, piece.count, end ? code : nullptr,
                               end ? result : context.partial, context.stream());
    carry = context.partial;
  }
}
}  // namespace

void reduce_at_owner(const Context& context, const kernels::RandomStream& draw, const Owned& piece,
                     const std::function<const std::byte*(int member)>& encoded) {
  // The exact total comes first, because piece.out may be piece.in.
  if (piece.total != nullptr) add_up(context, draw, piece, encoded, nullptr, nullptr, piece.total);
  add_up(context, draw, piece, encoded, piece.residual, piece.code, piece.out);
}

}  // namespace slimpi::inter
