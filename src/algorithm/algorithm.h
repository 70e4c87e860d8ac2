// SPDX-License-Identifier: BSD-3-Clause
// The algorithms that call/sum.h can run. Each is a row of src/options/algorithms.def, whose
// functions a file of this directory defines.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "comm/call.h"
#include "comm/verdict.h"
#include "device/device.h"
#include "options/config.h"
#include "options/option_types.h"

namespace slimpi::algorithm {

// The functions of an algorithm, which several algorithms may share. Every algorithm has `run`; any
// other function is null if the algorithm has nothing to do in that step.
struct Functions {
  comm::Verdict (*run)(comm::Call& call);  // never null
  // Reserves the memory that `run` needs in call.scratch. The call has its plan and buffers by
  // then, but no stream, number or state.
  Status (*reserve)(const comm::Call& call) = nullptr;
  // Allocates the arrays in call.state (data that is kept from call to call) that `run` needs, so
  // that the ranks can agree on success before it runs. Not called for a call without state.
  Status (*reserve_state)(comm::Call& call) = nullptr;
  // Checks whether call.state, which an earlier call has filled, can belong to this call's values.
  // *fits may be true only if the effect of the state on the result has a bound that follows from
  // the values. If *fits is false on any rank, all ranks start over with state that is
  // `uninitialized`. Called after reserve_state, once input and output are in memory of one device.
  // Does not communicate.
  Status (*state_fits)(comm::Call& call, bool* fits) = nullptr;
  // Called before prepare(). Opens what calls of this plan need, such as a hook. Collective: if it
  // fails on one rank, it returns an error on all ranks.
  Status (*open)(const comm::Call& call) = nullptr;
  // Returns the rows and columns of the matrix that a call makes of its buffer. If
  // Algorithm::shapes is set, the ranks compare these shapes.
  Shape (*shape)(const comm::Plan& plan, const Config& config, std::uint64_t count) = nullptr;
  // Whether these functions also take reduce-scatters (Call::scatter) and all-gathers
  // (Call::gather).
  bool scatters = false;
};

// Declares the functions of each algorithm, which the algorithm's file defines.
namespace functions {
#define SLIMPI_ALGORITHM(name, argument, functions, ...) extern const Functions functions;
#include "options/algorithms.def"
}  // namespace functions

using kernels::Codec;

struct Algorithm {
  AlgorithmId id;
  const char* name;                       // the value of SLIMPI_ALGORITHM
  const char* argument;                   // what follows the name there, as ":PATH"; or ""
  const Functions* functions;             // never null
  Codec codec = Codec::float32;           // the codec of messages between nodes
  Rounding rounding = Rounding::nearest;  // unless SLIMPI_ROUNDING is set
  bool flat = false;                      // the hierarchy is always flat
  bool same_bytes = true;                 // all ranks get the same bytes (guarantee 1 of slimpi(7))
  bool talks_to_peers = false;            // uses SLIMPI_PEERS and SLIMPI_INTERVAL
  bool exact = false;                     // no compression error, so no error feedback
  bool keeps_state = false;               // needs tensor state even without error feedback
  bool takes_max_error = false;           // supports SLIMPI_MAX_ERROR
  bool sends_factors = false;             // does not send an encoded value for each element
  bool tried_by_auto = false;             // a candidate of SLIMPI_ALGORITHM=auto
  bool finite_only = false;               // left to MPI if any rank has an infinity or a NaN
  bool finds_nonfinite = false;           // run itself detects such input of any rank
  bool error_feedback = false;            // default of SLIMPI_ERROR_FEEDBACK
  std::uint64_t start = 0;                // default of SLIMPI_START
  bool shapes = false;                    // uses SLIMPI_POWERSGD_SHAPES

  bool has_argument() const { return argument[0] != '\0'; }
  comm::Verdict run(comm::Call& call) const { return functions->run(call); }
  Status reserve(const comm::Call& call) const {
    return functions->reserve == nullptr ? Status::ok : functions->reserve(call);
  }
  Status reserve_state(comm::Call& call) const {
    return functions->reserve_state == nullptr ? Status::ok : functions->reserve_state(call);
  }
  Status open(const comm::Call& call) const {
    return functions->open == nullptr ? Status::ok : functions->open(call);
  }
  Shape shape(const comm::Plan& plan, const Config& config, std::uint64_t count) const {
    return shapes ? functions->shape(plan, config, count) : Shape{};
  }
};

// Returns the algorithm for a value of SLIMPI_ALGORITHM, with or without the argument that follows
// the name; null for auto and off.
const Algorithm* find(std::string_view value);
std::span<const Algorithm> all();

// Reserves the memory of a call (Functions::reserve) and opens its streams. If the count is larger
// than in earlier calls, the ranks communicate, and *ready says whether all of them succeeded.
// Otherwise *ready is about this rank alone, and its failure is returned as an error of the call.
// As soon as the ranks know that some rank has buffers on a staged device (a GPU), the communicator
// uses the segment class `large`, with longer messages, in all calls.
Status prepare(const comm::Call& call, bool* ready);

}  // namespace slimpi::algorithm
