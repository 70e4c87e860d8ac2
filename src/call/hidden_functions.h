// SPDX-License-Identifier: BSD-3-Clause
// Finds the MPI functions that a tool in front of slimpi hides: the tool calls MPI by its PMPI_
// names, so slimpi never sees these calls of the program.
#pragma once

namespace slimpi::call {

class Runtime;

// Not null while this thread runs a probe: slimpi calls an MPI function as the program would, to
// see whether the call reaches slimpi's own definition. During a probe, this definition only sets
// *t_probe. It tests t_probe only while g_fibers is above 0 (sums_in_flight()), so a probe also
// increments g_fibers.
inline constinit thread_local bool* t_probe = nullptr;
inline bool is_probe() {
  if (t_probe != nullptr) *t_probe = true;
  return t_probe != nullptr;
}

// Returns whether a tool in front of slimpi defines a function of MPI.
bool has_tool_in_front(const char* name);

// Finds the functions that a tool hides from slimpi, sets mpi::g_completions_hidden and
// g_starts_hidden accordingly, and warns of them on rank 0.
void find_hidden_functions(const Runtime& runtime);

}  // namespace slimpi::call
