// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/exchange.h"

#include <sched.h>

namespace slimpi::algorithm {

namespace {
Status mpi_failed(const mpi::Api& api, const char* what, int code) {
  return fail(Status::mpi, std::string(what) + ": " + mpi::error_text(api, code));
}
}  // namespace

Status Exchange::send(int to, Tag tag, const void* data, std::size_t bytes, MPI_Request& request) {
  const int code = api_.Isend(data, int(bytes / 4), MPI_UINT32_T, to, int(tag), comm_, &request);
  if (code != MPI_SUCCESS) return mpi_failed(api_, "sending", code);
  if (layout_ != nullptr && layout_->node_of[std::size_t(to)] != layout_->node())
    statistics_.sent(bytes);
  return Status::ok;
}

Status Exchange::receive(int from, Tag tag, void* data, std::size_t bytes, MPI_Request& request) {
  const int code = api_.Irecv(data, int(bytes / 4), MPI_UINT32_T, from, int(tag), comm_, &request);
  return code == MPI_SUCCESS ? Status::ok : mpi_failed(api_, "receiving", code);
}

Status Exchange::wait(MPI_Request& request, std::size_t* received) {
  if (request == MPI_REQUEST_NULL) return Status::ok;
  MPI_Status status;
  for (int done = 0; done == 0;) {
    const int code = api_.Test(&request, &done, &status);
    if (code != MPI_SUCCESS) return mpi_failed(api_, "waiting for a message", code);
    if (done == 0) sched_yield();
  }
  if (received != nullptr) {
    int words = 0;
    const int code = api_.Get_count(&status, MPI_UINT32_T, &words);
    if (code != MPI_SUCCESS) return mpi_failed(api_, "measuring a message", code);
    *received = words == MPI_UNDEFINED ? 0 : std::size_t(words) * 4;
  }
  return Status::ok;
}

Status Exchange::wait_all(std::span<MPI_Request> requests) {
  for (MPI_Request& request : requests) SLIMPI_TRY(wait(request));
  return Status::ok;
}

void Exchange::progress() {
  int flag = 0;
  MPI_Status status;
  api_.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, &status);
  sched_yield();
}

Status Exchange::reduce(std::span<std::uint64_t> values, MPI_Op op) {
  const int code =
      api_.Allreduce(MPI_IN_PLACE, values.data(), int(values.size()), MPI_UINT64_T, op, comm_);
  return code == MPI_SUCCESS ? Status::ok : mpi_failed(api_, "agreeing", code);
}

Status Exchange::all_min(std::span<std::uint64_t> values) {
  return reduce(values, MPI_MIN);
}
Status Exchange::all_max(std::span<std::uint64_t> values) {
  return reduce(values, MPI_MAX);
}

}  // namespace slimpi::algorithm
