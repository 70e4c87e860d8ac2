// SPDX-License-Identifier: BSD-3-Clause
// The header of every message of encoded values. The receiver compares it with the header that it
// expects, so that the wrong message makes the call fail with a clear error instead of a wrong sum.
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

// Replaces the payload size if the hook (a user's codec) failed on the sender. No payload follows.
constexpr std::uint32_t kNoPayload = UINT32_MAX;

// A bit of the payload size, set if marks follow the payload of a hook's message: 2 bits per value
// that mark infinities and NaNs, from the next multiple of 4 bytes on.
constexpr std::uint32_t kMarked = 0x80000000;
constexpr std::uint64_t mark_bytes(std::uint64_t values) {
  return (values + 15) / 16 * 4;
}

struct MessageHeader {
  kernels::Format format;
  std::uint64_t first = 0;   // where the segment begins in the vector
  std::uint64_t count = 0;   // elements
  std::uint64_t call = 0;    // the number of the call on the communicator
  std::uint64_t tensor = 0;  // the number of the tensor state
  std::uint32_t sender = 0;  // the rank in the communicator

  // Whether a user's hook encoded the payload. The codec byte is then 255, and only the sender
  // knows the size of the payload.
  bool hook = false;
  // Used only with a hook. In a header that is written, this is the number of bytes of the payload
  // (below 2 GiB), with the bit kMarked if marks follow; or kNoPayload. In an expected header, it
  // is the largest number of bytes to accept.
  std::uint64_t payload = 0;
};

// Writes the header of `message` to the kHeaderBytes bytes at `to`.
void write_header(std::byte* to, const MessageHeader& message);

// Checks that the `received` bytes at `from` are the expected message: length, magic, checksum and
// every field. The text of Status::bad_message has what was expected and what was received.
Status check_message(const std::byte* from, std::size_t received, const MessageHeader& expected);

// Returns MessageHeader::payload of a message that check_message() has accepted.
std::uint32_t payload_of(const std::byte* from);

// Returns the length in bytes of a hook's message, header and marks included, from the message's
// header. It is a multiple of 4.
std::size_t hook_message_bytes(const std::byte* from);

}  // namespace slimpi::comm
