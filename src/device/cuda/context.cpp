// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/context.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <mutex>

#include "device/cuda/numa.h"

// The compiled kernels, as nvcc wrote them. The files are in the build directory, where the
// assembler searches for them.
#define SLIMPI_IMAGE(name)                                           \
  __asm__(".section .rodata\n.balign 64\nslimpi_image_" #name        \
          ":\n"                                                      \
          ".incbin \"kernels/cuda/" #name ".fatbin\"\n.previous\n"); \
  extern "C" __attribute__((visibility("hidden"))) const unsigned char slimpi_image_##name[];

SLIMPI_IMAGE(encode)
SLIMPI_IMAGE(sum)
SLIMPI_IMAGE(decode)
SLIMPI_IMAGE(packed)
SLIMPI_IMAGE(plain)

namespace slimpi::device::cuda {

namespace {

// The CUDA modules, one for each file of kernels/cuda.
enum class Module { encode, sum, decode, packed, plain, count };

// Returns the compiled module for cuModuleLoadData().
const void* image_of(Module module) {
  // The images, in the order of the enumerators.
  static constexpr const void* kImages[] = {slimpi_image_encode, slimpi_image_sum,
                                            slimpi_image_decode, slimpi_image_packed,
                                            slimpi_image_plain};
  return kImages[int(module)];
}

std::mutex g_mutex;

// The known contexts. The list is never destroyed, because programs may free communicators after
// static destruction.
std::list<Context>& contexts() {
  static auto* const all = new std::list<Context>;
  return *all;
}

struct Name {
  Module module;
  const char* symbol;
};
constexpr Name kNames[] = {
#define SLIMPI_CUDA_NAME(module, name, arguments) {Module::module, "slimpi_" #name},
    SLIMPI_CUDA_KERNELS(SLIMPI_CUDA_NAME)
#undef SLIMPI_CUDA_NAME
};

int find_numa_node(CUdevice device) {
  char bus_id[32] = "";
  if (driver().cuDeviceGetPCIBusId(bus_id, sizeof bus_id, device) != CUDA_SUCCESS) return -1;
  return numa_node_of(bus_id);
}

// Finds the primary context of a GPU, which is retained once and never released: the program has
// memory on this GPU, so it uses the GPU anyway.
Status primary_context(int ordinal, CUcontext* handle) {
  static auto* const retained = new std::map<int, CUcontext>;
  if (const auto known = retained->find(ordinal); known != retained->end()) {
    *handle = known->second;
    return Status::ok;
  }
  CUdevice device = 0;
  SLIMPI_TRY(check(driver().cuDeviceGet(&device, ordinal), "finding the GPU of a buffer"));
  SLIMPI_TRY(check(driver().cuDevicePrimaryCtxRetain(handle, device),
                   "opening the GPU that a buffer lies on"));
  (*retained)[ordinal] = *handle;
  return Status::ok;
}

// Finds a context for memory that belongs to no GPU, such as some managed memory: the current
// context or, without one, the first primary context in use.
Status any_context(CUcontext* handle) {
  SLIMPI_TRY(check(driver().cuCtxGetCurrent(handle), "asking for the current context"));
  if (*handle != nullptr) return Status::ok;
  int count = 0;
  SLIMPI_TRY(check(driver().cuDeviceGetCount(&count), "counting the GPUs"));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    unsigned flags = 0;
    int active = 0;
    SLIMPI_TRY(check(driver().cuDeviceGet(&device, ordinal), "looking for a GPU in use"));
    SLIMPI_TRY(check(driver().cuDevicePrimaryCtxGetState(device, &flags, &active),
                     "looking for a GPU in use"));
    if (active != 0) return primary_context(ordinal, handle);
  }
  return failed(Status::device, "a buffer is managed memory, and the program uses no GPU");
}

// Returns the id of a context, or 0 if the context does not exist or the driver has no ids.
std::uint64_t id_of(CUcontext context) {
  unsigned long long id = 0;
  if (driver().cuCtxGetId == nullptr || driver().cuCtxGetId(context, &id) != CUDA_SUCCESS) return 0;
  return id;
}

// The address of this object is the Location::context of memory that belongs to no GPU.
char g_no_gpu;

// Returns Location::context for memory with these attributes.
void* own_context(const Attributes& attributes) {
  const bool nowhere = attributes.context == nullptr && attributes.device < 0;
  return nowhere ? static_cast<void*>(&g_no_gpu) : attributes.context;
}

Status find_context(int ordinal, void* own, Context** context) {
  const std::lock_guard lock(g_mutex);
  CUcontext handle = nullptr;
  if (own == &g_no_gpu)
    SLIMPI_TRY(any_context(&handle));
  else if (own == nullptr)
    SLIMPI_TRY(primary_context(ordinal, &handle));
  else
    handle = static_cast<CUcontext>(own);
  auto found = std::find_if(contexts().begin(), contexts().end(),
                            [&, id = id_of(handle)](const Context& known) {
                              return known.handle == handle && known.id == id;
                            });
  if (found == contexts().end()) {
    const Current current(handle);
    SLIMPI_TRY(current.status());
    CUdevice device = 0;
    SLIMPI_TRY(check(driver().cuCtxGetDevice(&device), "asking for a context's GPU"));
    contexts().emplace_back();
    found = std::prev(contexts().end());
    found->handle = handle;
    found->id = id_of(handle);
    found->numa_node = find_numa_node(device);
  }
  *context = &*found;
  return Status::ok;
}

}  // namespace

bool exists(const Context& context) {
  return driver().cuCtxGetId == nullptr || (context.id != 0 && id_of(context.handle) == context.id);
}

Current::Current(CUcontext context, Use use) : use_(use) {
  enter(context);
}

Current::Current(const Location& location)
    : status_(find_context(location.ordinal, location.context, &context_)) {
  if (status_ == Status::ok) enter(context_->handle);
}

Current::Current(const void* memory) {
  Attributes attributes;
  status_ =
      attributes_of(memory, &attributes)
          ? find_context(attributes.device, own_context(attributes), &context_)
          : failed(Status::device, "the CUDA driver does not know a buffer that it knew before");
  if (status_ == Status::ok) enter(context_->handle);
}

void Current::enter(CUcontext context) {
  status_ = check(driver().cuCtxPushCurrent_v2(context), "using the GPU's context");
  if (status_ == Status::ok && use_ == anything &&
      driver().cuThreadExchangeStreamCaptureMode != nullptr)
    (void)driver().cuThreadExchangeStreamCaptureMode(&mode_);
}

Current::~Current() {
  if (status_ != Status::ok) return;
  CUcontext mine = nullptr;
  if (use_ == anything && driver().cuThreadExchangeStreamCaptureMode != nullptr)
    (void)driver().cuThreadExchangeStreamCaptureMode(&mode_);
  (void)driver().cuCtxPopCurrent_v2(&mine);
}

bool attributes_of(const void* pointer, Attributes* attributes) {
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT};
  *attributes = {};
  void* values[] = {&attributes->type, &attributes->managed, &attributes->device,
                    &attributes->context};
  return driver().cuPointerGetAttributes(unsigned(std::size(names)), names, values,
                                         reinterpret_cast<CUdeviceptr>(pointer)) == CUDA_SUCCESS;
}

