! SPDX-License-Identifier: BSD-3-Clause
! Nonblocking and persistent sums in Fortran through the mpi module and mpi_f08, beside a request of
! another type. Each result has the bytes of the blocking call. Prints a line for each check and
! ends with status 1 if one failed. With the argument `failing`, the second sum of each communicator
! or persistent request has to fail, where it is completed.
subroutine through_module(failed)
  use mpi
  use checks
  implicit none
  integer, parameter :: many = 4
  integer, intent(inout) :: failed
  integer :: r(many), other, comm, status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, many)
  character(*), parameter :: binding = 'mpi module: '
  include 'nonblocking.inc'

  integer function error_of(i)
    integer, intent(in) :: i
    error_of = statuses(MPI_ERROR, i)
  end function
end subroutine

subroutine through_f08(failed)
  use mpi_f08
  use checks
  implicit none
  integer, parameter :: many = 4
  integer, intent(inout) :: failed
  type(MPI_Request) :: r(many), other
  type(MPI_Comm) :: comm
  type(MPI_Status) :: status, statuses(many)
  character(*), parameter :: binding = 'mpi_f08: '
  include 'nonblocking.inc'

  integer function error_of(i)
    integer, intent(in) :: i
    error_of = statuses(i)%MPI_ERROR
  end function
end subroutine

program nonblocking
  use mpi_f08
  use checks
  implicit none
  integer :: failed = 0, provided
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
  call through_module(failed)
  call through_f08(failed)
  call MPI_Finalize()
  if (failed > 0) stop 1
end program
