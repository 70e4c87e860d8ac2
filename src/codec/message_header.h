// SPDX-License-Identifier: BSD-3-Clause
// The header in front of every message between ranks. Sender and receiver both know what a message
// has to be; the header proves that they know the same, so that two ranks that do not fit together
// fail with a clear line instead of adding up noise.
//
// Layout, little endian, 48 bytes:
//   0  u32 magic "SLMP"      4  u8 version   5  u8 codec   6  u8 bits   7  u8 rounding
//   8  u32 bucket           12  u32 sender  16  u64 first   24  u64 count
//  32  u32 call (low half)  36  u32 slot (low half)         40  u32 payload bytes (low half)
//  44  u32 checksum of the 44 bytes before it
// The piece (kernels/format.h) follows at once.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "kernels/format.h"

namespace slimpi::codec {

constexpr std::size_t kHeaderBytes = 48;
constexpr std::uint8_t kWireVersion = 1;

// Payload of a message whose sender's hook failed: nothing follows the header.
constexpr std::uint32_t kNoPayload = UINT32_MAX;

// What a message is about.
struct Message {
  kernels::Format format;
  std::uint64_t first = 0;   // element of the call's buffer that the piece starts at
  std::uint64_t count = 0;   // elements
  std::uint64_t call = 0;    // of the communicator
  std::uint64_t tensor = 0;  // number of the state that went into it
  std::uint32_t sender = 0;  // rank in the communicator

  // A piece that a user's hook encoded, whose size only its sender knows; its codec byte is 255.
  bool hook = false;
  std::uint64_t payload = 0;  // bytes, or kNoPayload; of an expected message the most, below 4 GiB
};

// Writes the header of `message` to the kHeaderBytes bytes at `to`.
void write_header(std::byte* to, const Message& message);

// Checks `received` bytes at `from` against what was expected: long enough, ours, this version,
// this call's. Status::bad_message says what was expected and what came.
Status check_message(const std::byte* from, std::size_t received, const Message& expected);

// Bytes of payload that a checked message says it has, or kNoPayload.
std::uint32_t payload_of(const std::byte* from);

}  // namespace slimpi::codec