bool is_known(const void* memory) {
  Attributes attributes;
  return memory != nullptr && attributes_of(memory, &attributes) &&
         attributes.type != CUmemorytype(0);
}

namespace {

// An answer of the driver about an allocation, which the driver identifies by a number; each thread
// keeps its last answers. The driver never reuses a number, so memory that was freed and allocated
// again gets a new answer. If the driver gives no number (0), it is asked each time.
struct Allocation {
  unsigned long long number;
  Attributes attributes;
};
constexpr int kAllocations = 8;

// Gets the attributes of a pointer. Asks the driver for two of them, and for four more only if the
// allocation is not among the last answers.
bool attributes_by_number(const void* pointer, Attributes* attributes) {
  static thread_local Allocation met[kAllocations] = {};
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_BUFFER_ID};
  unsigned long long number = 0;
  *attributes = {};
  void* values[] = {&attributes->type, &number};
  if (driver().cuPointerGetAttributes(unsigned(std::size(names)), names, values,
                                      reinterpret_cast<CUdeviceptr>(pointer)) != CUDA_SUCCESS)
    return false;
  if (attributes->type == CUmemorytype(0)) return true;
  Allocation& known = met[number % kAllocations];
  if (number == 0 || known.number != number) {
    if (!attributes_of(pointer, &known.attributes)) return false;
    known.number = number;
  }
  *attributes = known.attributes;
  return true;
}

}  // namespace

bool locate(const void* pointer, Location* location) {
  Attributes attributes;
  if (!attributes_by_number(pointer, &attributes)) return false;
  location->ordinal = std::max(attributes.device, 0);
  location->context = own_context(attributes);
  if (attributes.type != CU_MEMORYTYPE_DEVICE && attributes.managed == 0) return false;
  CUcontext context = attributes.context;
  if (context == nullptr && location->context == nullptr) {
    const std::lock_guard lock(g_mutex);
    if (primary_context(location->ordinal, &context) != Status::ok) return true;
  }
  if (context != nullptr) location->generation = id_of(context);
  return true;
}

Status load_kernels(Context& context) {
  if (context.loaded.load(std::memory_order_acquire)) return Status::ok;
  const std::lock_guard lock(g_mutex);
  if (context.loaded.load(std::memory_order_relaxed)) return Status::ok;
  const Current current(context.handle);
  SLIMPI_TRY(current.status());
  CUmodule modules[int(Module::count)];
  for (int i = 0; i < int(Module::count); ++i)
    SLIMPI_TRY(check(driver().cuModuleLoadData(&modules[i], image_of(Module(i))),
                     "loading slimpi's kernels onto the GPU"));
  for (int i = 0; i < int(Kernel::count); ++i)
    SLIMPI_TRY(check(driver().cuModuleGetFunction(&context.kernels[i],
                                                  modules[int(kNames[i].module)], kNames[i].symbol),
                     kNames[i].symbol));
  // Load each kernel now. Newer drivers would load it at its first launch, and may then wait for
  // the GPU.
  for (CUfunction kernel : context.kernels)
    if (driver().cuFuncLoad != nullptr)
      SLIMPI_TRY(check(driver().cuFuncLoad(kernel), "loading slimpi's kernels onto the GPU"));
  context.loaded.store(true, std::memory_order_release);
  return Status::ok;
}

Status bus_id(const Location& location, char* text, std::size_t bytes) {
  const Current current(location);
  SLIMPI_TRY(current.status());
  CUdevice device = 0;
  SLIMPI_TRY(check(driver().cuCtxGetDevice(&device), "asking for a context's GPU"));
  return check(driver().cuDeviceGetPCIBusId(text, int(bytes), device),
               "getting the PCI bus id of a GPU");
}

}  // namespace slimpi::device::cuda
