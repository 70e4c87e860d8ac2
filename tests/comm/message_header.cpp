// SPDX-License-Identifier: BSD-3-Clause
// The header of messages: what was written is accepted, and nothing else is. Messages end at a page
// that may not be touched, so that a read beyond them dies.
#include "comm/message_header.h"

#include "tests/helper/base/unit_test.h"
#include "tests/kernels/data.h"
#include "tests/kernels/memory.h"

using namespace slimpi;
using namespace slimpi::comm;
using namespace slimpi::test;

namespace {

Arena g_arena;

MessageHeader example() {
  MessageHeader message;
  message.format = quantized(5, 2048);
  message.first = 4096;
  message.count = 3000;
  message.call = 77;
  message.tensor = 3;
  message.sender = 2;
  return message;
}

std::size_t payload(const MessageHeader& message) {
  return kernels::encoded_bytes(message.format, message.count);
}

// A whole message with a payload of zeros, of which `bytes` came.
std::byte* received(const MessageHeader& message, std::size_t bytes) {
  static std::byte whole[kHeaderBytes + 65536];
  write_header(whole, message);
  auto* memory = g_arena.take<std::byte>(bytes, true);
  memcpy(memory, whole, bytes);
  return memory;
}

bool rejected(const std::byte* from, std::size_t bytes, const MessageHeader& expected,
              const std::string& words) {
  if (check_message(from, bytes, expected) != Status::bad_message) return false;
  if (failure_text().find(words) != std::string::npos) return true;
  print_error("'%s' lacks '%s'\n", failure_text().c_str(), words.c_str());
  return false;
}

UNIT_TEST(what_was_written_is_accepted) {
  for (const auto& format :
       {kernels::Format{kernels::Codec::float32}, kernels::Format{kernels::Codec::fp16},
        quantized(1, 64), quantized(8, 0, true)}) {
    MessageHeader message = example();
    message.format = format;
    const std::size_t bytes = kHeaderBytes + payload(message);
    assert_int_equal(int(check_message(received(message, bytes), bytes, message)), 0);
    assert_int_equal(payload_of(received(message, bytes)), payload(message));
  }
}

UNIT_TEST(a_short_message_is_rejected) {
  const MessageHeader message = example();
  const std::size_t bytes = kHeaderBytes + payload(message);
  for (std::size_t cut = 0; cut < kHeaderBytes; ++cut)
    assert_true(rejected(received(message, cut), cut, message, "shorter than a header"));
  for (const std::size_t cut : {kHeaderBytes, kHeaderBytes + 1, bytes - 4, bytes - 1})
    assert_true(rejected(received(message, cut), cut, message,
                         std::to_string(payload(message)) + " were expected"));
}

UNIT_TEST(any_flipped_bit_is_rejected) {
  const MessageHeader message = example();
  const std::size_t bytes = kHeaderBytes + payload(message);
  for (std::size_t at = 0; at < kHeaderBytes; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::byte* text = received(message, bytes);
      text[at] ^= std::byte(1 << bit);
      assert_true(rejected(text, bytes, message, "message from rank 2: "));
    }
}

UNIT_TEST(noise_is_rejected) {
  const MessageHeader message = example();
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const std::size_t bytes = mixed(seed) % 300;
    auto* text = g_arena.take<std::byte>(bytes, true);
    for (std::size_t i = 0; i < bytes; ++i) text[i] = std::byte(mixed(seed * 1000 + i));
    assert_true(rejected(text, bytes, message, "message from rank 2: "));
  }
}

// Every property on which two ranks could differ, and the words that name it.
UNIT_TEST(the_other_message_is_named) {
  const MessageHeader expected = example();
  struct Row {
    const char* words;
    void (*change)(MessageHeader&);
  };
  const Row rows[] = {
      {"codec 1 where 3 was expected",
       [](MessageHeader& m) { m.format.codec = kernels::Codec::fp16; }},
      {"bits 4 where 5 was expected", [](MessageHeader& m) { m.format.bits = 4; }},
      {"rounding 1 where 0 was expected", [](MessageHeader& m) { m.format.stochastic = true; }},
      {"bucket 64 where 2048 was expected", [](MessageHeader& m) { m.format.bucket = 64; }},
      {"sender 3 where 2 was expected", [](MessageHeader& m) { m.sender = 3; }},
      {"first element 0 where 4096 was expected", [](MessageHeader& m) { m.first = 0; }},
      {"count 2999 where 3000 was expected", [](MessageHeader& m) { m.count = 2999; }},
      {"call 78 where 77 was expected", [](MessageHeader& m) { m.call = 78; }},
      {"tensor 4 where 3 was expected", [](MessageHeader& m) { m.tensor = 4; }},
      {"codec 255 where 3 was expected", [](MessageHeader& m) { m.hook = true; }},
  };
  for (const Row& row : rows) {
    MessageHeader sent = expected;
    row.change(sent);
    const std::size_t bytes = kHeaderBytes + 8192;
    assert_true(rejected(received(sent, bytes), bytes, expected, row.words));
  }
}

// A hook's payload has any size up to the one that is expected.
UNIT_TEST(a_hook_s_message_says_its_size) {
  MessageHeader expected = example();
  expected.hook = true;
  expected.payload = 500;
  for (const std::uint32_t size :
       {0u, 1u, 500u, 501u, kNoPayload, kMarked, kMarked | 499u, kMarked | 501u}) {
    MessageHeader sent = expected;
    sent.payload = size;
    const bool marked = (size & kMarked) != 0;
    const std::size_t carried =
        size == kNoPayload ? 0
        : marked           ? ((size & ~kMarked) + 3) / 4 * 4 + (expected.count + 15) / 16 * 4
                           : size;
    const std::size_t bytes = kHeaderBytes + carried;
    const Status status = check_message(received(sent, bytes), bytes, expected);
    assert_int_equal(int(status), int((size & ~kMarked) == 501 ? Status::bad_message : Status::ok));
    assert_int_equal(payload_of(received(sent, bytes)), size);
    if (carried > 0 && (size & ~kMarked) <= 500)
      assert_true(
          rejected(received(sent, bytes - 1), bytes - 1, expected, "bytes of payload came"));
  }
}

}  // namespace
