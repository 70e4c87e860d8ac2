// SPDX-License-Identifier: BSD-3-Clause
// Finds out which functions of MPI a tool in front of slimpi hides from it: the tool calls MPI by
// its PMPI_ names, so slimpi never sees these calls of the program.
#pragma once

namespace slimpi::call {

class Runtime;

// Set while slimpi makes a probe: it calls a function of MPI as the program does, to see whether
// this call comes back to slimpi. Then slimpi's definition only sets *t_probe to true. Null: this
// thread makes no probe. During a probe g_fibers is above 0 (see sums_in_flight), because otherwise
// slimpi's definitions do not test t_probe.
inline constinit thread_local bool* t_probe = nullptr;
inline bool is_probe() {
  if (t_probe != nullptr) *t_probe = true;
  return t_probe != nullptr;
}

// Returns whether a tool in front of slimpi defines a function of MPI.
bool has_tool_in_front(const char* name);

// Finds the functions that a tool hides from slimpi (mpi::g_completions_hidden and
// g_starts_hidden), and warns of them on rank 0.
void find_hidden_functions(const Runtime& runtime);

}  // namespace slimpi::call
