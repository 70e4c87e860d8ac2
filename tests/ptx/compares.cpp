// SPDX-License-Identifier: BSD-3-Clause
// Rows of the instruction table: setp. Of floats, eq to ge are false where there is a NaN; equ to
// geu are true there.
#include "tests/ptx/lanes.h"

namespace slimpi::test::ptx {

namespace {

template <typename T>
bool unordered(T a, T b) {
  return a != a || b != b;
}

struct Eq {
  template <typename T>
  static bool of(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <typename T>
  static bool of(T a, T b) {
    return !unordered(a, b) && a != b;
  }
};
struct Lt {
  template <typename T>
  static bool of(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <typename T>
  static bool of(T a, T b) {
    return a <= b;
  }
};
struct Gt {
  template <typename T>
  static bool of(T a, T b) {
    return a > b;
  }
};
struct Ge {
  template <typename T>
  static bool of(T a, T b) {
    return a >= b;
  }
};
struct Num {
  template <typename T>
  static bool of(T a, T b) {
    return !unordered(a, b);
  }
};
struct Nan {
  template <typename T>
  static bool of(T a, T b) {
    return unordered(a, b);
  }
};
template <typename Ordered>
struct Or {
  template <typename T>
  static bool of(T a, T b) {
    return unordered(a, b) || Ordered::of(a, b);
  }
};

template <typename T>
void add_equal(Table& table, const std::string& type) {
  table["setp.eq." + type] = row_of<Eq, bool, T, T>();
  table["setp.ne." + type] = row_of<Ne, bool, T, T>();
}

template <typename T>
void add_order(Table& table, const std::string& type) {
  add_equal<T>(table, type);
  table["setp.lt." + type] = row_of<Lt, bool, T, T>();
  table["setp.le." + type] = row_of<Le, bool, T, T>();
  table["setp.gt." + type] = row_of<Gt, bool, T, T>();
  table["setp.ge." + type] = row_of<Ge, bool, T, T>();
}

template <typename T>
void add_reals(Table& table, const std::string& type) {
  add_order<T>(table, type);
  table["setp.equ." + type] = row_of<Or<Eq>, bool, T, T>();
  table["setp.neu." + type] = row_of<Or<Ne>, bool, T, T>();
  table["setp.ltu." + type] = row_of<Or<Lt>, bool, T, T>();
  table["setp.leu." + type] = row_of<Or<Le>, bool, T, T>();
  table["setp.gtu." + type] = row_of<Or<Gt>, bool, T, T>();
  table["setp.geu." + type] = row_of<Or<Ge>, bool, T, T>();
  table["setp.num." + type] = row_of<Num, bool, T, T>();
  table["setp.nan." + type] = row_of<Nan, bool, T, T>();
}

}  // namespace

void add_compare_rows(Table& table) {
  add_equal<std::uint16_t>(table, "b16");
  add_equal<std::uint32_t>(table, "b32");
  add_equal<std::uint64_t>(table, "b64");
  add_order<std::uint16_t>(table, "u16");
  add_order<std::int16_t>(table, "s16");
  add_order<std::uint32_t>(table, "u32");
  add_order<std::int32_t>(table, "s32");
  add_order<std::uint64_t>(table, "u64");
  add_order<std::int64_t>(table, "s64");
  add_reals<float>(table, "f32");
  add_reals<double>(table, "f64");
}

}  // namespace slimpi::test::ptx
