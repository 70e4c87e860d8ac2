// SPDX-License-Identifier: BSD-3-Clause
// The header in front of every message of encoded values. The receiver compares the
// header with that of the message that it expects. If they differ, the call fails with a clear
// error instead of a wrong sum.
//
// Layout, little endian, 48 bytes:
//   0  u32 magic "SLMP"      4  u8 version   5  u8 codec   6  u8 bits   7  u8 rounding
//   8  u32 bucket           12  u32 sender  16  u64 first   24  u64 count
//  32  u32 call (low half)  36  u32 tensor (low half)       40  u32 payload bytes (low half)
//  44  u32 checksum of the 44 bytes before it
// The payload, the encoded values (kernels/format.h), follows directly.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "kernels/format.h"

namespace slimpi::comm {

constexpr std::size_t kHeaderBytes = 48;
constexpr std::uint8_t kWireVersion = 2;

// In place of the payload size: the hook (a user's codec) failed on the sender. Nothing follows.
constexpr std::uint32_t kNoPayload = UINT32_MAX;

// Set in the payload size of a hook's message if marks follow the payload, from the next multiple
// of 4 bytes on: 2 bits for each value, which mark infinities and NaNs.
constexpr std::uint32_t kMarked = 0x80000000;
constexpr std::uint64_t mark_bytes(std::uint64_t values) {
  return (values + 15) / 16 * 4;
}

struct MessageHeader {
  kernels::Format format;
  std::uint64_t first = 0;   // position of the segment in the vector
  std::uint64_t count = 0;   // elements
  std::uint64_t call = 0;    // number of the call on the communicator
  std::uint64_t tensor = 0;  // number of the tensor state
  std::uint32_t sender = 0;  // rank in the communicator

  // True if a user's hook encoded the payload. The codec byte is then 255, and only the sender
  // knows the payload's size.
  bool hook = false;
  // Set only with a hook. In a header to write: the bytes of the payload (below 2 GiB), plus the
  // bit kMarked if marks follow; or kNoPayload. In an expected header: the most bytes to accept.
  std::uint64_t payload = 0;
};

// Writes the header of `message` to the kHeaderBytes bytes at `to`.
void write_header(std::byte* to, const MessageHeader& message);

// Checks that the `received` bytes at `from` are the expected message: length, magic, checksum, and
// every field. The text of Status::bad_message names what was expected and what was received.
Status check_message(const std::byte* from, std::size_t received, const MessageHeader& expected);

// Returns MessageHeader::payload of a message that check_message() has accepted.
std::uint32_t payload_of(const std::byte* from);

// Reads the header of a hook's message and returns the length of the message in bytes, header and
// marks included. The length is a multiple of 4.
std::size_t hook_message_bytes(const std::byte* from);

}  // namespace slimpi::comm
