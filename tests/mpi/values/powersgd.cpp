// SPDX-License-Identifier: BSD-3-Clause
// A plain MPI program that sums matrices of which it knows the rank, run under the preload with
// SLIMPI_ALGORITHM=powersgd or batched_powersgd. In every scenario all ranks must hold the same
// bytes after every call.
// Usage: powersgd shared ROWS COLUMNS RANK CALLS same|new ERROR   the sums have this rank and come
//            back; the rows of every call are the same or new
//        powersgd best ROWS COLUMNS RANK CALLS ERROR   the error ends this near the smallest one
//        powersgd track ROWS COLUMNS CALLS ERROR   the sum of the results follows the exact sum
//        powersgd dump ROWS COLUMNS CALLS BAD FILE   the results into a file; BAD is a kind of
//            step to put in the middle, that must pass: none, nan, infinity, opposite,
//            huge, large
//        powersgd zero ROWS COLUMNS RANK ROUNDS   zero matrices, and low ranks, between full ones
//        powersgd disorder ROWS COLUMNS RANK   rank 0 takes two buffers in another order
//        powersgd boundary COUNT:exact|low...   whether these counts go exact
//        powersgd hint COUNT ROWS COLUMNS exact|low   the same after slimpi_describe_next
#include "tests/helper/base/program.h"

#include "tests/mpi/values/inputs.h"

namespace {

using Floats = std::vector<float>;

void expect(bool good, const char* what, double got = 0) {
  if (!good && ++g_failures <= 5) std::fprintf(stderr, "rank %d: %s (%g)\n", g_rank, what, got);
}

double normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const double u = draw(seed, stream, index), v = draw(seed + 7, stream, index);
  return std::sqrt(-2 * std::log(1 - u)) * std::cos(6.283185307179586 * v);
}

// Returns the input of one rank: normally distributed numbers, so that the matrix has full rank.
Floats full(std::size_t count, std::uint64_t seed, int rank) {
  Floats m(count);
  for (std::size_t i = 0; i < count; ++i) m[i] = float(normal(seed, std::uint64_t(rank), i));
  return m;
}

// Returns left * right^T. The left factor is the same on every rank and in every call, so the sum
// over ranks has the same column space.
Floats of_rank(std::size_t rows, std::size_t columns, int rank, std::uint64_t seed, int owner) {
  Floats m(rows * columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (int k = 0; k < rank; ++k)
        sum += normal(1000, std::uint64_t(k), i) * normal(seed, std::uint64_t(owner * 64 + k), j);
      m[i * columns + j] = float(sum);
    }
  return m;
}

