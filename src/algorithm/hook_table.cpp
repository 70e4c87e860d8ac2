// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/hook_table.h"

#include <dlfcn.h>
#include <link.h>

#include <mutex>
#include <set>

#include "base/plugin.h"

namespace slimpi::algorithm {

namespace {

constexpr const char* kSymbol = "slimpi_hook";

std::string missing_function(const slimpi_hook_t& table) {
  if (table.kind == SLIMPI_HOOK_STRATEGY) return table.allreduce == nullptr ? "allreduce" : "";
  if (table.bound == nullptr) return "bound";
  if (table.encode == nullptr) return "encode";
  return table.decode == nullptr ? "decode" : "";
}

}  // namespace

// Never destroyed: exit handlers may still make calls whose plans point into it. Grows with the
// number of different paths only.
const std::string& hook_file(const std::string& path) {
  static std::mutex mutex;
  static auto& files = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return *files.insert(path).first;
}

Status refuse_hook(const std::string& file, const std::string& why) {
  return fail(Status::hook, "SLIMPI_ALGORITHM=hook:" + file + " cannot be used: " + why);
}

Status find_hook_table(const std::string& file, const slimpi_hook_t** found) {
  const Plugin plugin = Plugin::at(file);
  if (!plugin.loaded()) return refuse_hook(file, plugin.problem());
  void* const symbol = plugin.symbol(kSymbol);
  if (symbol == nullptr)
    return refuse_hook(file, std::string("it does not export the symbol ") + kSymbol);

  // The symbol table of the file gives the type and the size of the symbol. Without this check it
  // is not safe to read the hook table.
  Dl_info info{};
  void* extra = nullptr;
  const auto* const table = static_cast<const slimpi_hook_t*>(symbol);
  const std::string speaks = "this slimpi has version " + std::to_string(SLIMPI_HOOK_ABI) +
                             " of slimpi.h's hook ABI; build it with this slimpi's header";
  if (dladdr1(symbol, &info, &extra, RTLD_DL_SYMENT) == 0 || extra == nullptr)
    return refuse_hook(file, std::string(kSymbol) + " has no entry in its symbol table");
  const auto* const entry = static_cast<const ElfW(Sym)*>(extra);
  if (ELF64_ST_TYPE(entry->st_info) != STT_OBJECT || entry->st_size < 2 * sizeof(std::uint32_t))
    return refuse_hook(file, std::string(kSymbol) + " is not a struct slimpi_hook_t");
  if (table->abi != SLIMPI_HOOK_ABI)
    return refuse_hook(file, "it has version " + std::to_string(table->abi) + ", and " + speaks);
  if (table->size < sizeof(slimpi_hook_t) || entry->st_size < sizeof(slimpi_hook_t))
    return refuse_hook(file, "its slimpi_hook_t has " + std::to_string(table->size) +
                                 " bytes, not " + std::to_string(sizeof(slimpi_hook_t)) + "; " +
                                 speaks);
  if (table->kind != SLIMPI_HOOK_CODEC && table->kind != SLIMPI_HOOK_STRATEGY)
    return refuse_hook(file, "kind " + std::to_string(table->kind) +
                                 " is neither SLIMPI_HOOK_CODEC nor SLIMPI_HOOK_STRATEGY");
  if ((table->flags & ~SLIMPI_HOOK_DEVICE_MEMORY) != 0 ||
      (table->flags != 0 && table->kind == SLIMPI_HOOK_CODEC))
    return refuse_hook(file,
                       "flags " + std::to_string(table->flags) + " are not for this kind of hook");
  if (const std::string name = missing_function(*table); !name.empty())
    return refuse_hook(file, "its function " + name + " is NULL");
  *found = table;
  return Status::ok;
}

}  // namespace slimpi::algorithm
