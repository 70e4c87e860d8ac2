// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/hook.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "base/hash.h"
#include "base/plugin.h"
#include "comm/communicator.h"
#include "mpi/internal_comm.h"

namespace slimpi::algorithm {

namespace {

constexpr const char* kSymbol = "slimpi_hook";
// The most floats of a segment: kPiece, or the hook's own limit (max_piece) if that is set, up to
// kLongestPiece.
constexpr std::uint64_t kPiece = 65536, kLongestPiece = std::uint64_t(1) << 28;
constexpr std::uint64_t kMostBytes = std::uint64_t(1) << 30;  // of a segment's payload
constexpr char kGuard = '\xa5';

// While an InsideHook exists, its thread counts as inside a hook function; see inside_hook().
struct InsideHook {
  InsideHook() {
    ++t_locals.inside_hook;
    g_all_inside.fetch_add(1, std::memory_order_relaxed);
  }
  ~InsideHook() {
    g_all_inside.fetch_sub(1, std::memory_order_relaxed);
    --t_locals.inside_hook;
  }
};

// Calls a function of the hook and returns the function's code, 0 for success. If the function
// throws, returns -1 and writes the text of the exception to `reason`, of SLIMPI_HOOK_REASON_BYTES
// bytes.
template <typename Function>
int call_hook(char* reason, const Function& function) {
  const InsideHook inside;
  int code = -1;
  const Status status = caught([&] { code = function(); });
  if (status != Status::ok) {
    constexpr std::string_view kThrew = "it threw an exception: ";
    const std::span<char> text(reason, SLIMPI_HOOK_REASON_BYTES);
    kThrew.copy(text.data(), text.size());
    copy_failure_text(text.subspan(kThrew.size()));
  }
  return code;
}

std::string missing_function(const slimpi_hook_t& table) {
  if (table.kind == SLIMPI_HOOK_STRATEGY) return table.allreduce == nullptr ? "allreduce" : "";
  if (table.bound == nullptr) return "bound";
  if (table.encode == nullptr) return "encode";
  return table.decode == nullptr ? "decode" : "";
}

}  // namespace

// The arguments of a call of a hook function, and the buffer for the error text.
struct Hook::Arguments {
  Arguments(const Hook& hook, const comm::Call& call) {
    const comm::Communicator& communicator = call.communicator;
    const comm::NodeLayout& layout = call.communicator.layout();
    about.size = sizeof about;
    about.call = call.number;
    about.count = call.count;
    if (call.state != nullptr) {
      about.slot = call.state->number;
      // If a slot (tensor state) is identified only by the address of a buffer, it may belong to
      // another tensor by now, and nothing would bound the effect of its old data on the sum. So
      // the hook is told that the slot has had 0 calls, which makes it drop the data.
      about.slot_calls = call.state->uninitialized || !call.state->named() ? 0 : call.state->calls;
    }
    about.seed = call.communicator.config().seed;
    about.rank = communicator.rank();
    about.ranks = communicator.size();
    about.node = layout.node();
    about.nodes = layout.nodes();
    about.comm = hook.comm_ == mpi::abi.comm_null ? nullptr : &hook.comm_;
    about.sent = &sent;
    about.reason = reason;
  }
  Arguments(const Hook& hook, const comm::Call& call, const Piece& piece) : Arguments(hook, call) {
    about.first = piece.first;
    about.total = piece.total ? 1 : 0;
  }
  slimpi_hook_call_t about{};
  std::uint64_t sent = 0;
  char reason[SLIMPI_HOOK_REASON_BYTES] = "";
};

Hook::~Hook() {
  char reason[SLIMPI_HOOK_REASON_BYTES];  // not used
  if (open_ && table_->close != nullptr)
    (void)call_hook(reason, [&] {
      table_->close(context_);
      return 0;
    });
  if (comm_ != mpi::abi.comm_null) api_.Comm_free(&comm_);
}

// Returns the copy of `text` in a set. The set is never destroyed, because plans point into it and
// exit handlers may still make calls. It grows only with the number of different texts.
const std::string& kept_text(const std::string& text) {
  static std::mutex mutex;
  static auto& texts = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return *texts.insert(text).first;
}

Status refuse_hook(const std::string& option, const std::string& why) {
  return fail(Status::hook, option + " cannot be used: " + why);
}

Status Hook::load() {
  const Plugin plugin = Plugin::at(file_);
  if (!plugin.loaded()) return refuse_hook(option_, plugin.problem());
  void* const symbol = plugin.symbol(kSymbol);
  if (symbol == nullptr)
    return refuse_hook(option_, std::string("it does not export the symbol ") + kSymbol);

  // Look up the symbol's type and size in the file's symbol table before reading the hook table:
  // anything else might be under this name.
  Dl_info info{};
  void* extra = nullptr;
  const auto* const table = static_cast<const slimpi_hook_t*>(symbol);
  const std::string speaks = "this slimpi has version " + std::to_string(SLIMPI_HOOK_ABI) +
                             " of slimpi.h's hook ABI; build it with this slimpi's header";
  if (dladdr1(symbol, &info, &extra, RTLD_DL_SYMENT) == 0 || extra == nullptr)
    return refuse_hook(option_, std::string(kSymbol) + " has no entry in its symbol table");
  const auto* const entry = static_cast<const ElfW(Sym)*>(extra);
  if (ELF64_ST_TYPE(entry->st_info) != STT_OBJECT || entry->st_size < 2 * sizeof(std::uint32_t))
    return refuse_hook(option_, std::string(kSymbol) + " is not a struct slimpi_hook_t");
  if (table->abi != SLIMPI_HOOK_ABI)
    return refuse_hook(option_, "it has version " + std::to_string(table->abi) + ", and " + speaks);
  if (table->size < sizeof(slimpi_hook_t) || entry->st_size < sizeof(slimpi_hook_t))
    return refuse_hook(option_, "its slimpi_hook_t has " + std::to_string(table->size) +
                                    " bytes, not " + std::to_string(sizeof(slimpi_hook_t)) + "; " +
                                    speaks);
  if (table->kind != SLIMPI_HOOK_CODEC && table->kind != SLIMPI_HOOK_STRATEGY)
    return refuse_hook(option_, "kind " + std::to_string(table->kind) +
                                    " is neither SLIMPI_HOOK_CODEC nor SLIMPI_HOOK_STRATEGY");
  if ((table->flags & ~SLIMPI_HOOK_DEVICE_MEMORY) != 0 ||
      (table->flags != 0 && table->kind == SLIMPI_HOOK_CODEC))
    return refuse_hook(option_,
                       "flags " + std::to_string(table->flags) + " are not for this kind of hook");
  if (const std::string name = missing_function(*table); !name.empty())
    return refuse_hook(option_, "its function " + name + " is NULL");
  table_ = table;
  return Status::ok;
}

Status Hook::give_comm(mpi::Comm comm, int channel) {
  if (is_codec()) return Status::ok;
  return mpi::copy_internal(api_, comm, channel, &comm_);
}

Status Hook::open(const comm::Call& call) {
  Arguments arguments(*this, call);
  if (table_->open != nullptr)
    SLIMPI_TRY(call_function("open", arguments,
                             [&] { return table_->open(&arguments.about, &context_); }));
  open_ = true;
  if (!is_codec()) return Status::ok;
  piece_ = table_->max_piece == 0 ? kPiece : std::min(table_->max_piece, kLongestPiece);
  SLIMPI_TRY(find_bound(arguments, piece_, &most_bytes_));
  if (most_bytes_ > kMostBytes)
    return refuse_hook(option_, "bound(" + std::to_string(piece_) + ") is " +
                                    std::to_string(most_bytes_) +
                                    " bytes; at most 1 GiB, so lower max_piece");
  return Status::ok;
}

std::uint64_t Hook::identity() const {
  Fnv1a hash;
  for (const std::uint64_t word : {std::uint64_t(table_->kind), piece_, most_bytes_})
    hash.add(word);
  if (table_->name != nullptr) hash.add(std::string_view(table_->name));
  return hash.value();
}

// Calls a function of the hook, and returns Status::hook with an error text if it fails. A strategy
// may block in MPI until all ranks have called it, and the ranks may reach the hooks of two
// nonblocking sums in different orders, so call_blocking() lets other sums proceed meanwhile.
template <typename Function>
Status Hook::call_function(const char* name, Arguments& arguments, const Function& function) const {
  int code = 0;
  const auto call = [&] { return call_hook(arguments.reason, function); };
  if (is_codec())
    code = call();
  else
    call_blocking([&] { code = call(); });
  if (code == 0) return Status::ok;
  const std::string reason(arguments.reason, strnlen(arguments.reason, sizeof arguments.reason));
  return fail(Status::hook, "hook:" + file_ + ": " + name + " failed with " + std::to_string(code) +
                                " in call " + std::to_string(arguments.about.call) +
                                (reason.empty() ? "" : ": " + reason));
}

Status Hook::find_bound(Arguments& arguments, std::uint64_t count, std::uint64_t* bytes) const {
  return call_function("bound", arguments, [&] {
    *bytes = table_->bound(context_, count);
    return 0;
  });
}

Status Hook::encode(const comm::Call& call, const Piece& piece, const float* in, std::byte* out,
                    std::uint64_t* bytes) const {
  Arguments arguments(*this, call, piece);
  *bytes = 0;
  std::uint64_t room = 0;
  SLIMPI_TRY(find_bound(arguments, piece.count, &room));
  const auto bound_broken = [&](const std::string& how) {
    return fail(Status::hook, "hook:" + file_ + ": bound(" + std::to_string(piece.count) + ") is " +
                                  std::to_string(room) + " bytes, " + how);
  };
  if (room > most_bytes_)
    return bound_broken("more than bound(" + std::to_string(piece_) + "), " +
                        std::to_string(most_bytes_));
  std::memset(out + room, kGuard, kGuardBytes);
  SLIMPI_TRY(call_function("encode", arguments, [&] {
    return table_->encode(context_, &arguments.about, in, piece.count, out, room, bytes);
  }));
  const auto* const guard = reinterpret_cast<const char*>(out + room);
  const bool beyond =
      std::any_of(guard, guard + kGuardBytes, [](char byte) { return byte != kGuard; });
  if (*bytes > room || beyond)
    return bound_broken(
        std::string("but encode ") +
        (beyond ? "wrote beyond them" : "says that it wrote " + std::to_string(*bytes)) +
        " in call " + std::to_string(call.number));
  return Status::ok;
}

Status Hook::decode(const comm::Call& call, const Piece& piece, const std::byte* in,
                    std::uint64_t bytes, float* out) const {
  Arguments arguments(*this, call, piece);
  std::memset(out, 0, piece.count * sizeof(float));
  return call_function("decode", arguments, [&] {
    return table_->decode(context_, &arguments.about, in, bytes, out, piece.count);
  });
}

Status Hook::prepare(const comm::Call& call) const {
  if (table_->prepare == nullptr) return Status::ok;
  Arguments arguments(*this, call);
  return call_function("prepare", arguments,
                       [&] { return table_->prepare(context_, &arguments.about); });
}

Status Hook::allreduce(const comm::Call& call) const {
  Arguments arguments(*this, call);
  const Timed timed(call.communicator.statistics(), Stage::exchange, "hook", 4 * call.count);
  const Status status = call_function("allreduce", arguments, [&] {
    return table_->allreduce(context_, &arguments.about, call.in, call.out);
  });
  call.communicator.exchange().count_sent(arguments.sent);
  return status;
}

}  // namespace slimpi::algorithm
