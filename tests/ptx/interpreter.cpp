// SPDX-License-Identifier: BSD-3-Clause
// The interpreter of PTX itself: what instructions compute, how lanes separate and meet, and what
// it refuses. Small kernels, written here.
#include "tests/ptx/machine.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "tests/helper/cmocka_cxx.h"
#include "tests/ptx/table.h"

using namespace slimpi::test::ptx;

namespace {

constexpr unsigned kThreads = 64;

std::uint64_t f(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
std::uint64_t d(double value) {
  return std::bit_cast<std::uint64_t>(value);
}
std::uint64_t u(std::int32_t value) {
  return std::uint32_t(value);
}

// A kernel of one argument, a pointer that is in %out + 8 * %tid.x; %t is %tid.x.
std::string kernel(const std::string& before, const std::string& body) {
  return before +
         "\n.visible .entry test(.param .u64 memory)\n{\n"
         ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>;\n"
         ".reg .b32 %t; .reg .b64 %out; .reg .b64 %at;\n"
         "ld.param.u64 %out, [memory]; cvta.to.global.u64 %out, %out; mov.u32 %t, %tid.x;\n"
         "mul.wide.u32 %at, %t, 8; add.s64 %out, %out, %at;\n" +
         body + "\nret;\n}\n";
}

// Runs it; what each of the threads wrote is in `words`. Returns the error's text, or nothing.
std::string run(const std::string& source, std::uint64_t* words, unsigned blocks = 1) {
  try {
    Machine machine;
    machine.load("test.ptx", source);
    Allocations memory;
    memory.add(words, kThreads * sizeof *words);
    machine.run("test", blocks, kThreads, &words, sizeof words, memory);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string run_body(const std::string& body) {
  std::uint64_t words[kThreads] = {};
  return run(kernel("", body), words);
}

void expect_error(const std::string& body, const char* text) {
  const std::string error = run_body(body);
  if (error.find(text) != error.npos) return;
  print_error("'%s' instead of '%s'\n", error.c_str(), text);
  fail();
}

struct Computed {
  const char* opcode;
  std::uint64_t from[3], expected;
};

const float kTiny = 0x1p-149f, kHalfUlp = 0x1p-24f;
const std::uint64_t kNan = 0x7fffffff;

const Computed kComputed[] = {
    // Rounding: 1 + 2^-24 lies half-way between two floats.
    {"add.rn.f32", {f(1), f(kHalfUlp)}, f(1)},
    {"add.rz.f32", {f(1), f(kHalfUlp)}, f(1)},
    {"add.rp.f32", {f(1), f(kHalfUlp)}, f(0x1.000002p0f)},
    {"add.rm.f32", {f(-1), f(-kHalfUlp)}, f(-0x1.000002p0f)},
    {"sub.rz.f32", {f(1), f(0x1p-30f)}, f(0x1.fffffep-1f)},
    {"sub.rn.f32", {f(1), f(0x1p-30f)}, f(1)},
    {"mul.rn.f32", {f(0x1.000002p0f), f(0x1.000002p0f)}, f(0x1.000004p0f)},
    {"mul.rp.f32", {f(0x1.000002p0f), f(0x1.000002p0f)}, f(0x1.000006p0f)},
    {"div.rn.f32", {f(1), f(3)}, 0x3eaaaaab},
    {"div.rz.f32", {f(1), f(3)}, 0x3eaaaaaa},
    {"add.rn.f64", {d(1), d(0x1p-53)}, d(1)},
    {"add.rp.f64", {d(1), d(0x1p-53)}, d(0x1.0000000000001p0)},
    // One rounding, where a product and a sum would give 0.
    {"fma.rn.f32", {f(0x1.000002p0f), f(0x1.000002p0f), f(-0x1.000004p0f)}, f(0x1p-46f)},
    {"add.rn.ftz.f32", {f(kTiny), f(0)}, f(0)},
    {"add.rn.f32", {f(kTiny), f(kTiny)}, f(2 * kTiny)},
    {"mul.rn.ftz.f32", {f(-0x1p-100f), f(0x1p-40f)}, f(-0.0f)},
    {"add.rn.sat.f32", {f(1), f(2)}, f(1)},
    {"add.rn.sat.f32", {f(-1), f(-2)}, f(0)},
    {"add.rn.sat.f32", {kNan, f(1)}, f(0)},
    // NaNs and signs of zero.
    {"add.rn.f32", {0x7f812345, f(1)}, kNan},
    {"sub.rn.f32", {f(INFINITY), f(INFINITY)}, kNan},
    {"min.f32", {kNan, f(2)}, f(2)},
    {"max.f32", {f(-0.0f), f(0.0f)}, f(0.0f)},
    {"min.f64", {d(0.0), d(-0.0)}, d(-0.0)},
    {"neg.f32", {f(0)}, f(-0.0f)},
    {"setp.gtu.f32", {kNan, f(1)}, 1},
    {"setp.gt.f32", {kNan, f(1)}, 0},
    {"setp.neu.f64", {d(1), d(1)}, 0},
    {"setp.num.f32", {f(1), f(2)}, 1},
    {"setp.lt.s32", {u(-1), u(1)}, 1},
    {"setp.lt.u32", {u(-1), u(1)}, 0},
    // Conversions.
    {"cvt.rzi.s32.f32", {f(-2.9f)}, u(-2)},
    {"cvt.rni.s32.f32", {f(2.5f)}, u(2)},
    {"cvt.rzi.s32.f32", {f(3e9f)}, 0x7fffffff},
    {"cvt.rzi.s32.f32", {f(-3e9f)}, 0x80000000},
    {"cvt.rzi.s32.f32", {kNan}, 0},
    {"cvt.rzi.u32.f32", {f(-1)}, 0},
    {"cvt.rn.f32.s32", {u(0x01000001)}, f(0x1p24f)},
    {"cvt.rp.f32.s32", {u(0x01000001)}, f(0x1.000002p24f)},
    {"cvt.rn.f32.f64", {d(1e300)}, f(INFINITY)},
    {"cvt.rz.f32.f64", {d(1e300)}, f(0x1.fffffep127f)},
    {"cvt.s64.s32", {u(-5)}, std::uint64_t(-5)},
    {"cvt.u64.u32", {u(-5)}, 0xfffffffb},
    // Integers and bits.
    {"mul.wide.s32", {u(-3), u(5)}, std::uint64_t(-15)},
    {"mul.lo.s32", {u(-3), u(5)}, u(-15)},
    {"mad.lo.s32", {u(-3), u(5), u(20)}, u(5)},
    {"prmt.b32", {0x33221100, 0x77665584, 0x7604}, 0x77660084},
    {"prmt.b32", {0x33221100, 0x77665584, 0x0c81}, 0x00ff0011},
    {"div.u32", {u(-1), 16}, 0x0fffffff},
    {"div.s32", {u(-7), 2}, u(-3)},
    {"div.s32", {0x80000000, u(-1)}, 0x80000000},
    {"rem.s32", {u(-7), 2}, u(-1)},
    {"min.s32", {u(-1), 1}, u(-1)},
    {"min.u32", {u(-1), 1}, 1},
    {"shl.b32", {1, 32}, 0},
    {"shr.u64", {~0ull, 64}, 0},
    {"shr.s32", {u(-8), 40}, u(-1)},
    {"selp.f32", {f(1), f(2), 0}, f(2)},
};

void instructions_compute(void**) {
  for (const Computed& c : kComputed) {
    const Row& row = table().at(c.opcode);
    const auto reg = [](unsigned bits) { return bits == 1 ? "%p" : bits == 32 ? "%r" : "%d"; };
    std::string body, operands = reg(row.to) + std::string("0");
    for (std::size_t s = 0; s < row.from.size(); ++s) {
      const std::string name = reg(row.from[s]) + std::to_string(s + 1);
      const char* const move = row.from[s] == 1    ? "mov.pred "
                               : row.from[s] == 32 ? "mov.b32 "
                                                   : "mov.b64 ";
      body += move + name + ", " + std::to_string(c.from[s]) + ";\n";
      operands += ", " + name;
    }
    body += c.opcode + (" " + operands) + ";\n";
    if (row.to == 1) body += "selp.u64 %d0, 1, 0, %p0;\n";
    if (row.to == 32) body += "cvt.u64.u32 %d0, %r0;\n";
    std::uint64_t words[kThreads] = {};
    assert_string_equal(run(kernel("", body + "st.global.u64 [%out], %d0;"), words).c_str(), "");
    if (words[0] != c.expected) print_error("%s\n", c.opcode);
    assert_int_equal(words[0], c.expected);
    assert_int_equal(words[kThreads - 1], c.expected);
  }
}

// Lanes go round a loop as often as their number says, and meet behind it.
void lanes_separate_and_meet(void**) {
  std::uint64_t words[kThreads] = {};
  const std::string error = run(kernel("", R"(
    mov.u32 %r1, 0; mov.u32 %r2, 0;
    loop:
    add.s32 %r1, %r1, %t;
    add.s32 %r2, %r2, 1;
    setp.le.u32 %p1, %r2, %t;
    @%p1 bra loop;
    setp.eq.s32 %p2, %t, 40;
    vote.sync.any.pred %p3, %p2, -1;
    redux.sync.max.u32 %r3, %r1, -1;
    selp.b32 %r4, 1, 0, %p3;
    mov.b64 %d1, {%r3, %r4};
    st.global.u64 [%out], %d1;)"),
                                words);
  assert_string_equal(error.c_str(), "");
  for (unsigned t = 0; t < kThreads; ++t) {
    const std::uint64_t last = t < 32 ? 31 : 63;
    assert_int_equal(words[t], last * (last + 1) | std::uint64_t(t >= 32) << 32);
  }
}

// A sum over all lanes; the value of the lane three before, or the own one; that of lane ^ 16.
void lanes_exchange_values(void**) {
  std::uint64_t words[kThreads] = {};
  const std::string error = run(kernel("", R"(
    redux.sync.add.u32 %r1, %t, -1;
    shfl.sync.up.b32 %r2|%p1, %t, 3, 0, -1;
    shfl.sync.bfly.b32 %r3|%p2, %t, 16, 31, -1;
    add.s32 %r4, %r1, %r2;
    mov.b64 %d1, {%r4, %r3};
    st.global.u64 [%out], %d1;)"),
                                words);
  assert_string_equal(error.c_str(), "");
  for (unsigned t = 0; t < kThreads; ++t) {
    const std::uint64_t sum = t < 32 ? 496 : 496 + 32 * 32, before = t % 32 < 3 ? t : t - 3;
    assert_int_equal(words[t], (sum + before) | std::uint64_t(t ^ 16) << 32);
  }
  expect_error(
      "shfl.sync.up.b32 %r2|%p1, %t, 3, 0, -1; selp.b32 %r3, 1, 0, %p1;"
      "cvt.u64.u32 %d1, %r3; st.global.u64 [%out], %d1;",
      "never written");
}

// Lane 5 of each warp alone; the function sees its own arguments.
void some_lanes_call_a_function(void**) {
  std::uint64_t words[kThreads] = {};
  const char* const function = R"(
    .func (.param .b32 result) twice(.param .b32 given)
    { .reg .b32 %r<3>; ld.param.u32 %r1, [given]; add.s32 %r2, %r1, %r1;
      st.param.b32 [result+0], %r2; ret; })";
  const std::string error = run(kernel(function, R"(
    mov.u32 %r1, %t; and.b32 %r2, %t, 31; setp.ne.s32 %p1, %r2, 5;
    @%p1 bra $after;
    { .param .b32 param0; .param .b32 retval0;
      st.param.b32 [param0+0], %t; call.uni (retval0), twice, (param0);
      ld.param.b32 %r1, [retval0+0]; }
    $after:
    cvt.u64.u32 %d1, %r1;
    st.global.u64 [%out], %d1;)"),
                                words);
  assert_string_equal(error.c_str(), "");
  for (unsigned t = 0; t < kThreads; ++t) assert_int_equal(words[t], t % 32 == 5 ? 2 * t : t);
}

// The neighbor warp's number, through shared memory.
constexpr const char* kExchange = R"(
    .shared .align 4 .b8 room[256];
    mov.u32 %r1, room; shl.b32 %r2, %t, 2; add.s32 %r3, %r1, %r2;
    st.shared.u32 [%r3], %t;
    bar.sync 0;
    xor.b32 %r4, %r2, 128; add.s32 %r5, %r1, %r4;
    ld.shared.u32 %r6, [%r5];
    cvt.u64.u32 %d1, %r6; st.global.u64 [%out], %d1;)";

void barriers_separate_accesses(void**) {
  std::uint64_t words[kThreads] = {};
  std::string body = kExchange;
  for (const unsigned blocks : {1, 4})
    assert_string_equal(run(kernel("", body), words, blocks).c_str(), "");
  for (unsigned t = 0; t < kThreads; ++t) assert_int_equal(words[t], t ^ 32);
  body.replace(body.find("bar.sync 0;"), 11, "");
  // The first warp reads what the second has not written yet.
  expect_error(body, "never written");
  body.insert(body.find("xor"),
              "st.shared.u32 [%r3], %t; xor.b32 %r8, %r3, 128; "
              "st.shared.u32 [%r8], %t; ");
  expect_error(body, "a race with thread");
  std::string warp_barrier = kExchange;
  warp_barrier.replace(warp_barrier.find("bar.sync 0;"), 11, "bar.warp.sync -1;");
  warp_barrier.replace(warp_barrier.find("128"), 3, "64");
  assert_string_equal(run_body(warp_barrier).c_str(), "");
  warp_barrier.replace(warp_barrier.find("bar.warp.sync -1;"), 17, "");
  expect_error(warp_barrier, "a race with thread");
}

// All blocks use the same words.
void blocks_do_not_wait_for_each_other(void**) {
  std::uint64_t words[kThreads] = {};
  const char* const write =
      "mov.u32 %r1, %ctaid.x; cvt.u64.u32 %d1, %r1;"
      "st.global.u64 [%out], %d1;";
  assert_string_equal(run(kernel("", write), words).c_str(), "");
  assert_non_null(strstr(run(kernel("", write), words, 3).c_str(), "a race with block 1 in GPU"));
  const std::string read = "ld.global.u64 %d2, [%out]; add.s64 %d2, %d2, 1;";
  assert_string_equal(run(kernel("", read), words, 3).c_str(), "");
  assert_non_null(strstr(run(kernel("", read + "st.global.u64 [%out], %d2;"), words, 3).c_str(),
                         "a race with block 0 in GPU"));
  // The same value; and atomic operations.
  assert_string_equal(run(kernel("", "st.global.u64 [%out], 7;"), words, 3).c_str(), "");
  assert_string_equal(run(kernel("", "atom.global.max.u32 %r1, [%out], 9;"), words, 3).c_str(), "");
  assert_int_equal(words[0], 9);
}

void barriers_that_not_all_reach(void**) {
  expect_error("setp.eq.s32 %p1, %t, 3; @%p1 ret; bar.sync 0;", "the thread has ended");
  expect_error("setp.gt.u32 %p1, %t, 31; @%p1 ret; bar.sync 0;", "the warp has ended");
  expect_error("setp.eq.s32 %p1, %t, 3; @%p1 bra a; bar.sync 0; bra b;\na: bar.sync 0;\nb:",
               "at different barriers");
  expect_error("setp.eq.s32 %p1, %t, 3; @%p1 bra a; bar.warp.sync -1; bra b;\na: bar.sync 0;\nb:",
               "lanes wait for others that never come");
  expect_error("vote.sync.any.pred %p1, 1, 255;", "lanes are here with other masks");
}

void accesses_that_are_refused(void**) {
  expect_error("st.global.u64 [%out+8], %at;", "thread 63: st.global.u64: it writes outside");
  expect_error("ld.global.u64 %d1, [%out+-8];", "thread 0: ld.global.u64: it reads outside");
  expect_error("ld.global.u32 %r1, [%out+2];", "the address is not a multiple of 4");
  expect_error("ld.global.v2.u64 {%d1, %d2}, [%out];", "the address is not a multiple of 16");
  expect_error(
      ".shared .align 4 .b8 a[16]; .shared .align 4 .b8 b[16]; mov.u32 %r2, b;\n"
      "mov.u32 %r1, a; ld.shared.u32 %r1, [%r1+16];",
      "outside of the variables");
  expect_error("st.param.u64 [memory], %at;", "it writes to the kernel's arguments");
  expect_error("ld.param.u64 %d1, [memory+8];", "it reads behind the arguments");
}

void values_that_were_never_written(void**) {
  expect_error("st.global.u64 [%out], %d3;", "it stores a value that was never written");
  expect_error("add.s32 %r1, %r2, 1; setp.eq.s32 %p1, %r1, 0; @%p1 ret;",
               "the predicate was never written");
  expect_error("add.s64 %d1, %out, %d2; ld.global.u64 %d1, [%d1];", "an address was never written");
  expect_error(
      ".shared .align 8 .b8 a[512]; mov.u32 %r1, a; ld.shared.u64 %d1, [%r1];\n"
      "st.global.u64 [%out], %d1;",
      "it stores a value that was never written");
  expect_error(
      "mov.u32 %r1, 0; div.u32 %r2, %t, %r1; cvt.u64.u32 %d1, %r2;\n"
      "st.global.u64 [%out], %d1;",
      "it stores a value that was never written");
  // What is not used may be anything.
  assert_string_equal(run_body("mov.pred %p1, 0; selp.u64 %d1, %d2, %out, %p1;\n"
                               "mov.b64 %d3, {%t, %r3}; cvt.u32.u64 %r1, %d3;\n"
                               "cvt.u64.u32 %d1, %r1; st.global.u64 [%out], %d1;")
                          .c_str(),
                      "");
}

void what_is_not_known_is_refused(void**) {
  expect_error("\n\nfoo.s32 %r1, %t;", "test.ptx:10: the interpreter does not know 'foo.s32'");
  expect_error("add.rn.f16 %h1, %h2, %h3;", "does not know 'add.rn.f16'");
  expect_error("ld.global.strange.u32 %r1, [%out];", "does not know 'ld.global.strange.u32'");
  expect_error("atom.global.cas.b32 %r1, [%out], %t;", "does not know 'atom.global.cas.b32'");
  expect_error("mov.u32 %r1, %clock;", "does not know the special register %clock");
  expect_error("add.s64 %d1, %r1, %r2;", "takes registers of 64 bits; %r1 has 32");
  expect_error(".strange x;", "does not know '.strange'");
  std::uint64_t words[kThreads] = {};
  assert_non_null(strstr(run(".strange\n", words).c_str(), "test.ptx:1: the interpreter does not"));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(instructions_compute),
      cmocka_unit_test(lanes_separate_and_meet),
      cmocka_unit_test(lanes_exchange_values),
      cmocka_unit_test(some_lanes_call_a_function),
      cmocka_unit_test(barriers_separate_accesses),
      cmocka_unit_test(blocks_do_not_wait_for_each_other),
      cmocka_unit_test(barriers_that_not_all_reach),
      cmocka_unit_test(accesses_that_are_refused),
      cmocka_unit_test(values_that_were_never_written),
      cmocka_unit_test(what_is_not_known_is_refused),
  };
  return cmocka_run_group_tests_name("ptx", tests, nullptr, nullptr) != 0;
}
