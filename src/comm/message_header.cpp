// SPDX-License-Identifier: BSD-3-Clause
#include "comm/message_header.h"

#include <cstring>
#include <string>

#include "base/round_up.h"

namespace slimpi::comm {

namespace {

constexpr std::uint32_t kMagic = 0x504d4c53;  // "SLMP" in memory
constexpr std::uint8_t kHeaderOfHook = 255;

struct Header {
  std::uint32_t magic;
  std::uint8_t version, codec, bits, rounding;
  std::uint32_t bucket, sender;
  std::uint64_t first, count;
  std::uint32_t call, tensor, payload, checksum;
};
static_assert(sizeof(Header) == kHeaderBytes);

std::uint32_t checksum(const Header& header) {
  unsigned char bytes[sizeof header];
  std::memcpy(bytes, &header, sizeof header);
  std::uint32_t value = 2166136261u;  // FNV-1a
  for (std::size_t i = 0; i < offsetof(Header, checksum); ++i)
    value = (value ^ bytes[i]) * 16777619u;
  return value;
}

Header header_of(const MessageHeader& message) {
  Header header{};
  header.magic = kMagic;
  header.version = kWireVersion;
  header.codec = message.hook ? kHeaderOfHook : std::uint8_t(message.format.codec);
  header.bits = message.format.bits;
  header.rounding = message.format.stochastic ? 1 : 0;
  header.bucket = message.format.bucket;
  header.sender = message.sender;
  header.first = message.first;
  header.count = message.count;
  header.call = std::uint32_t(message.call);
  header.tensor = std::uint32_t(message.tensor);
  header.payload = std::uint32_t(
      message.hook ? message.payload : kernels::encoded_bytes(message.format, message.count));
  header.checksum = checksum(header);
  return header;
}

std::string differing(const Header& got, const Header& expected) {
  std::string text;
  const auto compare = [&](const char* name, std::uint64_t a, std::uint64_t b) {
    if (a != b)
      text += std::string(text.empty() ? "" : ", ") + name + " " + std::to_string(a) + " where " +
              std::to_string(b) + " was expected";
  };
  compare("wire version", got.version, expected.version);
  compare("codec", got.codec, expected.codec);
  compare("bits", got.bits, expected.bits);
  compare("rounding", got.rounding, expected.rounding);
  compare("bucket", got.bucket, expected.bucket);
  compare("sender", got.sender, expected.sender);
  compare("first element", got.first, expected.first);
  compare("count", got.count, expected.count);
  compare("call", got.call, expected.call);
  compare("tensor", got.tensor, expected.tensor);
  compare("payload bytes", got.payload, expected.payload);
  return text;
}

}  // namespace

void write_header(std::byte* to, const MessageHeader& message) {
  const Header header = header_of(message);
  std::memcpy(to, &header, sizeof header);
}

Status check_message(const std::byte* from, std::size_t received, const MessageHeader& expected) {
  const auto bad = [&](const std::string& why) {
    return fail(Status::bad_message,
                "message from rank " + std::to_string(expected.sender) + ": " + why);
  };
  if (received < kHeaderBytes)
    return bad(std::to_string(received) + " bytes came, shorter than a header of " +
               std::to_string(kHeaderBytes));
  Header got;
  std::memcpy(&got, from, sizeof got);
  if (got.magic != kMagic) return bad("it is not one of slimpi's");
  if (got.checksum != checksum(got)) return bad("its header is damaged");
  Header wanted = header_of(expected);
  const std::uint32_t size = got.payload & ~kMarked;
  const bool marked = (got.payload & kMarked) != 0;
  if (expected.hook && (got.payload == kNoPayload || size <= wanted.payload))
    wanted.payload = got.payload;
  const std::string differences = differing(got, wanted);
  if (!differences.empty()) return bad(differences);
  const std::uint64_t payload = !expected.hook
                                    ? kernels::encoded_bytes(expected.format, expected.count)
                                : got.payload == kNoPayload ? 0
                                : marked ? round_up(size, 4) + mark_bytes(expected.count)
                                         : size;
  if (received - kHeaderBytes < payload)
    return bad(std::to_string(received - kHeaderBytes) + " bytes of payload came where " +
               std::to_string(payload) + " were expected");
  return Status::ok;
}

std::uint32_t payload_of(const std::byte* from) {
  std::uint32_t payload = 0;
  std::memcpy(&payload, from + offsetof(Header, payload), sizeof payload);
  return payload;
}

std::size_t hook_message_bytes(const std::byte* from) {
  Header header;
  std::memcpy(&header, from, sizeof header);
  if (header.payload == kNoPayload) return kHeaderBytes;
  return kHeaderBytes + round_up(std::size_t(header.payload & ~kMarked), 4) +
         ((header.payload & kMarked) == 0 ? 0 : mark_bytes(header.count));
}

}  // namespace slimpi::comm
