// SPDX-License-Identifier: BSD-3-Clause
// Tests which buffer has which state: by address, by the index of the call and by name;
// realignment; and the bound on the state of buffers that a program never sums again.
#include "comm/tensor_state.h"

#include "device/device.h"
#include "tests/helper/base/unit_test.h"

using namespace slimpi;
using comm::StateArray;
using comm::TensorKey;
using comm::TensorState;
using comm::TensorStates;

namespace {

Statistics g_statistics;
TensorStates* g_slots;
char g_memory[100000];  // the bytes lend their addresses

int make(void**) {
  g_slots = new TensorStates;
  return 0;
}

int clear(void**) {
  delete g_slots;
  return g_statistics.counts().state_bytes != 0;  // freed with the slots
}

const void* address(int i) {
  return &g_memory[i];
}

// Makes a call that keeps an array in its state.
TensorState& use(const TensorKey& key, TensorStates::Lost expected = TensorStates::Lost::nothing) {
  TensorStates::Lost lost{};
  TensorState& slot = g_slots->use(key, &lost);
  assert_true(lost == expected);
  slot.claim(nullptr, device::host());
  float* array = nullptr;
  assert_true(slot.open({StateArray::residual}, key.count, device::host(), nullptr, g_statistics,
                        &array) == Status::ok);
  ++slot.calls;
  slot.uninitialized = false;
  return slot;
}
TensorState& use(int buffer, std::uint64_t count) {
  return use(TensorKey::of_address(address(buffer), count));
}

UNIT_TEST(by_address, make, clear) {
  assert_int_equal(use(1, 10).number, 0);
  assert_int_equal(use(2, 10).number, 1);
  assert_int_equal(use(1, 20).number, 2);  // another count: another buffer
  assert_false(use(1, 20).named());
  TensorState& again = use(1, 10);
  assert_int_equal(again.number, 0);
  assert_int_equal(again.calls, 2);
  assert_int_equal(g_slots->size(), 3);
  assert_int_equal(g_statistics.counts().state_bytes, 4 * (10 + 10 + 20));
}

UNIT_TEST(by_index, make, clear) {
  for (int step = 0; step < 5; ++step) {
    assert_int_equal(use(TensorKey::of_index(0, 10)).number, 0);
    TensorState& second = use(TensorKey::of_index(1, 30));
    assert_int_equal(second.number, 1);
    assert_int_equal(second.calls, step + 1);
    assert_true(second.named());
  }
  assert_int_equal(g_slots->size(), 2);
  // An index comes with another count, so no index can be believed.
  TensorState& other = use(TensorKey::of_index(1, 77), TensorStates::Lost::indices);
  assert_int_equal(other.calls, 1);
  assert_int_equal(g_statistics.counts().state_bytes, 4 * 77);
  assert_int_equal(use(TensorKey::of_index(0, 10)).calls, 1);
}

// A name has a state for each count; no other state is in doubt.
UNIT_TEST(by_name, make, clear) {
  const std::uint64_t weight = use(TensorKey::of_name("weight", 10)).number;
  assert_int_not_equal(use(TensorKey::of_name("bias", 10)).number, weight);
  assert_int_equal(use(TensorKey::of_name("weight", 10)).number, weight);
  assert_int_equal(use(TensorKey::of_name("weight", 10)).calls, 3);
  assert_int_equal(use(TensorKey::of_name("bias", 20)).calls, 1);
  assert_int_equal(use(TensorKey::of_name("weight", 10)).calls, 4);
  assert_int_equal(use(TensorKey::of_name("bias", 10)).calls, 2);
  assert_int_equal(g_slots->size(), 3);
  assert_int_equal(g_slots->find_named("bias").size(), 2);
  g_slots->restore("bias", {});
  assert_int_equal(g_slots->find_named("bias").size(), 0);
  assert_int_equal(g_slots->size(), 1);
}

// A tensor has a state for each set of elements (TensorKey::placement) that its arrays hold. A
// state that was saved for one set cannot be loaded for another set.
UNIT_TEST(by_placement, make, clear) {
  TensorKey by_name = TensorKey::of_name("weight", 10), by_index = TensorKey::of_index(0, 10),
            by_address = TensorKey::of_address(address(1), 10);
  for (TensorKey* const key : {&by_name, &by_address, &by_index})
    for (int step = 0; step < 3; ++step)
      for (key->placement = 0; key->placement < 2; ++key->placement)
        assert_int_equal(use(*key).calls, step + 1);
  assert_int_equal(g_slots->size(), 6);
  comm::SavedState saved;
  saved.count = 10;
  saved.placement = 1;
  saved.calls = 20;
  g_slots->restore("weight", {saved});
  by_name.placement = 1;
  assert_int_equal(use(by_name).calls, 21);
  g_slots->restore("weight", {saved});
  by_name.placement = 0;
  assert_int_equal(use(by_name, TensorStates::Lost::saved).calls, 1);
  g_slots->for_restored("weight", [](const comm::SavedState&) { fail(); });
  by_name.placement = 1;
  assert_int_equal(use(by_name).calls, 1);
  g_slots->restore("weight", {saved});
  g_slots->restore("weight", {});  // also what no call has used
  assert_int_equal(use(by_name).calls, 1);
}

// A persistent sum takes restored states from those of its communicator. If MPI makes the sum, the
// next sum of the name can take the state, with all its arrays.
UNIT_TEST(given_back, make, clear) {
  const TensorKey key = TensorKey::of_name("weight", 2);
  comm::SavedState saved;
  saved.count = 2;
  saved.calls = 20;
  saved.uninitialized = false;
  saved.arrays[{StateArray::residual}] = {1, 2};
  saved.arrays[{StateArray::factor}] = {3};
  g_slots->restore("weight", {saved});
  TensorStates of_request(g_slots->restored());
  TensorStates::Lost lost{};
  TensorState& left = of_request.use(key, &lost);
  left.claim(nullptr, device::host());
  float* array = nullptr;
  assert_true(left.open({StateArray::residual}, 2, device::host(), nullptr, g_statistics, &array) ==
              Status::ok);
  of_request.give_back(left);
  assert_int_equal(of_request.size(), 0);
  assert_int_equal(of_request.holding(), 0);
  TensorState& taken = g_slots->use(key, &lost);
  taken.claim(nullptr, device::host());
  assert_true(taken.calls == 20 && !taken.uninitialized && taken.restored().size() == 2);
  assert_true(taken.open({StateArray::residual}, 2, device::host(), nullptr, g_statistics,
                         &array) == Status::ok);
  assert_true(array[0] == 1 && array[1] == 2);
  g_slots->keep(taken);
  g_slots->give_back(taken);  // used: stays
  assert_int_equal(g_slots->size(), 1);
  assert_int_equal(of_request.use(key, &lost).calls, 0);
}

// A rank that knows no address goes by the number of the others, also after a realignment.
UNIT_TEST(by_others, make, clear) {
  const auto told = [](std::uint64_t number) {
    return TensorKey{TensorKey::By::others, number, {}, 10, 0};
  };
  use(1, 10);
  assert_int_equal(use(told(1)).calls, 1);
  assert_int_equal(use(2, 10).number, 2);
  TensorState& again = use(told(1));
  assert_int_equal(again.calls, 2);
  assert_false(again.named());
  g_slots->realign(again, 3);
  assert_int_equal(use(told(3)).calls, 1);
  assert_int_equal(g_slots->next_number(), 4);
  assert_int_equal(g_slots->size(), 3);
}

UNIT_TEST(realigned, make, clear) {
  TensorState& here = use(1, 10);
  use(2, 10);
  assert_int_equal(g_slots->next_number(), 2);
  g_slots->realign(here, 7);  // what another rank's next number was
  assert_int_equal(here.number, 7);
  assert_int_equal(here.calls, 0);
  assert_true(here.uninitialized && !here.holds_arrays());
  assert_int_equal(use(1, 10).number, 7);
  assert_int_equal(use(3, 10).number, 8);
  TensorState& ordered = use(TensorKey::of_index(4, 10));
  const std::uint64_t number = ordered.number;
  g_slots->realign(ordered, 9);
  assert_int_equal(ordered.number, number);
  assert_int_equal(ordered.calls, 0);
}

UNIT_TEST(never_comes_back, make, clear) {
  for (int i = 0; i < 10000; ++i) {
    use(i, 1000);
    assert_true(g_slots->holding() <= TensorStates::kFirstLimit);
    assert_true(g_slots->size() <= TensorStates::kMost);
  }
  assert_int_equal(g_slots->limit(), TensorStates::kFirstLimit);
}

// A model of 300 tensors loses a few steps' state, and then keeps all of it.
UNIT_TEST(comes_back, make, clear) {
  for (int step = 0; step < 4; ++step)
    for (int i = 0; i < 300; ++i) use(i, 100);
  for (int i = 0; i < 300; ++i) assert_true(use(i, 100).calls >= 4);
  assert_int_equal(g_slots->holding(), 300);
}

// A model of 300 tensors that is restored keeps its state from the first step on.
UNIT_TEST(comes_back_restored, make, clear) {
  const auto name = [](int i) { return "tensor " + std::to_string(i); };
  for (int i = 0; i < 300; ++i) {
    comm::SavedState saved;
    saved.count = 100;
    saved.calls = 7;
    g_slots->restore(name(i), {saved});
  }
  for (std::uint64_t step = 0; step < 3; ++step)
    for (int i = 0; i < 300; ++i)
      assert_int_equal(use(TensorKey::of_name(name(i), 100)).calls, 8 + step);
  assert_int_equal(g_slots->holding(), 300);
}

UNIT_TEST(other_place, make, clear) {
  static const device::Device other = device::host();
  TensorState& slot = use(1, 10);
  slot.claim(nullptr, other);
  assert_true(!slot.holds_arrays() && slot.calls == 0 && slot.uninitialized);
  assert_int_equal(g_slots->holding(), 0);
}

UNIT_TEST(zeros_and_sizes, make, clear) {
  TensorStates::Lost lost{};
  TensorState& slot = g_slots->use(TensorKey::of_index(0, 10), &lost);
  float* array = nullptr;
  const auto get = [&](std::uint64_t elements) {
    return slot.open({StateArray::factor}, elements, device::host(), nullptr, g_statistics, &array);
  };
  assert_true(get(10) == Status::ok);
  for (int i = 0; i < 10; ++i) assert_true(array[i] == 0);
  array[3] = 5;
  assert_true(get(10) == Status::ok);
  assert_true(array[3] == 5);
  assert_true(get(4) == Status::ok);
  for (int i = 0; i < 4; ++i) assert_true(array[i] == 0);
  assert_int_equal(g_statistics.counts().state_bytes, 16);
  assert_true(get(0) == Status::ok && array == nullptr);
  assert_int_equal(g_statistics.counts().state_bytes, 0);
}

// Each peer of a buffer has a replica of its own.
UNIT_TEST(arrays_of_members, make, clear) {
  TensorStates::Lost lost{};
  TensorState& slot = g_slots->use(TensorKey::of_index(0, 10), &lost);
  float *own = nullptr, *of_1 = nullptr, *of_2 = nullptr;
  const auto get = [&](const StateArray& which, float** array) {
    assert_true(slot.open(which, 10, device::host(), nullptr, g_statistics, array) == Status::ok);
  };
  get({StateArray::own_replica}, &own);
  get({StateArray::replica_of, 1}, &of_1);
  get({StateArray::replica_of, 2}, &of_2);
  assert_true(own != of_1 && of_1 != of_2 && own != of_2);
  float* again = nullptr;
  get({StateArray::replica_of, 1}, &again);
  assert_ptr_equal(again, of_1);
}

}  // namespace
