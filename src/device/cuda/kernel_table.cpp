// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/functions.h"

#include "device/cuda/stream.h"
#include "kernels/cuda/arguments.h"
#include "kernels/math/packed.h"

namespace slimpi::device::cuda {

namespace {

using namespace kernels;
using namespace kernels::cuda;

constexpr std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

// Queues a kernel. `work` is the number of elements, tiles or buckets, of which each CUDA block
// processes `of_block`.
template <typename Arguments>
void launch(Stream* stream, Kernel kernel, std::uint64_t work, std::uint64_t of_block,
            const Arguments& arguments) {
  if (work == 0) return;
  CudaStream& s = CudaStream::of(stream);
  const Current current(s.context->handle, Current::queues);
  if (current.status() != Status::ok) return note(s, CUDA_ERROR_INVALID_CONTEXT, "using the GPU");
  if (load_kernels(*s.context) != Status::ok)
    return note(s, CUDA_ERROR_NO_BINARY_FOR_GPU, "loading slimpi's kernels onto the GPU");
  begin_work(s);
  const std::uint64_t blocks = divide_up(work, of_block);
  constexpr std::uint64_t kMostBlocks = 0x7fffffff;
  if (blocks > kMostBlocks) return note(s, CUDA_ERROR_INVALID_VALUE, "so many elements at once");
  Arguments copy = arguments;
  void* parameters[] = {&copy};
  note(s,
       driver().cuLaunchKernel(s.context->kernels[int(kernel)], unsigned(blocks), 1, 1, kThreads, 1,
                               1, 0, s.handle, parameters, nullptr),
       "launching a kernel");
}

Payload payload_of(const Format& format, std::uint64_t count) {
  Payload payload = {};
  payload.format = format;
  payload.count = count;
  payload.bucket = bucket_elements(format, count);
  payload.bucket_bytes = 8 + packed_bytes(format.bits, payload.bucket);
  payload.tiles = std::uint32_t(divide_up(payload.bucket, kTileElements));
  payload.steps = std::uint32_t(count / payload.bucket * payload.tiles +
                                divide_up(count % payload.bucket, kTileElements));
  return payload;
}

// Queues the kernel `of_warps` if one warp can hold a bucket, otherwise `of_blocks`.
template <typename Arguments>
void launch_tiles(Stream* stream, Kernel of_warps, Kernel of_blocks, const Arguments& arguments) {
  const bool warps = arguments.payload.bucket <= kWarpElements;
  launch(stream, warps ? of_warps : of_blocks, arguments.payload.steps, warps ? kWarpsOfBlock : 1,
         arguments);
}

std::uint64_t buckets_of(const Payload& payload) {
  return divide_up(payload.count, payload.bucket);
}

void plain_sum(Codec codec, const Addend* addends, int addend_count, float* residual,
               std::size_t count, std::byte* out, float* result, const float* carry,
               Stream* stream) {
  PlainSumArguments arguments = {codec, count, {}, 0, residual, out, result};
  if (carry != nullptr) arguments.addends[arguments.addend_count++] = {nullptr, carry};
  for (int i = 0; i < addend_count; ++i) arguments.addends[arguments.addend_count++] = addends[i];
  launch(stream, Kernel::plain_sum, count, kElementsOfBlock, arguments);
}

PackedTile packed_tile_of(const Format& format, std::uint64_t count) {
  return {std::uint32_t(count), std::uint32_t(packed_buckets(count)),
          std::uint32_t(packed_tile_bytes(format, count)),
          std::uint32_t(packed_header_bytes(count)), packed_units(format, count)};
}

PackedShape packed_shape(const Format& format, std::uint64_t count) {
  const std::uint64_t last = (count - 1) / format.bucket;
  return {packed_tile_of(format, format.bucket),
          packed_tile_of(format, count - last * format.bucket), std::uint32_t(last),
          std::uint32_t(divide_up(format.bucket, kPackedSlice))};
}

std::uint64_t slices_of(const PackedShape& shape) {
  return std::uint64_t(shape.last_number) * shape.slices +
         divide_up(shape.last.count, kPackedSlice);
}

void packed_sum(const Format& format, const Addend* addends, int addend_count, const float* carry,
                float* residual, std::size_t count, std::byte* out, float* result, Stream* stream) {
  PackedSumArguments arguments = {packed_shape(format, count), {}, 0, residual, out, result};
  if (carry != nullptr) arguments.addends[arguments.addend_count++] = {nullptr, carry};
  for (int i = 0; i < addend_count; ++i) arguments.addends[arguments.addend_count++] = addends[i];
  const std::uint64_t tiles = arguments.shape.last_number + 1;
  const std::uint64_t slices = slices_of(arguments.shape);
  // If `result` is null, the only addend is floats, so there is nothing to sum.
  launch(stream, result == nullptr ? Kernel::packed_numbers : Kernel::packed_sum, slices, 1,
         arguments);
  if (out == nullptr) return;
  launch(stream, Kernel::packed_plan, tiles, 1, arguments);
  if (residual != nullptr) {
    launch(stream, Kernel::packed_feedback, slices, 1, arguments);
    launch(stream, Kernel::packed_plan, tiles, 1, arguments);
  }
  launch(stream, Kernel::packed_encode, slices, 1, arguments);
}

// Queues the last kernels for buckets too long for one block, once the extremes of `in` are found.
void finish_buckets(const EncodeArguments& arguments, float* decoded, Stream* stream) {
  const auto& [payload, random, in, residual, out] = arguments;
  if (residual != nullptr) {
    launch(stream, Kernel::limit_residuals, buckets_of(payload), kThreads, arguments);
    launch(stream, Kernel::residual_extremes, payload.steps, 1, arguments);
  }
  launch(stream, Kernel::end_extremes, buckets_of(payload), kThreads, arguments);
  const PackArguments pack = {payload, random, in, residual, residual, decoded, out};
  launch(stream, payload.format.stochastic ? Kernel::pack_stochastic : Kernel::pack_nearest,
         payload.steps, 1, pack);
}

void encode(const Format& format, const RandomStream& random, const float* in, float* residual,
            std::size_t count, std::byte* out, Stream* stream) {
  if (count == 0) return;
  if (format.codec != Codec::quantized) {
    const Addend addend = {nullptr, in};
    if (format.codec == Codec::packed)
      return packed_sum(format, &addend, 1, nullptr, residual, count, out, nullptr, stream);
    return plain_sum(format.codec, &addend, 1, residual, count, out, nullptr, nullptr, stream);
  }
  const EncodeArguments arguments = {payload_of(format, count), random, in, residual, out};
  const Payload& payload = arguments.payload;
  if (payload.tiles == 1)
    return format.stochastic ? launch_tiles(stream, Kernel::encode_warp_stochastic,
                                            Kernel::encode_block_stochastic, arguments)
                             : launch_tiles(stream, Kernel::encode_warp_nearest,
                                            Kernel::encode_block_nearest, arguments);
  launch(stream, Kernel::start_extremes, buckets_of(payload), kThreads, arguments);
  launch(stream, Kernel::encode_extremes, payload.steps, 1, arguments);
  finish_buckets(arguments, nullptr, stream);
}

template <bool kAdds>
void decode(const Format& format, const std::byte* in, std::size_t count, float* out,
            Stream* stream) {
  if (count == 0) return;
  if (format.codec == Codec::packed) {
    const PackedDecodeArguments arguments = {packed_shape(format, count), in, out};
    return launch(stream, kAdds ? Kernel::packed_decode_add : Kernel::packed_decode,
                  slices_of(arguments.shape), 1, arguments);
  }
  if (format.codec != Codec::quantized)
    return launch(stream, Kernel::plain_decode, count, kElementsOfBlock,
                  PlainDecodeArguments{format.codec, kAdds, count, in, out});
  launch_tiles(stream, kAdds ? Kernel::decode_add_warp : Kernel::decode_warp,
               kAdds ? Kernel::decode_add_block : Kernel::decode_block,
               DecodeArguments{payload_of(format, count), in, out});
}

void sum_encode(const Format& format, const RandomStream& random, const Addend* addends,
                int addend_count, const float* carry, float* residual, std::size_t count,
                std::byte* out, float* result, Stream* stream) {
  if (count == 0) return;
  if (out == nullptr) residual = nullptr;
  if (format.codec == Codec::packed)
    return packed_sum(format, addends, addend_count, carry, residual, count, out, result, stream);
  if (format.codec != Codec::quantized)
    return plain_sum(format.codec, addends, addend_count, residual, count, out, result, carry,
                     stream);
  SumArguments arguments = {payload_of(format, count), random, {}, 0, residual, out, result};
  if (carry != nullptr) arguments.addends[arguments.addend_count++] = {nullptr, carry};
  for (int i = 0; i < addend_count; ++i) arguments.addends[arguments.addend_count++] = addends[i];
  const Payload& payload = arguments.payload;
  if (out == nullptr)
    return launch_tiles(stream, Kernel::sum_warp_exact, Kernel::sum_block_exact, arguments);
  if (payload.tiles == 1)
    return format.stochastic ? launch_tiles(stream, Kernel::sum_warp_stochastic,
                                            Kernel::sum_block_stochastic, arguments)
                             : launch_tiles(stream, Kernel::sum_warp_nearest,
                                            Kernel::sum_block_nearest, arguments);
  const EncodeArguments buckets = {payload, random, result, residual, out};
  launch(stream, Kernel::start_extremes, buckets_of(payload), kThreads, buckets);
  launch(stream, Kernel::sum_extremes, payload.steps, 1, arguments);
  finish_buckets(buckets, result, stream);
}

void sum(const float* const* in, int in_count, std::size_t count, float* out, Stream* stream) {
  Addend addends[kMaxAddends] = {};
  for (int i = 0; i < in_count; ++i) addends[i].exact = in[i];
  plain_sum(Codec::float32, addends, in_count, nullptr, count, nullptr, out, nullptr, stream);
}

void pair_sum(const float* const* in, int in_count, std::size_t count, float* out, Stream* stream) {
  PairSumArguments arguments = {count, {}, in_count, 0, out};
  int power = 1;
  while (2 * power <= in_count) power *= 2;
  arguments.surplus = in_count - power;
  for (int i = 0; i < in_count; ++i) arguments.addends[i] = in[i];
  launch(stream, Kernel::pair_sum, count, kElementsOfBlock, arguments);
}

void combine(float a, const float* x, float b, const float* y, std::size_t count, float* out,
             Stream* stream) {
  launch(stream, Kernel::combine, count, kElementsOfBlock,
         CombineArguments{a, b, x, y, count, out});
}

void find_beyond(const float* in, float limit, std::size_t count, int* found, Stream* stream) {
  CudaStream& s = CudaStream::of(stream);
  const Current current(s.context->handle, Current::queues);
  if (current.status() != Status::ok) return note(s, CUDA_ERROR_INVALID_CONTEXT, "using the GPU");
  begin_work(s);
  note(s, driver().cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(found), 0, 1, s.handle),
       "launching a kernel");
  launch(stream, Kernel::find_beyond, count, kElementsOfBlock,
         FindArguments{in, limit, count, found});
}

void compare(const float* a, const float* b, std::size_t count, double* result, Stream* stream) {
  const CompareArguments arguments = {a, b, count, CudaStream::of(stream).partial, result};
  launch(stream, Kernel::compare, kCompareBlocks, 1, arguments);
  launch(stream, Kernel::compare_end, 1, 1, arguments);
}

void fill(float* out, float value, std::size_t count, Stream* stream) {
  launch(stream, Kernel::fill, count, kElementsOfBlock, FillArguments{value, count, out});
}

void low_rank(const LowRank& factors, const float* in, float share, float* residual,
              std::size_t count, float* out, Stream* stream) {
  if (count == 0) return;
  const std::uint64_t rows = divide_up(count, factors.columns);
  const std::uint64_t tiles = divide_up(factors.columns, kThreads);
  launch(stream, Kernel::low_rank, divide_up(rows, kLowRankRows) * tiles, 1,
         LowRankArguments{factors, in, share, residual, count, out, std::uint32_t(tiles)});
}

}  // namespace

const Kernels* cuda_kernels() {
  static constexpr Kernels table = {.name = "cuda",
                                    .encode = encode,
                                    .decode = decode<false>,
                                    .decode_add = decode<true>,
                                    .sum_encode = sum_encode,
                                    .sum = sum,
                                    .combine = combine,
                                    .find_beyond = find_beyond,
                                    .compare = compare,
                                    .fill = fill,
                                    .low_rank = low_rank,
                                    .multiply = device::cuda::multiply,
                                    .pair_sum = pair_sum};
  return &table;
}

}  // namespace slimpi::device::cuda
