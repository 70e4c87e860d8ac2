// SPDX-License-Identifier: BSD-3-Clause
// Error feedback brings back what compression lost. Run under the preload, with options in the
// environment. Usage: feedback MODE
//   mean           the mean of 200 calls on one input is at least 10 times closer to the exact sum
//                  than one call
//   falls          the mean of 400 calls is 3 times closer than the mean of 100 calls
//   tiny           sums of zeros after others, and of values of 7e-34
//   draws          3 ranks, qsgd: ranks and calls draw independently
//   steps          steps with infinities and NaNs, or with finite values whose sum overflows, leave
//                  no trace in the results of other steps
//   large          bf16: steps that might overflow are summed without feedback
#include "tests/helper/base/program.h"

#include "tests/mpi/values/inputs.h"

namespace {

Case input_of(std::size_t count, std::uint64_t seed) {
  return {Family::normal, count, seed, false, false, false, g_size};
}

// Sums values of very different sizes, so that `packed` gives some buckets no bits.
void mean_falls() {
  constexpr std::size_t kCount = 6000;
  std::vector<float> in(kCount), out(kCount);
  std::vector<double> exact(kCount), sum(kCount);
  for (int rank = 0; rank < g_size; ++rank)
    for (std::size_t i = 0; i < kCount; ++i) {
      const float value = std::ldexp(make_value(input_of(kCount, 12), rank, i), -int(i / 500));
      exact[i] += double(value);
      if (rank == g_rank) in[i] = value;
    }
  double before = 0;
  for (int call = 1; call <= 400; ++call) {
    MPI_Allreduce(in.data(), out.data(), int(kCount), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double squares = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      sum[i] += double(out[i]);
      squares += std::pow(sum[i] / call - exact[i], 2);
    }
    if (call == 100) before = std::sqrt(squares);
    if (call != 400) continue;
    if (g_rank == 0) std::printf("  %.2f times closer\n", before / std::sqrt(squares));
    check(std::sqrt(squares) * 3 < before, "the mean of 400 calls is not 3 times closer");
  }
}

// Makes sums of zeros and of tiny values. SLIMPI_VERIFY checks them.
void tiny() {
  constexpr std::size_t kCount = 20000;
  std::vector<float> in(kCount), out(kCount);
  for (const float scale : {1.0f, 0.0f, 1.0f, 7e-34f, 0.0f}) {
    for (std::size_t i = 0; i < kCount; ++i)
      in[i] = scale < 1e-30f ? scale : scale * make_value(input_of(kCount, 12), g_rank, i);
    MPI_Allreduce(in.data(), out.data(), int(kCount), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
}

void mean_of_calls() {
  constexpr int kCalls = 200;
  const Case test = input_of(20000, 11);
  const std::vector<double> exact = exact_sum(test);
  const std::vector<float> in = make_input(test, g_rank);
  std::vector<float> out(test.count);
  std::vector<double> mean(test.count);
  double once = 0, often = 0;
  for (int call = 0; call < kCalls; ++call) {
    MPI_Allreduce(in.data(), out.data(), int(test.count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < test.count; ++i) mean[i] += double(out[i]) / kCalls;
    if (call == 0)
      for (std::size_t i = 0; i < test.count; ++i) once += std::pow(double(out[i]) - exact[i], 2);
  }
  for (std::size_t i = 0; i < test.count; ++i) often += std::pow(mean[i] - exact[i], 2);
  const double times = std::sqrt(once / often);
  if (g_rank == 0) std::printf("  %.1f times closer\n", times);
  check(once > 0 && times >= 10, "the mean of 200 calls is not 10 times closer");
}

// Checks that ranks and calls draw independently. The quantization step of every bucket is 1. Two
// senders have 127.5, which each rounds to 127 or 128 by a draw of its own, so that their sum is
// 254, 255 or 256. The owner adds its exact 128.5 and rounds to a step of 3, so the results are
// 381, 384 or 387, and their frequencies show whether the two draws are independent.
void draws() {
  constexpr std::size_t kBucket = 512, kCount = 3 * 40 * kBucket;
  std::vector<float> in(kCount), out(kCount), last(kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    in[i] = i % kBucket == 0                ? 0
            : i % kBucket == 1              ? 255
            : int(i * 3 / kCount) == g_rank ? 128.5f
                                            : 127.5f;
  double lowest = 0, highest = 0, all = 0, other = 0;
  for (int call = 0; call < 2; ++call) {
    std::swap(out, last);
    MPI_Allreduce(in.data(), out.data(), int(kCount), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < kCount; ++i) {
      if (i % kBucket < 2) continue;
      check(out[i] == 381 || out[i] == 384 || out[i] == 387, "not one of the three levels");
      lowest += out[i] == 381;
      highest += out[i] == 387;
      other += call == 1 && out[i] != last[i];
      all += 1;
    }
  }
  if (g_rank == 0) std::printf("  %.4f lowest, %.4f highest\n", lowest / all, highest / all);
  check(std::fabs(highest / all - 1.0 / 24) < 0.004, "the ranks draw alike");
  check(std::fabs(lowest / all - 5.0 / 24) < 0.008, "the draws are not uniform");
  check(other / all > 0.1, "the calls draw alike");
}

// Makes a step not finite, in the way number `way`. Only the sum at `spot` is affected.
void spoil(int way, std::vector<float>& buffer, std::size_t spot) {
  const float infinity = std::numeric_limits<float>::infinity();
  const bool first = g_rank == 0, last = g_rank == g_size - 1;
  if (way == 0 && last) buffer[spot] = std::nanf("");
  if (way == 1 && last) buffer[spot] = infinity;
  if (way == 2 && (first || last)) buffer[spot] = first ? -infinity : infinity;
  // Each value is finite, but the sum of two is more than a float, or fp16, can hold.
  const char* const algorithm = std::getenv("SLIMPI_ALGORITHM");
  const bool half = algorithm != nullptr && std::strcmp(algorithm, "fp16") == 0;
  if (way == 3) buffer[spot] = half ? 4.0e4f : 2.0e38f;
}

// Returns the results of the steps that are finite, on a new communicator. `nonfinite`: whether
// there are other steps between them. All inputs are multiplied by `scale`.
std::vector<float> clean_results(bool nonfinite, float scale = 1, const char* feedback = "1") {
  constexpr std::size_t kCount = 20001, kSpot = kCount / 2;
  MPI_Comm comm;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "slimpi_error_feedback", feedback);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  MPI_Info_free(&info);
  std::vector<float> buffer(kCount), results;
  const auto fill = [&](std::uint64_t seed) {  // at the same address each time
    const std::vector<float> in = make_input(input_of(kCount, seed), g_rank);
    for (std::size_t i = 0; i < kCount; ++i) buffer[i] = scale * in[i];
  };
  const auto sum = [&] {
    MPI_Allreduce(MPI_IN_PLACE, buffer.data(), int(kCount), MPI_FLOAT, MPI_SUM, comm);
  };
  for (int call = 0; call < 9; ++call) {
    if (nonfinite && call > 2) {
      fill(70 + std::uint64_t(call));
      spoil(call % 4, buffer, kSpot);
      sum();
      check(!std::isfinite(buffer[kSpot]), "what is not finite is lost");
      for (std::size_t i = 0; i < kCount; ++i)
        check(std::isfinite(buffer[i]) || (i < kSpot + 512 && i + 512 > kSpot),
              "what is not finite spreads");
    }
    fill(30 + std::uint64_t(call));
    sum();
    results.insert(results.end(), buffer.begin(), buffer.end());
  }
  MPI_Comm_free(&comm);
  return results;
}

void steps() {
  const std::vector<float> clean = clean_results(false), other = clean_results(true);
  check(std::memcmp(clean.data(), other.data(), clean.size() * sizeof(float)) == 0,
        "a step that is not finite leaves a trace");
  const Case first = input_of(20001, 30);
  const std::vector<double> exact = exact_sum(first);
  bool lossy = false;
  for (std::size_t i = 0; i < first.count; ++i) lossy = lossy || exact[i] != double(clean[i]);
  check(lossy, "nothing was lost, so nothing is shown");
}

// Scales the inputs by a power of two, which changes no digit. If slimpi sums the large values
// without feedback, as it must, the results are those of small values without feedback, scaled.
void large() {
  constexpr float kScale = 0x1p123f;
  const std::vector<float> usual = clean_results(false, 1, "0"),
                           large = clean_results(false, kScale);
  bool huge = false, same = true;
  for (std::size_t i = 0; i < usual.size(); ++i) {
    huge = huge || std::fabs(large[i]) > std::numeric_limits<float>::max() / 8;
    same = same && large[i] == kScale * usual[i];
  }
  check(huge, "the values are not large");
  check(same, "large values are summed in another way");
}

}  // namespace

int main(int argc, char** argv) {
  begin_mpi();
  const std::string mode = argc > 1 ? argv[1] : "";
  const struct {
    const char* name;
    void (*run)();
  } modes[] = {{"mean", mean_of_calls}, {"falls", mean_falls}, {"tiny", tiny},
               {"draws", draws},        {"steps", steps},      {"large", large}};
  bool known = false;
  for (const auto& one : modes) {
    if (mode != one.name) continue;
    one.run();
    known = true;
  }
  check(known, "usage: see the top of feedback.cpp");
  return end_mpi();
}
