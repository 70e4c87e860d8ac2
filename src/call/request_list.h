// SPDX-License-Identifier: BSD-3-Clause
// A list of the requests of one kind that the program holds, with what slimpi keeps for each. Any
// thread may call the functions. An element that find() returns is used without the mutex, because
// MPI demands that one thread at a time uses a request.
#pragma once
#include <atomic>
#include <list>
#include <mutex>

namespace slimpi::call {

template <typename Kept>
class RequestList {
 public:
  // Returns the only list of the kind, which is never destroyed: exit handlers may still call MPI.
  static RequestList& instance() {
    static auto* const list = new RequestList;
    return *list;
  }

  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }

  // Adds the one element of `made`. Allocates nothing: a failure here would lose MPI's request.
  void add(std::list<Kept>& made) {
    const std::lock_guard lock(mutex_);
    list_.splice(list_.end(), made);
    ++count_;
  }

  // Returns the first element that is() is true for, or null.
  template <typename Is>
  Kept* find(const Is& is) {
    if (empty()) [[likely]]
      return nullptr;
    const std::lock_guard lock(mutex_);
    for (Kept& one : list_)
      if (is(one)) return &one;
    return nullptr;
  }

  // Removes the elements that is() is true for, and returns them.
  template <typename Is>
  std::list<Kept> take(const Is& is) {
    std::list<Kept> taken;
    const std::lock_guard lock(mutex_);
    for (auto next = list_.begin(); next != list_.end();) {
      const auto one = next++;
      if (!is(*one)) continue;
      taken.splice(taken.end(), list_, one);
      --count_;
    }
    return taken;
  }

  template <typename Do>
  void for_each(const Do& act_on) {
    const std::lock_guard lock(mutex_);
    for (Kept& one : list_) act_on(one);
  }

 private:
  std::mutex mutex_;  // guards list_
  std::list<Kept> list_;
  std::atomic<int> count_{0};
};

}  // namespace slimpi::call
