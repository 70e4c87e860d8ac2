// SPDX-License-Identifier: BSD-3-Clause
// Programs that use their buffers in many ways, under the preload with error feedback. Where the
// library knows which buffer is which, the mean of a tensor's calls closes in on the exact sum;
// where it mixes them up or forgets them, it does not.
// Usage: slots MODE (kept|lost), the second being what is expected of the feedback
//   reuse       two buffers, summed in turn
//   anew        two new buffers a step, all of them kept alive
//   anew_named  the same, with the tensors named by slimpi_describe_next
//   extra       two counts, and after step 10 one sum more, of the second count; what counts is
//               what follows
//   counts      one buffer for two tensors of different counts
//   one_buffer  one buffer for two tensors of one count
//   disagree    rank 0 has one buffer for both, the others have two
//   swap        rank 0 exchanges its two buffers after a while
//   functions   two buffers, summed in place by MPI_Allreduce and MPI_Reduce_scatter in turn
//   blocks      the same by MPI_Reduce_scatter with two arrays of counts
//   functions_named, blocks_named  the same, with the tensors named
//   empty       by MPI_Reduce_scatter; the last rank gets nothing, and each step has a new
//               input
//   blocks_nonblocking, empty_nonblocking  the same by MPI_Ireduce_scatter
//   freed       a communicator of its own, freed at the end
//   single      each step makes a nonblocking sum, too, which goes to MPI for lack of threads
//   paused      each step starts a persistent sum, too, while MPI_Pcontrol has slimpi off
#include "tests/helper/base/program.h"

#include <memory>
#include <utility>

#include "tests/helper/mpi/collectives.h"
#include "tests/mpi/values/inputs.h"

namespace {

constexpr int kSteps = 60;
constexpr std::size_t kCount = 5000;

MPI_Comm g_comm;
bool g_nonblocking;  // the reduce-scatters

int (*g_describe)(const slimpi_tensor_t*);

void describe(const char* name) {
  const slimpi_tensor_t tensor = {sizeof tensor, name, nullptr, 0};
  if (g_describe != nullptr && g_describe(&tensor) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
}

// A tensor of the program, with the same values in every step.
struct Tensor {
  Tensor(std::size_t count, std::uint64_t seed)
      : test{Family::normal, count, seed, false, false, false, g_size},
        in(make_input(test, g_rank)),
        exact(exact_sum(test)),
        mean(count),
        summed(count) {}

  void sum_in(float* buffer) {
    std::memcpy(buffer, in.data(), in.size() * sizeof(float));
    MPI_Allreduce(MPI_IN_PLACE, buffer, int(in.size()), MPI_FLOAT, MPI_SUM, g_comm);
    take(0, in.size(), buffer);
  }
  // Makes a reduce-scatter in which rank r gets block r of `blocks`. If `input` is null, it is in
  // place.
  void scatter_in(float* buffer, const std::vector<int>& blocks, float* input = nullptr) {
    std::memcpy(input == nullptr ? buffer : input, in.data(), in.size() * sizeof(float));
    const void* const from = input == nullptr ? MPI_IN_PLACE : input;
    sum_floats(g_nonblocking ? "Ireduce_scatter" : "Reduce_scatter", from, buffer, 0, blocks.data(),
               0, g_comm);
    std::size_t first = 0;
    for (int rank = 0; rank < g_rank; ++rank) first += std::size_t(blocks[std::size_t(rank)]);
    take(first, std::size_t(blocks[std::size_t(g_rank)]), buffer);
  }
  void take(std::size_t first, std::size_t count, const float* result) {
    for (std::size_t i = 0; i < count; ++i) {
      mean[first + i] += double(result[i]);
      ++summed[first + i];
    }
    ++calls;
    if (calls == 1) once = error();
  }
  void forget() {
    mean.assign(mean.size(), 0);
    summed.assign(mean.size(), 0);
    calls = 1;
  }
  // Returns the error of the mean over the calls, as a root mean square over the elements that this
  // rank got.
  double error() const {
    double sum = 0;
    int elements = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (summed[i] == 0) continue;
      sum += std::pow(mean[i] / summed[i] - exact[i], 2);
      ++elements;
    }
    return std::sqrt(sum / std::max(elements, 1));
  }
  // Returns how much closer the mean is than one call. A tensor that is summed exactly needs no
  // feedback.
  double times_closer() const { return once < 1e-4 ? HUGE_VAL : once / error(); }

  Case test;
  std::vector<float> in;
  std::vector<double> exact, mean;
  std::vector<int> summed;  // how often this rank got each element
  int calls = 0;
  double once = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "single")
    begin_mpi_with(MPI_THREAD_SINGLE);
  else
    begin_mpi();
  std::string expected = argc > 2 ? argv[2] : "";
  if (void* const found = dlsym(RTLD_DEFAULT, "slimpi_describe_next"); found != nullptr)
    std::memcpy(&g_describe, &found, sizeof found);
  g_comm = MPI_COMM_WORLD;
  if (mode == "freed") MPI_Comm_dup(MPI_COMM_WORLD, &g_comm);

