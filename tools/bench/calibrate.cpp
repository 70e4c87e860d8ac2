// SPDX-License-Identifier: BSD-3-Clause
#include "tools/bench/calibrate.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/process.h"
#include "device/device.h"
#include "kernels/kernels.h"

namespace slimpi::bench {
namespace {

constexpr std::size_t kPiece = 64 << 10;   // bytes of a message, and floats of a segment
constexpr std::size_t kStream = 16 << 20;  // bytes of a bandwidth measurement
constexpr int kTag = 1;

// Returns the least result of `times` measurements: the time when nothing disturbs it.
double least_of(int times, const std::function<double()>& measure) {
  double least = measure();
  for (int i = 1; i < times; ++i) least = std::min(least, measure());
  return least;
}

double resident_bytes() {
  double total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * double(sysconf(_SC_PAGESIZE));
}

double processor_seconds() {
  return double(std::clock()) / CLOCKS_PER_SEC;
}

// Exchanges messages of `size` bytes with `peer`, `count` in each direction, with a few in flight
// at any time. With `calm`, sleeps between polls. Returns the seconds for all messages.
double stream(int peer, std::size_t size, std::size_t count, bool calm) {
  constexpr std::size_t kWindow = 8;
  static std::vector<char> out(kPiece), in(kWindow * kPiece);
  std::vector<MPI_Request> requests(2 * kWindow, MPI_REQUEST_NULL);
  std::size_t sent = 0, received = 0;
  const double start = PMPI_Wtime();
  const auto post = [&](std::size_t slot) {
    if (slot < kWindow && sent < count) {
      PMPI_Isend(out.data(), int(size), MPI_CHAR, peer, kTag, MPI_COMM_WORLD, &requests[slot]);
      ++sent;
    } else if (slot >= kWindow && received < count) {
      PMPI_Irecv(in.data() + (slot - kWindow) * kPiece, int(size), MPI_CHAR, peer, kTag,
                 MPI_COMM_WORLD, &requests[slot]);
      ++received;
    }
  };
  for (std::size_t slot = requests.size(); slot-- > 0;) post(slot);
  for (;;) {
    int finished = 0, slots[2 * kWindow];
    PMPI_Testsome(int(requests.size()), requests.data(), &finished, slots, MPI_STATUSES_IGNORE);
    if (finished == MPI_UNDEFINED) return PMPI_Wtime() - start;
    for (int i = 0; i < finished; ++i) post(std::size_t(slots[i]));
    if (finished == 0 && calm) usleep(200);
  }
}

// Returns the first rank of each node.
std::vector<int> leaders(const World& world) {
  std::vector<int> all(std::size_t(world.ranks)), found;
  const int mine = world.speaks_for_node ? 1 : 0;
  PMPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
  for (int rank = 0; rank < world.ranks; ++rank)
    if (all[std::size_t(rank)] == 1) found.push_back(rank);
  return found;
}

double one_way(int peer, bool first) {
  constexpr int kTimes = 300;
  char byte = 0;
  const double start = PMPI_Wtime();
  for (int i = 0; i < kTimes; ++i) {
    if (first) PMPI_Send(&byte, 1, MPI_CHAR, peer, kTag, MPI_COMM_WORLD);
    PMPI_Recv(&byte, 1, MPI_CHAR, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!first) PMPI_Send(&byte, 1, MPI_CHAR, peer, kTag, MPI_COMM_WORLD);
  }
  return (PMPI_Wtime() - start) / 2 / kTimes;
}

double exchange_per_byte(int peer) {
  const std::size_t size = 4 << 20;
  std::vector<char> out(size), in(size);
  return least_of(9, [&] {
    const double start = PMPI_Wtime();
    PMPI_Sendrecv(out.data(), int(size), MPI_CHAR, peer, kTag, in.data(), int(size), MPI_CHAR, peer,
                  kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return (PMPI_Wtime() - start) / double(size);
  });
}

// Measures the communication of two nodes.
void measure_pair(int peer, bool first, Calibration& calibration) {
  Constants& c = calibration.constants;
  const double pieces = double(kStream) / double(kPiece);
  (void)stream(peer, kPiece, std::size_t(pieces), false);
  c.latency = one_way(peer, first);
  c.exchange = exchange_per_byte(peer);
  std::array<double, 9> times;
  for (double& seconds : times) seconds = stream(peer, kPiece, std::size_t(pieces), false);
  std::sort(times.begin(), times.end());
  c.link = times[0] / double(kStream);
  calibration.link_spread = times[times.size() / 2] / times[0];
  c.overhead = least_of(5, [&] { return stream(peer, 64, 4000, false); }) / 4000;
  const double before = processor_seconds();
  (void)stream(peer, kPiece, 4 * std::size_t(pieces), true);
  c.copy = (processor_seconds() - before) / (8.0 * double(kStream));
}

double per_byte(const std::function<void(std::size_t)>& work, std::size_t floats) {
  return least_of(5,
                  [&] {
                    const double start = PMPI_Wtime();
                    for (std::size_t at = 0; at < floats; at += kPiece) work(at);
                    return PMPI_Wtime() - start;
                  }) /
         double(floats * sizeof(float));
}

// Measures the processor's time for the arithmetic, segment by segment from memory.
void measure_arithmetic(Constants& c) {
  const kernels::Kernels& k = *device::host().kernels();
  const std::size_t floats = kStream / sizeof(float);
  std::vector<float> a(floats), b(floats, 1.0F), coded(kPiece * 2);
  for (std::size_t i = 0; i < floats; ++i) a[i] = float(i % 1009) * 1e-3F - 0.5F;
  auto* bytes = reinterpret_cast<std::byte*>(coded.data());
  c.add = per_byte(
      [&](std::size_t at) {
        const float* in[] = {a.data() + at, b.data() + at};
        k.sum(in, 2, kPiece, b.data() + at, nullptr);
      },
      floats);
  c.node_copy = per_byte(
      [&](std::size_t at) { std::memcpy(b.data() + at, a.data() + at, kPiece * sizeof(float)); },
      floats);
  for (int bits = 1; bits <= kernels::kMostBits; ++bits) {
    kernels::Format format;
    format.codec = kernels::Codec::quantized;
    format.bits = std::uint8_t(bits);
    c.encode[std::size_t(bits)] = per_byte(
        [&](std::size_t at) {
          k.encode(format, {}, a.data() + at, nullptr, kPiece, bytes, nullptr);
        },
        floats);
    c.decode[std::size_t(bits)] = per_byte(
        [&](std::size_t at) { k.decode_add(format, bytes, kPiece, b.data() + at, nullptr); },
        floats);
  }
}

}  // namespace

Contact first_contact() {
  int rank = 0, ranks = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char byte = 0;
  const auto meet = [&](int distance) {
    const double start = PMPI_Wtime();
    PMPI_Sendrecv_replace(&byte, 1, MPI_CHAR, (rank + distance) % ranks, kTag,
                          (rank - distance + ranks) % ranks, kTag, MPI_COMM_WORLD,
                          MPI_STATUS_IGNORE);
    return PMPI_Wtime() - start;
  };
  Contact contact;
  const double memory = resident_bytes();
  for (int distance = 1; distance < ranks; ++distance) contact.seconds += meet(distance);
  contact.bytes = resident_bytes() - memory;
  for (int distance = 1; distance < ranks; ++distance) contact.seconds -= meet(distance);
  contact.seconds = std::max(0.0, contact.seconds / std::max(1, ranks - 1));
  contact.bytes /= std::max(1, ranks - 1);
  return contact;
}

std::string calibration_command(const std::string& file) {
  return "mpiexec -n 2 -ppn 1 slimpi-bench --calibrate " + file;
}

Calibration calibrate(const World& world, const Contact& contact) {
  Calibration calibration;
  Constants& c = calibration.constants;
  c.cores = int(std::thread::hardware_concurrency());
  const std::vector<int> nodes = leaders(world);
  wait_for_all();
  if (world.rank == nodes[0]) measure_pair(nodes[1], true, calibration);
  if (world.rank == nodes[1]) measure_pair(nodes[0], false, calibration);
  wait_for_all();
  if (world.rank == nodes[0]) measure_arithmetic(c);
  wait_for_all();
  c.peer_setup = contact.seconds;
  c.peer_memory = std::max(0.0, contact.bytes);
  // The first rank is the first one of its node, so it has measured.
  static_assert(std::is_trivially_copyable_v<Calibration>);
  PMPI_Bcast(&calibration, sizeof calibration, MPI_BYTE, 0, MPI_COMM_WORLD);
  return calibration;
}

std::string summary(const Options& options, const Calibration& calibration) {
  // If the times of one link differ by more than this factor, they were disturbed. Then the least
  // time may be disturbed, too.
  constexpr double kStable = 1.1;
  const Constants& c = calibration.constants;
  const double payload = 8 / c.link;
  std::string text = fmt::format(
      "# slimpi-bench: constants measured between two nodes, in {}\n"
      "# link      {:.4g} Mbit/s of payload in each direction{}\n"
      "# latency   {:.4g} us one way\n"
      "# messages  {:.4g} us of a processor each, {:.3g} ns a byte\n",
      options.calibrate, payload / 1e6,
      options.wire > 0 ? fmt::format(", {:.0f} % of what {:.6g} Mbit/s can carry",
                                     100 * payload / (options.wire * kPayload), options.wire / 1e6)
                       : "; --wire RATE compares it with the link's rate",
      c.latency * 1e6, c.overhead * 1e6, c.copy * 1e9);
  const bool below = options.wire > 0 && payload < 0.8 * options.wire * kPayload;
  if (calibration.link_spread > kStable || below)
    text += fmt::format(
        "# unstable: {}; repeat it where nothing else runs, with one rank on each node\n",
        below ? "the link gave less than 80 % of its rate"
              : fmt::format("half of the times of the link were {:.0f} % or more above the least",
                            100 * (calibration.link_spread - 1)));
  return text + fmt::format("# next: slimpi-bench --predict --constants {} --nodes 16 --size 64M\n",
                            shell_word(options.calibrate));
}

}  // namespace slimpi::bench