// Makes a call, in place every second time. Checks that the input does not change and that all
// ranks get the same bytes.
Floats all_reduce(const Floats& input, Floats& buffer) {
  static int calls = 0;
  Floats in = input;
  if (calls++ % 2 == 0) {
    buffer = input;
    MPI_Allreduce(MPI_IN_PLACE, buffer.data(), int(buffer.size()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  } else {
    MPI_Allreduce(in.data(), buffer.data(), int(buffer.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    expect(std::memcmp(in.data(), input.data(), in.size() * sizeof(float)) == 0,
           "the input was changed");
  }
  check(has_rank_0_s(buffer.data(), buffer.size() * sizeof(float)),
        "the bytes differ from rank 0's");
  return buffer;
}

// Returns the sum of all ranks' inputs, added in rank order, as an exact schedule does.
Floats exact_sum(const Floats& input) {
  Floats all(input.size() * std::size_t(g_size)), sum(input.size());
  PMPI_Allgather(input.data(), int(input.size()), MPI_FLOAT, all.data(), int(input.size()),
                 MPI_FLOAT, MPI_COMM_WORLD);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] = all[i];
    for (int r = 1; r < g_size; ++r) sum[i] += all[std::size_t(r) * sum.size() + i];
  }
  return sum;
}

double norm(const Floats& a) {
  double squares = 0;
  for (const float x : a) squares += double(x) * x;
  return std::sqrt(squares);
}

double distance(const Floats& a, const Floats& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += std::pow(double(a[i]) - b[i], 2);
  return std::sqrt(squares);
}

void shared(std::size_t rows, std::size_t columns, int rank, int calls, bool uninitialized,
            double allowed) {
  Floats buffer(rows * columns);
  for (int call = 0; call < calls; ++call) {
    const std::uint64_t seed = uninitialized ? 50 + std::uint64_t(call) : 50;
    const Floats in = of_rank(rows, columns, rank, seed, g_rank);
    const Floats sum = exact_sum(in), out = all_reduce(in, buffer);
    const double error = distance(out, sum) / norm(sum);
    expect(error < allowed, "a sum of low rank did not come back", error);
  }
}

// Sums a matrix with singular values 2^-k, because then the error of the best matrix of a given
// rank is known.
void best(std::size_t rows, std::size_t columns, int rank, int calls, double allowed) {
  Floats buffer(rows * columns), in(buffer);
  for (std::size_t i = 0; i < std::min(rows, columns) && i < 20; ++i)
    in[i * columns + (7 * i + 3) % columns] = float(std::ldexp(1.0, -int(i)) / g_size);
  double optimum = 0;
  for (int k = rank; k < 20; ++k) optimum += std::ldexp(1.0, -2 * k);
  optimum = std::sqrt(optimum);
  const Floats sum = exact_sum(in);
  double error = 0;
  for (int call = 0; call < calls; ++call) error = distance(all_reduce(in, buffer), sum);
  expect(error >= optimum * (1 - 1e-5), "better than any matrix of this rank", error / optimum);
  expect(error <= optimum * allowed, "the best directions were not found", error / optimum);
}

void track(std::size_t rows, std::size_t columns, int calls, double allowed) {
  Floats buffer(rows * columns), total(buffer), exact(buffer);
  for (int call = 0; call < calls; ++call) {
    Floats in = full(buffer.size(), 9, g_rank);  // a drift that stays, and noise
    const Floats noise = full(buffer.size(), 100 + std::uint64_t(call), g_rank);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] += 0.5f * noise[i];
    const Floats sum = exact_sum(in), out = all_reduce(in, buffer);
    for (std::size_t i = 0; i < in.size(); ++i) {
      total[i] += out[i];
      exact[i] += sum[i];
    }
  }
  const double error = distance(total, exact) / norm(exact);
  if (g_rank == 0) std::printf("after %d calls the sum is off by %.4f\n", calls, error);
  expect(error < allowed, "the results do not follow the exact sums", error);
}

// Sets the column of element `spot` to zero, as in every finite call, so that the row of Q for this
// column is zero, too.
Floats with_zero_column(Floats in, std::size_t columns, std::size_t spot) {
  for (std::size_t i = spot % columns; i < in.size(); i += columns) in[i] = 0;
  return in;
}

void bad_step(const std::string& kind, std::size_t spot, Floats& buffer) {
  Floats in = full(buffer.size(), 77, g_rank);
  const float infinity = std::numeric_limits<float>::infinity();
  if (kind == "nan" && g_rank == g_size - 1) in[spot] = std::nanf("");
  if (kind == "infinity" && g_rank == 0) in[spot] = -infinity;
  if (kind == "opposite" && g_rank < 2) in[spot] = g_rank == 0 ? infinity : -infinity;
  if (kind == "large")
    for (float& x : in) x = g_rank % 2 == 0 ? FLT_MAX : -FLT_MAX;
  if (kind == "huge")  // every vector of P overflows; M^T times what is made of it need not
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] = (draw(5, 0, i) < 0.5) == (g_rank % 2 == 0) ? FLT_MAX : -FLT_MAX;
  const std::uint64_t before = compressed_calls();
  const Floats sum = exact_sum(in), out = all_reduce(in, buffer);
  expect(compressed_calls() == before, "a step that cannot be compressed was");
  for (std::size_t i = 0; i < out.size(); ++i)
    expect(std::isfinite(sum[i]) ? std::fabs(out[i] - sum[i]) < 1e-5 : !std::isfinite(out[i]),
           "a step that passed is not MPI's sum", out[i]);
}

void dump(std::size_t rows, std::size_t columns, int calls, const std::string& bad,
          const char* file) {
  Floats buffer(rows * columns);
  std::FILE* const to = g_rank == 0 ? std::fopen(file, "wb") : nullptr;
  const std::size_t spot = buffer.size() / 3;
  for (int call = 0; call < calls; ++call) {
    if (call == calls / 2 && bad != "none") {  // two, so that later calls are in place as without
      bad_step(bad, spot, buffer);
      bad_step(bad, spot + 1, buffer);
    }
    const Floats in = full(buffer.size(), 200 + std::uint64_t(call), g_rank);
    const Floats out = all_reduce(with_zero_column(in, columns, spot), buffer);
    if (to != nullptr) std::fwrite(out.data(), sizeof(float), out.size(), to);
  }
  if (to != nullptr) expect(std::fclose(to) == 0, "the file could not be written");
  expect(compressed_calls() == std::uint64_t(calls), "not every clean call was taken");
}

