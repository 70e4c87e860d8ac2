// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/hook_file.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace slimpi::algorithm {

const HookFile& HookFile::at(const std::string& path) {
  static std::mutex mutex;
  // Never destroyed: exit handlers may still make calls whose plans point into it. Grows with the
  // number of different paths only.
  static auto& files = *new std::vector<std::unique_ptr<const HookFile>>;
  const std::lock_guard lock(mutex);
  for (const auto& file : files)
    if (file->path() == path) return *file;
  std::unique_ptr<const HookFile> made(new HookFile(path));
  files.push_back(std::move(made));
  return *files.back();
}

}  // namespace slimpi::algorithm
