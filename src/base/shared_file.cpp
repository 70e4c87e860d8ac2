// SPDX-License-Identifier: BSD-3-Clause
#include "base/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace slimpi {

namespace {

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

// The bytes that one fallocate() reserves. They are few, because a signal that interrupts
// fallocate() undoes what the call has reserved.
constexpr std::size_t kReservePiece = 256 << 10;

Status failed(const char* what) {
  return fail(Status::no_memory, std::string(what) + ": " + std::strerror(errno));
}

// Creates a file without a name. Some systems require MFD_NOEXEC_SEAL, and older ones do not know
// it.
int open_unnamed() {
  int file = memfd_create("slimpi", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  if (file < 0 && errno == EINVAL) file = memfd_create("slimpi", MFD_CLOEXEC);
  if (file < 0) file = ::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  return above_standard_streams(file);
}

// Fills in the socket address for `name`, and returns its length. The path begins with a 0 byte, so
// it is in the abstract namespace, which no file system has.
socklen_t address_of(std::uint64_t name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  const int length = std::snprintf(address->sun_path + 1, sizeof address->sun_path - 1,
                                   "slimpi-%016llx", static_cast<unsigned long long>(name));
  return socklen_t(offsetof(sockaddr_un, sun_path) + 1 + std::size_t(length));
}

// Returns whether the peer has the same user id. The check is needed because any process can
// connect to an abstract name.
bool same_user(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

int open_socket() {
  return above_standard_streams(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// A message of one byte that carries a descriptor.
struct RightsMessage {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  char byte = 'f';
  iovec data = {&byte, 1};
  msghdr header = {};
  RightsMessage() {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
};

template <typename Function>
auto without_interruption(Function function) {
  decltype(function()) result;
  do result = function();
  while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

Status SharedFile::create(std::size_t bytes) {
  if (!within_file_size_limit(bytes))
    return fail(Status::no_memory, "a shared-memory segment is larger than RLIMIT_FSIZE allows");
  file_.reset(open_unnamed());
  if (!file_.open()) return failed("creating a shared-memory segment");
  const int code = without_interruption([&] { return ftruncate(file_.get(), off_t(bytes)); });
  return code == 0 ? Status::ok : failed("sizing a shared-memory segment");
}

Status SharedFile::reserve(std::size_t offset, std::size_t bytes) {
  if (!within_file_size_limit(offset + bytes))
    return fail(Status::no_memory, "a shared-memory segment is larger than RLIMIT_FSIZE allows");
  for (const std::size_t end = offset + bytes; offset < end; offset += kReservePiece) {
    const std::size_t piece = std::min(kReservePiece, end - offset);
    const int code = without_interruption(
        [&] { return fallocate(file_.get(), 0, off_t(offset), off_t(piece)); });
    if (code != 0) return failed("reserving shared memory");
  }
  return Status::ok;
}

Status SharedFile::map(std::size_t bytes, std::byte** memory) {
  void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (address == MAP_FAILED) return failed("mapping a shared-memory segment");
  *memory = static_cast<std::byte*>(address);
  return Status::ok;
}

Status FileOffer::open(std::uint64_t name) {
  sockaddr_un address;
  const socklen_t length = address_of(name, &address);
  socket_.reset(open_socket());
  if (!socket_.open() ||
      bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(socket_.get(), SOMAXCONN) != 0)
    return failed("offering a shared-memory segment");
  return Status::ok;
}

// Drops connections of unrelated processes, which may arrive before the request with the token.
Status FileOffer::give(const SharedFile& file, std::uint64_t token) {
  for (;;) {
    const Descriptor connection(above_standard_streams(without_interruption(
        [&] { return accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); })));
    if (!connection.open()) return failed("handing out a shared-memory segment");
    std::uint64_t theirs = 0;
    const ssize_t got = without_interruption(
        [&] { return recv(connection.get(), &theirs, sizeof theirs, MSG_DONTWAIT); });
    if (!same_user(connection.get()) || got != ssize_t(sizeof theirs) || theirs != token) continue;
    RightsMessage message;
    cmsghdr* const rights = CMSG_FIRSTHDR(&message.header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = file.descriptor();
    std::memcpy(CMSG_DATA(rights), &number, sizeof number);
    const ssize_t sent = without_interruption(
        [&] { return sendmsg(connection.get(), &message.header, MSG_NOSIGNAL | MSG_DONTWAIT); });
    return sent == 1 ? Status::ok : failed("handing out a shared-memory segment");
  }
}

Status FileRequest::ask(std::uint64_t name, std::uint64_t token) {
  sockaddr_un address;
  const socklen_t length = address_of(name, &address);
  socket_.reset(open_socket());
  const auto connected = [&] {
    return connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), length);
  };
  if (!socket_.open() || without_interruption(connected) != 0)
    return failed("asking for a shared-memory segment");
  const ssize_t sent = without_interruption(
      [&] { return ::send(socket_.get(), &token, sizeof token, MSG_NOSIGNAL | MSG_DONTWAIT); });
  if (sent != ssize_t(sizeof token) || !same_user(socket_.get()))
    return failed("asking for a shared-memory segment");
  return Status::ok;
}

Status FileRequest::take(SharedFile* file) {
  RightsMessage message;
  const ssize_t got = without_interruption(
      [&] { return recvmsg(socket_.get(), &message.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC); });
  const cmsghdr* const rights = got == 1 ? CMSG_FIRSTHDR(&message.header) : nullptr;
  if (rights == nullptr || rights->cmsg_type != SCM_RIGHTS)
    return fail(Status::no_memory, "a shared-memory segment did not arrive");
  int number = -1;
  std::memcpy(&number, CMSG_DATA(rights), sizeof number);
  file->file_.reset(above_standard_streams(number));
  if (!file->file_.open()) return failed("keeping a shared-memory segment");
  return Status::ok;
}

}  // namespace slimpi
