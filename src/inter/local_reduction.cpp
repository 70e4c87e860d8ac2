// SPDX-License-Identifier: BSD-3-Clause
#include "inter/local_reduction.h"

#include <algorithm>

namespace slimpi::inter {

namespace {
// Adds in groups of as many members as a kernel takes. The last group writes `payload` and
// `result`.
void add_up(const Context& context, const kernels::RandomStream& random, const Owned& owned,
            const std::function<const std::byte*(int member)>& encoded, float* residual,
            std::byte* payload, float* result) {
  // The sum of the groups before, in fp32. `partial` is scratch of the exchange.
  const float* carry = nullptr;
  for (int first = 0; first < owned.group_size; first += kernels::kMaxAddends) {
    const int last = std::min(owned.group_size, first + kernels::kMaxAddends);
    kernels::Addend addends[kernels::kMaxAddends] = {};
    for (int member = first; member < last; ++member) {
      kernels::Addend& addend = addends[member - first];
      if (member == owned.me)
        // The owner's values are never encoded before they are added.
        addend.exact = owned.in;
      else
        addend.encoded = encoded(member);
    }
    const bool end = last == owned.group_size;
    context.kernels.sum_encode(context.format, random, addends, last - first, carry,
                               end ? residual : nullptr, owned.count, end ? payload : nullptr,
                               end ? result : context.partial, context.stream());
    carry = context.partial;
  }
}
}  // namespace

void reduce_at_owner(const Context& context, const kernels::RandomStream& random,
                     const Owned& owned,
                     const std::function<const std::byte*(int member)>& encoded) {
  // The exact total comes first, because owned.out may be owned.in.
  if (owned.total != nullptr)
    add_up(context, random, owned, encoded, nullptr, nullptr, owned.total);
  add_up(context, random, owned, encoded, owned.residual, owned.payload, owned.out);
}

}  // namespace slimpi::inter
