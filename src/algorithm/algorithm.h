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

// The functions of an algorithm, which several algorithms may share. A null function has nothing to
// do.
struct Functions {
  comm::Verdict (*run)(comm::Call& call);  // never null
  // Reserves the scratch memory that run needs. The call has its plan, buffers and scratch, but not
  // yet its stream, number and state.
  Status (*reserve)(const comm::Call& call) = nullptr;
  // Allocates the arrays that run needs in call.state (data that is kept from call to call), before
  // run, so that the ranks can agree whether all succeeded. Not called without state.
  Status (*reserve_state)(comm::Call& call) = nullptr;
  // Checks whether call.state, which an earlier call has used, can belong to this call's values:
  // *fits may be true only if the state changes the result by no more than a bound that follows
  // from the values. If *fits is false on any rank, all ranks begin anew, with state that is
  // `uninitialized`. Called after reserve_state, when input and output are in memory of one device.
  // Not collective.
  Status (*state_fits)(comm::Call& call, bool* fits) = nullptr;
  // Opens the objects that calls of this plan need, such as a hook, before prepare(). Collective;
  // an error is returned on all ranks.
  Status (*open)(const comm::Call& call) = nullptr;
  // Returns the rows and columns of the matrix that a call makes of its buffer. The ranks compare
  // these shapes if Algorithm::shapes is set.
  Shape (*shape)(const comm::Plan& plan, const Config& config, std::uint64_t count) = nullptr;
  // The functions also take reduce-scatters (Call::scatter) and all-gathers (Call::gather).
  bool scatters = false;
};

// The functions of each algorithm. The file of the algorithm defines them.
namespace functions {
#define SLIMPI_ALGORITHM(name, argument, functions, ...) extern const Functions functions;
#include "options/algorithms.def"
}  // namespace functions

using kernels::Codec;

struct Algorithm {
  AlgorithmId id;
  const char* name;                       // value of SLIMPI_ALGORITHM
  const char* argument;                   // the argument behind the name; "": none
  const Functions* functions;             // never null
  Codec codec = Codec::float32;           // codec of messages between nodes
  Rounding rounding = Rounding::nearest;  // if SLIMPI_ROUNDING is unset
  bool flat = false;                      // always hierarchy flat
  bool same_bytes = true;                 // all ranks get the same bytes (guarantee 1 of slimpi(7))
  bool talks_to_peers = false;            // uses SLIMPI_PEERS and SLIMPI_INTERVAL
  bool exact = false;                     // has no compression error for error feedback
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

// Returns the algorithm for a value of SLIMPI_ALGORITHM; null for auto and off. The argument behind
// the name may be missing.
const Algorithm* find(std::string_view value);
std::span<const Algorithm> all();

// Reserves memory for the call by Functions::reserve, and opens its streams. At a larger count than
// before, the ranks ask each other, and *ready says whether that worked on all of them. Otherwise
// *ready is this rank's alone, and a failure is an error of the call. Once the ranks know that one
// has buffers on a staged device, the segment class of the communicator stays `large`.
Status prepare(const comm::Call& call, bool* ready);

}  // namespace slimpi::algorithm
