// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/communicators.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

namespace fuzz {

namespace {

constexpr const char* kInter = "an intercommunicator";
constexpr std::size_t kMost = 12;  // at a time
constexpr std::size_t kKept = 2;   // MPI's own

using Ranks = std::vector<int>;

MPI_Comm split(MPI_Comm parent, int rank, Draws& draws) {
  const int colors = 1 + int(draws.below(3));
  const std::uint64_t order = draws.number();
  const bool reversed = draws.one_in(3), shuffled = draws.one_in(3);
  const int key =
      shuffled ? int(Draws::of(order, std::uint64_t(rank)) % 1000) : (reversed ? -rank : rank);
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split(parent, rank % colors, key, &made);
  return made;
}

// Draws some of the parent's ranks, at least one, in a random order.
Ranks draw_members(int size, std::uint64_t number) {
  Ranks members;
  for (int rank = 0; rank < size; ++rank)
    if (Draws::of(number, std::uint64_t(rank)) % 4 != 0) members.push_back(rank);
  if (members.empty()) members.push_back(0);
  if (number % 2 == 0)
    std::sort(members.begin(), members.end(), [&](int a, int b) {
      return Draws::of(~number, std::uint64_t(a)) < Draws::of(~number, std::uint64_t(b));
    });
  return members;
}

// Makes a communicator by MPI_Comm_create, or by MPI_Comm_create_group, which only the members
// call.
MPI_Comm of_group(MPI_Comm parent, int rank, int size, Draws& draws) {
  const std::uint64_t number = draws.number();
  const bool members_only = draws.one_in(2);
  const Ranks members = draw_members(size, number);
  MPI_Group all, some;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_group(parent, &all);
  MPI_Group_incl(all, int(members.size()), members.data(), &some);
  if (!members_only)
    MPI_Comm_create(parent, some, &made);
  else if (std::find(members.begin(), members.end(), rank) != members.end())
    MPI_Comm_create_group(parent, some, 3, &made);
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  return made;
}

MPI_Comm cart(MPI_Comm parent, int size, Draws& draws) {
  const int dimensions = 1 + int(draws.below(3));
  const bool smaller = draws.one_in(3), rows = draws.one_in(3);
  int extent[3] = {0, 0, 0}, periodic[3] = {1, 0, 1}, kept[3] = {0, 1, 1};
  MPI_Dims_create(smaller && size > 1 ? size - 1 : size, dimensions, extent);
  MPI_Comm grid = MPI_COMM_NULL, made = MPI_COMM_NULL;
  MPI_Cart_create(parent, dimensions, extent, periodic, 1, &grid);
  if (!rows || dimensions == 1 || grid == MPI_COMM_NULL) return grid;
  MPI_Cart_sub(grid, kept, &made);
  MPI_Comm_free(&grid);
  return made;
}

MPI_Comm graph(MPI_Comm parent, int rank, int size, Draws& draws) {
  MPI_Comm made = MPI_COMM_NULL;
  if (draws.one_in(2)) {
    const int from = (rank + size - 1) % size, to = (rank + 1) % size;
    MPI_Dist_graph_create_adjacent(parent, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 1, &made);
    return made;
  }
  Ranks index(static_cast<std::size_t>(size)), edges;
  for (int i = 0; i < size; ++i) {
    edges.push_back((i + 1) % size);
    index[std::size_t(i)] = int(edges.size());
  }
  MPI_Graph_create(parent, size, index.data(), edges.data(), 1, &made);
  return made;
}

// Makes an intercommunicator of the parent's even and odd ranks. `merged`: merges it into one
// communicator.
MPI_Comm of_two_groups(MPI_Comm parent, int rank, int size, bool merged, Draws& draws) {
  const bool odd_first = draws.one_in(2);
  if (size < 2) return MPI_COMM_NULL;
  MPI_Comm half, inter, made = MPI_COMM_NULL;
  MPI_Comm_split(parent, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, parent, 1 - rank % 2, 9, &inter);
  MPI_Comm_free(&half);
  if (!merged) return inter;
  MPI_Intercomm_merge(inter, (rank % 2 == 1) != odd_first, &made);
  MPI_Comm_free(&inter);
  return made;
}

MPI_Comm idup(MPI_Comm parent) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Request request;
  MPI_Comm_idup(parent, &made, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return made;
}
}  // namespace

std::vector<int> Communicator::node_of() const {
  std::map<int, int> numbers;
  std::vector<int> nodes;
  for (const int rank : world) {
    const int node = options.ranks_per_node == 0 ? 0 : rank / int(options.ranks_per_node);
    const int key = options.hierarchy == "flat" ? rank : node;
    nodes.push_back(numbers.emplace(key, int(numbers.size())).first->second);
  }
  return nodes;
}

Communicators::Communicators(MPI_Comm world) {
  add(world, Options::from_environment(), world == MPI_COMM_WORLD ? "MPI_COMM_WORLD" : "a copy");
  add(MPI_COMM_SELF, Options::from_environment(), "MPI_COMM_SELF");
}

void Communicators::add(MPI_Comm comm, const Options& options, const char* made_by) {
  Communicator added;
  added.comm = comm;
  added.options = options;
  added.made_by = made_by;
  // Ranks outside of the communicator set this, too: all ranks have the same table.
  added.inter = made_by == std::string_view(kInter);
  if (comm != MPI_COMM_NULL) {
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);  // MPICH's MPI_Comm_create inherits none
    MPI_Comm_rank(comm, &added.rank);
    MPI_Comm_size(comm, &added.size);
    added.world.resize(std::size_t(added.size));
    Ranks ranks(added.world.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    MPI_Group mine, world;
    MPI_Comm_group(comm, &mine);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(mine, added.size, ranks.data(), world, added.world.data());
    MPI_Group_free(&world);
    MPI_Group_free(&mine);
  }
  table_.push_back(std::move(added));
}

// Every number is drawn before a rank that is not in the parent returns.
MPI_Comm Communicators::make_from(const Communicator& parent, Draws& draws, const char** made_by) {
  const std::size_t kind = draws.below(10);
  constexpr const char* names[] = {
      "MPI_Comm_dup", "MPI_Comm_idup",   "MPI_Comm_split", "MPI_Comm_split",      "a group",
      "a group",      "MPI_Cart_create", "a graph",        "MPI_Intercomm_merge", kInter};
  *made_by = names[kind];
  if (parent.comm == MPI_COMM_NULL) return MPI_COMM_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  switch (kind) {
    case 0:
      MPI_Comm_dup(parent.comm, &made);
      return made;
    case 1:
      return idup(parent.comm);
    case 2:
    case 3:
      return split(parent.comm, parent.rank, draws);
    case 4:
    case 5:
      return of_group(parent.comm, parent.rank, parent.size, draws);
    case 6:
      return cart(parent.comm, parent.size, draws);
    case 7:
      return graph(parent.comm, parent.rank, parent.size, draws);
    default:
      return of_two_groups(parent.comm, parent.rank, parent.size, kind == 8, draws);
  }
}

void Communicators::make(Draws& draws) {
  if (table_.size() == kMost) free(draws);
  const std::size_t from = draws.below(table_.size());
  const bool with_info = draws.one_in(4);
  if (table_[from].inter) return;
  Options options = Options::from_environment();
  const char* made_by = "MPI_Comm_dup_with_info";
  MPI_Comm made = MPI_COMM_NULL;
  if (with_info) {
    MPI_Info info = options.draw(draws);
    if (table_[from].comm != MPI_COMM_NULL) MPI_Comm_dup_with_info(table_[from].comm, info, &made);
    MPI_Info_free(&info);
  } else {
    made = make_from(table_[from], draws, &made_by);
  }
  add(made, options, made_by);
}

void Communicators::release(std::size_t index, bool disconnect) {
  MPI_Comm comm = table_[index].comm;
  table_.erase(table_.begin() + std::ptrdiff_t(index));
  if (comm == MPI_COMM_NULL) return;
  if (disconnect)
    MPI_Comm_disconnect(&comm);
  else
    MPI_Comm_free(&comm);
}

void Communicators::free(Draws& draws, bool pending) {
  if (table_.size() == kKept) return;
  const std::size_t index = kKept + draws.below(table_.size() - kKept);
  release(index, !pending && draws.one_in(4));
}

void Communicators::renew(Draws& draws, const std::function<void(Communicator&)>& use) {
  const std::uint64_t number = draws.number();
  const bool with_info = draws.one_in(2);
  if (table_.size() == kKept) return;
  const std::size_t index = kKept + number % (table_.size() - kKept);
  use(table_[index]);
  release(index, false);
  Options options = Options::from_environment();
  MPI_Info info = MPI_INFO_NULL;
  if (with_info) info = options.draw(draws);
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup_with_info(table_[0].comm, info, &made);
  if (with_info) MPI_Info_free(&info);
  add(made, options, "MPI_Comm_dup_with_info after a free");
  use(table_.back());
}

void Communicators::free_all() {
  while (table_.size() > kKept) release(table_.size() - 1, false);
}

Communicator& Communicators::any(Draws& draws) {
  const std::size_t index = draws.below(table_.size());
  return draws.one_in(4) || index != 1 ? table_[index] : table_[0];
}

void Communicators::set_options(Draws& draws) {
  Communicator& communicator = any(draws);
  // Keys stay: every drawn set holds the same names.
  MPI_Info info = communicator.options.draw(draws);
  if (communicator.comm != MPI_COMM_NULL) MPI_Comm_set_info(communicator.comm, info);
  MPI_Info_free(&info);
  communicator.worst = 0;
}

}  // namespace fuzz