  Tensor a(kCount, 1), b(mode == "counts" || mode == "extra" ? kCount / 2 : kCount, 2);
  std::vector<std::unique_ptr<float[]>> buffers;
  const auto uninitialized = [&] {
    buffers.push_back(std::make_unique<float[]>(kCount));
    return buffers.back().get();
  };
  float *first = uninitialized(), *second = uninitialized();
  if (mode == "counts" || mode == "one_buffer" || (mode == "disagree" && g_rank == 0))
    second = first;
  const bool named = mode.ends_with("_named");
  g_nonblocking = mode.ends_with("_nonblocking");
  const int each = int(kCount) / g_size;
  std::vector<int> even(std::size_t(g_size), each), uneven = even, some = even;
  for (std::size_t rank = 0; rank + 1 < even.size(); rank += 2) {
    uneven[rank] += each / 2;
    uneven[rank + 1] -= each / 2;
  }
  some[some.size() - 2] += std::exchange(some.back(), 0);
  MPI_Request paused = MPI_REQUEST_NULL;
#if HAS_PERSISTENT_SUMS
  if (mode == "paused")
    MPI_Allreduce_init(uninitialized(), uninitialized(), int(kCount), MPI_FLOAT, MPI_SUM, g_comm,
                       MPI_INFO_NULL, &paused);
#endif
  for (int step = 0; step < kSteps; ++step) {
    if (mode.starts_with("anew") && step != 0) {
      first = uninitialized();
      second = uninitialized();
    }
    if (mode == "swap" && step == 10) {
      if (g_rank == 0) std::swap(first, second);
      a.forget();  // the mean is over what follows
      b.forget();
    }
    if (mode == "extra" && step == 10) {
      b.sum_in(second);
      a.forget();
      b.forget();
    }
    for (Tensor* const tensor : {&a, &b}) {
      float* const buffer = tensor == &a ? first : second;
      if (named) describe(tensor == &a ? "a" : "b");
      if (mode.starts_with("empty"))
        tensor->scatter_in(buffer, some, uninitialized());
      else if (mode.starts_with("blocks"))
        tensor->scatter_in(buffer, step % 2 == 0 ? even : uneven);
      else if (mode.starts_with("functions") && step % 2 == 0)
        tensor->scatter_in(buffer, even);
      else
        tensor->sum_in(buffer);
    }
    if (mode == "single") {
      std::vector<float> more(kCount);
      MPI_Request request;
      MPI_Iallreduce(MPI_IN_PLACE, more.data(), int(kCount), MPI_FLOAT, MPI_SUM, g_comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (paused == MPI_REQUEST_NULL) continue;
    MPI_Pcontrol(0);
    MPI_Start(&paused);
    MPI_Wait(&paused, MPI_STATUS_IGNORE);
    MPI_Pcontrol(1);
  }
  if (paused != MPI_REQUEST_NULL) MPI_Request_free(&paused);
  if (mode == "freed") MPI_Comm_free(&g_comm);

  if (named && g_describe == nullptr) expected = "slimpi_describe_next";
  const double least = std::fmin(a.times_closer(), b.times_closer());
  const bool good = expected == "kept" ? least > 10 : expected == "lost" && least < 5;
  if (g_rank == 0) std::printf("  %s: %.1f times closer\n", mode.c_str(), least);
  g_failures = good ? 0 : 1;
  return end_mpi();
}
