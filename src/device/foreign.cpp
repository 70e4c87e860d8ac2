// SPDX-License-Identifier: BSD-3-Clause
#include "device/foreign.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>

#include "base/plugin.h"
#include "device/process_memory.h"

namespace slimpi::device {

namespace {

// Declarations of the libraries' functions and types used here. Signatures and layouts are the same
// in all versions.
struct HipAttributes {
  int type;  // not used, because its values changed with version 6
  int device;
  void *device_pointer, *host_pointer;
  int managed;
  unsigned flags;
};
using HipPointerGetAttributes = int(HipAttributes*, const void*);
using HipLastError = int();
using CuPointerGetAttribute = int(void*, int, std::uintptr_t);

struct ZeContextDescription {
  int stype = 0xd;
  const void* next = nullptr;
  std::uint32_t flags = 0;
};
struct ZeProperties {
  int stype = 0x17;
  void* next = nullptr;
  int type = 0;  // 0: not memory of Level Zero, 1: host, 2: device, 3: shared
  std::uint64_t id = 0, page_size = 0;
};
constexpr int kZeDevice = 2;
using ZeDriverGet = int(std::uint32_t*, void**);
using ZeContextCreate = int(void*, const ZeContextDescription*, void**);
using ZeMemGetAllocProperties = int(void*, const void*, ZeProperties*, void**);

// Returns the path of a loaded library whose file name begins with `name`, or "".
std::string find_loaded(std::string_view name) {
  struct Search {
    std::string_view name;
    std::string found;
  } search{name, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto* const wanted = static_cast<Search*>(data);
        const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        if (!path.substr(path.rfind('/') + 1).starts_with(wanted->name)) return 0;
        wanted->found = path;
        return 1;
      },
      &search);
  return search.found;
}

// Opens a library if it is loaded, otherwise returns null. The handle is never closed, so the
// library stays loaded.
void* open_loaded(std::string_view name) {
  const std::string path = find_loaded(name);
  return path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
}

class Hip {
 public:
  bool open() {
    void* const handle = open_loaded("libamdhip64.so");
    return handle != nullptr && find_function(handle, "hipPointerGetAttributes", attributes_) &&
           find_function(handle, "hipPeekAtLastError", peek_) &&
           find_function(handle, "hipGetLastError", get_);
  }

  // Returns whether `pointer` is memory of an AMD GPU that the host cannot access. Older versions
  // of HIP fail for other memory; their error is cleared, so that the program does not see it.
  bool owns(const void* pointer) const {
    const bool clean = peek_() == 0;
    HipAttributes found{};
    const int code = attributes_(&found, pointer);
    if (code != 0 && clean) (void)get_();
    return code == 0 && found.managed == 0 && found.device_pointer != nullptr &&
           found.host_pointer == nullptr;
  }

 private:
  HipPointerGetAttributes* attributes_ = nullptr;
  HipLastError *peek_ = nullptr, *get_ = nullptr;
};

class Cuda {
 public:
  bool open() {
    void* const handle = open_loaded("libcuda.so.1");
    return handle != nullptr && find_function(handle, "cuPointerGetAttribute", attribute_);
  }

  // Returns whether `pointer` is memory of an NVIDIA GPU that the host cannot access (not managed).
  bool owns(const void* pointer) const {
    constexpr int kMemoryType = 2, kIsManaged = 8, kDevice = 2;
    unsigned type = 0, managed = 0;
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return attribute_(&type, kMemoryType, address) == 0 && type == kDevice &&
           attribute_(&managed, kIsManaged, address) == 0 && (managed & 0xff) == 0;
  }

