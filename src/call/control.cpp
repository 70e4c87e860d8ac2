// SPDX-License-Identifier: BSD-3-Clause
// Settings that the program changes while it runs. Levels of MPI_Pcontrol switch slimpi off and on,
// and info keys set options of one communicator. An unknown key costs a warning, while an invalid
// value, or a key for an option of the whole process, ends the job.
#include "call/control.h"

#include "algorithm/policy.h"
#include "base/float_environment.h"
#include "base/process.h"
#include "call/queue.h"
#include "call/runtime.h"
#include "observe/log.h"

namespace slimpi::call {

void control(int level) {
  // The switch is a flag of the process, because MPI_Pcontrol may come before MPI_Init, when no MPI
  // function may be called.
  if (level == 0) Runtime::on = false;
  if (level == 1) Runtime::on = true;
  Runtime* const runtime = Runtime::get();
  // The report gets the numbers of rank 0 only, because a sum over the ranks would wait for ranks
  // that do not call MPI_Pcontrol.
  if (level == 2 && runtime != nullptr && !runtime->finished)
    runtime->report.write(JobReport::Scope::process);
}

namespace {

// Reads the rules file that slimpi_rules names; an empty value leaves the communicator without
// rules.
std::string read_rules(comm::Communicator& communicator) {
  Rules rules;
  const Config& config = communicator.config();
  const auto& file = config.rules;
  const std::string error =
      file ? read_rules(path_from_start(*file), config.written(Option::rules), rules) : "";
  if (error.empty()) communicator.attachment<RulesOfInfo>().rules = std::move(rules);
  return error;
}

// Sets an option of a communicator. Returns "", or why it cannot be set there.
std::string set_option(Config& config, Option option, const char* value) {
  const OptionRow& row = option_rows()[std::size_t(option)];
  if (row.scope == Scope::process || row.scope == Scope::job)
    return std::string("slimpi_") + row.name +
           " is an option of the process, not of a communicator; set " + row.variable +
           " for the job";
  return config.set(row.name, value, Source::info);
}

void take_key(Runtime& runtime, comm::Communicator& communicator, const std::string& name,
              const char* value) {
  Config& config = communicator.config();
  const std::optional<Option> option = find_option(name);
  if (!option) {
    if (communicator.rank() == 0) log_once(LogLevel::warn, config.set(name, value, Source::info));
    return;
  }
  const std::string before = config.value_text(*option);
  std::string error = set_option(config, *option, value);
  if (error.empty() && option == Option::rules) error = read_rules(communicator);
  if (!error.empty()) runtime.errors.end_job(communicator.user(), error);
  if (config.calls.has(Collective::allgather)) runtime.gathers = true;
  // An option whose value is the name of a file counts as changed even if the name is the same,
  // because the file may have new contents.
  if (config.value_text(*option) != before ||
      option_rows()[std::size_t(*option)].scope == Scope::contents)
    communicator.options_changed();
}

}  // namespace

std::string check_option(const char* name, const char* value) {
  Config config;
  const std::optional<Option> option = find_option(name);
  return option ? set_option(config, *option, value) : config.set(name, value, Source::info);
}

std::optional<std::string> option_value(const char* name) {
  const std::optional<Option> option = find_option(name);
  if (!option) return std::nullopt;
  return load_config(slimpi_environment()).config.value_text(*option);
}

int take_info(mpi::Comm comm, mpi::Info info) {
  const OwnFloats environment;
  Runtime* const runtime = Runtime::get(comm);
  if (runtime == nullptr || runtime->finished || comm == mpi::abi.comm_null ||
      info == mpi::abi.info_null)
    return mpi::kSuccess;
  const mpi::Api& api = runtime->api;
  // All ranks are in this call, but their keys may differ, so every rank compares its options
  // again, even if it gets no key or runs out of memory below.
  comm::Communicator* communicator = runtime->communicators.find(comm);
  if (communicator != nullptr) communicator->compare_options_again();
  int keys = 0;
  api.Info_get_nkeys(info, &keys);
  for (int i = 0; i < keys; ++i) {
    char key[mpi::kInfoKey] = "", value[mpi::kInfoValue] = "";
    int found = 0;
    api.Info_get_nthkey(info, i, key);
    const std::string option = info_key_option(lower_case(key));
    if (option.empty()) continue;
    api.Info_get(info, key, mpi::abi.max_info_val, value, &found);
    if (communicator == nullptr) communicator = runtime->communicators.find_or_follow(comm);
    if (found != 0 && communicator != nullptr) take_key(*runtime, *communicator, option, value);
  }
  if (communicator == nullptr) return mpi::kSuccess;
  // The options are checked together after the last key, because keys of options that exclude each
  // other may come in any order.
  const std::string error =
      algorithm::refuse(communicator->config(), runtime->rules_of(*communicator));
  if (!error.empty()) runtime->errors.end_job(comm, error);
  return mpi::kSuccess;
}

bool set_timeout(mpi::Comm comm, std::uint64_t seconds) {
  Runtime* const runtime = Runtime::get(comm);
  comm::Communicator* const communicator = runtime == nullptr || runtime->finished
                                               ? nullptr
                                               : runtime->communicators.find_or_follow(comm);
  if (communicator == nullptr) return false;
  const HoldFibers held;
  communicator->limit_waits(std::chrono::seconds(seconds));
  return true;
}

}  // namespace slimpi::call
