// SPDX-License-Identifier: BSD-3-Clause
// One low-rank sum (powersgd.h says what it computes): the order of its steps, and where the matrix
// and the factors lie. The matrix is worked on in tiles, so that only the residual, never the sum
// of input and residual, has the length of the buffer.
#pragma once
#include <cstdint>

#include "algorithm/powersgd.h"
#include "kernels/kernels.h"

namespace slimpi::algorithm {

// The arithmetic of a low-rank sum that every rank does on the same numbers. It gives the same
// bytes on every machine, because the order of operations is fixed and no math library is used.
//
// A factor is `rank` vectors of `length` floats, stored one after the other.

// Makes vector k of the factor orthogonal to the k vectors before it, and scales it to norm 1. The
// vectors before it must be orthonormal or zero. The method is modified Gram-Schmidt, twice, in
// double. If the vector is zero, or if almost nothing of it remains, it becomes zero, and the
// function returns false. `scratch` has `length` doubles.
bool orthonormalize_vector(float* factor, std::uint64_t length, int k, double* scratch);

// Calls orthonormalize_vector() for all vectors, in order.
void orthonormalize(float* factor, std::uint64_t length, int rank, double* scratch);

// Sets vector[0 .. length - 1] to random numbers of mean 0 and variance 1 that are about normally
// distributed. Each is the sum of eight uniform 16-bit numbers of one block of the generator. The
// sum is exact in integers, so the bytes do not depend on the logarithm or cosine of a math
// library. Element i uses block draw.first + i.
void draw_normal(const kernels::RandomStream& draw, std::uint64_t length, float* vector);

// The size of a tile of M: floats in all, and columns at most. On the host a tile fits into the
// cache; on a GPU it is large enough to occupy the GPU.
struct TileSize {
  std::uint64_t floats, columns;
};
constexpr TileSize kHostTile = {64 << 10, 16 << 10};
constexpr TileSize kDeviceTile = {4 << 20, 4 << 20};

// Bytes in the call's scratch memory: a vector of doubles, the norms of matrices and residuals, a
// tile, P and behind it the parts that are summed exactly, and Q. With products on a GPU, the tile
// and a copy of the norms and factors lie in GPU memory, and all but the tile in staging memory.
struct LowRankScratch {
  explicit LowRankScratch(const Matrices& matrices)
      : factor_bytes((matrices.p + matrices.q) * sizeof(float)),
        other_bytes(matrices.others * sizeof(float)),
        vector_bytes(matrices.longest * sizeof(double)),
        norm_bytes(4 * matrices.low_rank.size() * sizeof(double)) {}
  std::uint64_t here(bool on_device) const {
    return vector_bytes + norm_bytes + (on_device ? 0 : kHostTile.floats * sizeof(float)) +
           factor_bytes + other_bytes;
  }
  std::uint64_t on_device() const {
    return norm_bytes + kDeviceTile.floats * sizeof(float) + factor_bytes;
  }
  std::uint64_t factor_bytes, other_bytes, vector_bytes, norm_bytes;
};

// True if the kernels of the call's device can multiply matrices. Otherwise the buffers are copied
// to host memory and multiplied there.
bool multiplies(const comm::Call& call);

// The plan of the exact sums inside a low-rank sum.
comm::Plan uncompressed_plan(const comm::Plan& plan);

// Sums `count` floats at the location exactly: the factors, in host memory on whatever device the
// buffers are, or a matrix that is not worthwhile. `number` is the call's in message headers.
Status sum_uncompressed(const comm::Call& call, const device::Location& location, const float* in,
                        float* out, std::uint64_t count, std::uint64_t number);

// Gets the arrays of the tensor state: all Q in host memory, the residual in the memory of the
// device that makes the products. *error is null without error feedback.
Status open_state(comm::Call& call, const Matrices& matrices, bool on_device, float** error,
                  float** last_q);

class LowRankStep {
 public:
  // `in` and `out` are in the memory of the call's device if on_device, otherwise in host memory.
  LowRankStep(comm::Call& call, const Matrices& matrices, bool on_device, const float* in,
              float* out);
  Status run();

 private:
  // A tile of M: consecutive rows and consecutive columns.
  struct Part {
    std::uint64_t row, rows, column, columns;
  };
  template <typename Visit>
  void for_each_part(const Matrix& matrix, Visit visit) const;
  const float* load_part(const Matrix& matrix, const Part& part, int* distance);
  void start_q(const Matrix& matrix);
  Status limit_residuals();
  float residual_factor_of(const Matrix& matrix) const {
    return residual_factors_[std::size_t(&matrix - matrices_.low_rank.data())];
  }
  void keep_limited(const Matrix& matrix);
  Status copy(float* to, const float* from, std::uint64_t floats);
  Status first_products();
  Status second_products();
  Status collect_exact_parts();
  Status spread_exact_parts();
  Status sum(float* factors, std::uint64_t floats, std::uint64_t phase);
  bool finite(const float* floats, std::uint64_t count) const;
  Status finish();

  comm::Call& call_;
  comm::Communicator& communicator_;
  const Matrices& matrices_;
  const bool on_device_;
  const device::DeviceStream on_;  // of the device whose memory holds M
  const kernels::Kernels& kernels_;
  const TileSize tile_size_;
  const float* in_;
  float* out_;
  float *error_ = nullptr, *last_q_ = nullptr;  // arrays of the tensor state; see open_state()
  std::pmr::vector<float> residual_factors_;    // of the residual's matrices; none without it
  double *vector_, *norms_;
  float *p_, *others_, *q_;          // the exact parts follow all P: one exchange sums both
  double* near_norms_;               // in the memory of M; on the host: norms_
  float *tile_, *near_p_, *near_q_;  // the same; p_ and q_
};

}  // namespace slimpi::algorithm