 private:
  CuPointerGetAttribute* attribute_ = nullptr;
};

// Returns whether the kernel drives an Intel GPU. Each GPU has a file with its vendor's number.
bool has_intel_gpu() {
  glob_t files{};
  bool found = false;
  if (glob("/sys/class/drm/renderD*/device/vendor", GLOB_NOSORT, nullptr, &files) == 0)
    for (std::size_t i = 0; i < files.gl_pathc && !found; ++i) {
      std::string vendor;
      found = std::getline(std::ifstream(files.gl_pathv[i]), vendor) && vendor == "0x8086";
    }
  globfree(&files);
  return found;
}

// Asks Level Zero whether memory belongs to an Intel GPU. Never initializes Level Zero, because a
// program that has not initialized it has allocated no memory from it.
class LevelZero {
 public:
  // Returns whether Level Zero is loaded, and either has a driver or the machine has an Intel GPU.
  // The library alone proves nothing, because MPI loads hwloc, which loads Level Zero on any
  // machine.
  bool open() {
    void* const handle = open_loaded("libze_loader.so");
    if (handle == nullptr || !find_function(handle, "zeDriverGet", drivers_) ||
        !find_function(handle, "zeContextCreate", make_) ||
        !find_function(handle, "zeMemGetAllocProperties", properties_))
      return false;
    std::uint32_t count = 0;
    return (drivers_(&count, nullptr) == 0 && count != 0) || has_intel_gpu();
  }

  bool owns(const void* pointer) {
    if (!ready_.load(std::memory_order_acquire) && !make_contexts()) return false;
    return std::any_of(contexts_, contexts_ + count_, [&](void* context) {
      ZeProperties found;
      return properties_(context, pointer, &found, nullptr) == 0 && found.type == kZeDevice;
    });
  }

 private:
  // Makes a context for each driver. A driver knows the memory of all contexts, but a query needs
  // one.
  bool make_contexts() {
    const std::lock_guard lock(mutex_);
    if (ready_.load(std::memory_order_relaxed)) return true;
    void* drivers[kMostDrivers] = {};
    std::uint32_t count = kMostDrivers;
    if (drivers_(&count, drivers) != 0) return false;
    const ZeContextDescription description;
    for (std::uint32_t i = 0; i < count; ++i)
      if (make_(drivers[i], &description, &contexts_[count_]) == 0) ++count_;
    ready_.store(true, std::memory_order_release);
    return true;
  }

  static constexpr std::uint32_t kMostDrivers = 8;
  ZeDriverGet* drivers_ = nullptr;
  ZeContextCreate* make_ = nullptr;
  ZeMemGetAllocProperties* properties_ = nullptr;
  std::mutex mutex_;
  std::atomic<bool> ready_{false};
  void* contexts_[kMostDrivers] = {};
  int count_ = 0;
};

// The libraries. Each is opened under the lock of load_plugins(), before its flag in g_loaded is
// set. The object is never destroyed.
struct Foreign {
  Hip hip;
  LevelZero level_zero;
  Cuda cuda;
};
Foreign& foreign() {
  static auto* const only = new Foreign;
  return *only;
}
constexpr int kHip = 1, kLevelZero = 2, kCuda = 4;
std::atomic<int> g_loaded{0};

}  // namespace

void find_foreign(bool cuda_row) {
  int loaded = g_loaded.load(std::memory_order_relaxed);
  if ((loaded & kHip) == 0 && foreign().hip.open()) loaded |= kHip;
  if ((loaded & kLevelZero) == 0 && foreign().level_zero.open()) loaded |= kLevelZero;
  if (!cuda_row && (loaded & kCuda) == 0 && foreign().cuda.open()) loaded |= kCuda;
  g_loaded.store(loaded, std::memory_order_release);
}

bool foreign_possible() {
  return g_loaded.load(std::memory_order_relaxed) != 0;
}

const char* foreign_owner(const void* pointer) {
  const int loaded = g_loaded.load(std::memory_order_acquire);
  if (loaded == 0 || pointer == nullptr || in_process_memory(pointer)) [[likely]]
    return nullptr;
  if ((loaded & kHip) != 0 && foreign().hip.owns(pointer)) return "an AMD GPU";
  if ((loaded & kLevelZero) != 0 && foreign().level_zero.owns(pointer)) return "an Intel GPU";
  if ((loaded & kCuda) != 0 && foreign().cuda.owns(pointer)) return "an NVIDIA GPU";
  return nullptr;
}

}  // namespace slimpi::device