void zero(std::size_t rows, std::size_t columns, int rank, int rounds) {
  Floats buffer(rows * columns);
  const Floats nothing(buffer.size(), -0.0f), positive(buffer.size(), 0.0f);
  for (int round = 0; round < rounds; ++round) {
    for (int call = 0; call < 2; ++call) {
      const Floats out = all_reduce(nothing, buffer);
      expect(std::memcmp(out.data(), positive.data(), out.size() * sizeof(float)) == 0,
             "a zero matrix is not zero");
    }
    for (const int low : {1, rank, 0, rank}) {  // directions that were lost come back
      const Floats in = of_rank(rows, columns, low, 300 + std::uint64_t(10 * round + low), g_rank);
      const Floats sum = exact_sum(in), out = all_reduce(in, buffer);
      const double error = distance(out, sum);
      expect(error <= 1e-4 * norm(sum) + 1e-3, "the call after a zero matrix is off", error);
    }
  }
  // With these scales, squares of values are outside the range of a float.
  for (const float scale : {1e-30f, 1e25f, 1e-15f}) {
    for (int call = 0; call < 2; ++call) {
      Floats in = of_rank(rows, columns, rank, 400, g_rank);
      for (float& x : in) x *= scale;
      const Floats sum = exact_sum(in), out = all_reduce(in, buffer);
      if (call == 1 || scale > 1) {
        const double error = distance(out, sum) / norm(sum);
        expect(error < 1e-3 || scale < 1, "a matrix of another scale is off", error);
        expect(norm(out) > 0.5 * norm(sum), "a matrix of another scale is lost", norm(out));
      }
    }
  }
}

void disorder(std::size_t rows, std::size_t columns, int rank) {
  Floats buffers[] = {Floats(rows * columns), Floats(rows * columns)};
  for (int call = 0; call < 12; ++call) {
    const bool other = call >= 6 && g_rank == 0;
    const Floats in = of_rank(rows, columns, rank, 60 + std::uint64_t(call), g_rank);
    const Floats sum = exact_sum(in), out = all_reduce(in, buffers[(call + other) % 2]);
    const double error = distance(out, sum) / norm(sum);
    expect(error < 1e-2, "state of another buffer went into a sum", error);
  }
}

void boundary(std::size_t count, bool exact) {
  const std::uint64_t before = compressed_calls();
  Floats buffer(count);
  const Floats in = full(count, 5, g_rank);
  const Floats sum = exact_sum(in), out = all_reduce(in, buffer);
  const bool same = std::memcmp(out.data(), sum.data(), count * sizeof(float)) == 0;
  expect(same == exact, exact ? "a matrix without saving was compressed" : "it went exact",
         double(count));
  expect(compressed_calls() == before + 1, "the call was left to MPI");
}

void hint(std::size_t count, std::size_t rows, std::size_t columns, bool exact) {
  using Describe = int(const slimpi_tensor_t*);
  const auto describe = reinterpret_cast<Describe*>(dlsym(RTLD_DEFAULT, "slimpi_describe_next"));
  const slimpi_matrix_t matrix = {rows, columns};
  const slimpi_tensor_t tensor = {sizeof tensor, nullptr, &matrix, 1};
  expect(describe != nullptr && describe(&tensor) == 0, "the hint was refused");
  boundary(count, exact);
}

}  // namespace

int main(int argc, char** argv) {
  begin_mpi();
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto number = [&](std::size_t i) { return std::size_t(std::stoull(words.at(i))); };
  const std::string what = words.empty() ? "" : words[0];
  if (what == "shared")
    shared(number(1), number(2), int(number(3)), int(number(4)), words.at(5) == "new",
           std::stod(words.at(6)));
  else if (what == "best")
    best(number(1), number(2), int(number(3)), int(number(4)), std::stod(words.at(5)));
  else if (what == "track")
    track(number(1), number(2), int(number(3)), std::stod(words.at(4)));
  else if (what == "dump")
    dump(number(1), number(2), int(number(3)), words.at(4), words.at(5).c_str());
  else if (what == "zero")
    zero(number(1), number(2), int(number(3)), int(number(4)));
  else if (what == "disorder")
    disorder(number(1), number(2), int(number(3)));
  else if (what == "boundary")
    for (std::size_t i = 1; i < words.size(); ++i)
      boundary(number(i), words[i].ends_with(":exact"));
  else if (what == "hint")
    hint(number(1), number(2), number(3), words.at(4) == "exact");
  else
    expect(false, "usage: see the top of powersgd.cpp");
  return end_mpi();
}
