! SPDX-License-Identifier: BSD-3-Clause
! Sums in Fortran through mpif.h and the mpi module, checked against what they must be. Prints a
! line for each check and ends with status 1 if one failed. With the argument `exact` every sum must
! be exact; without it the sums of MPI_REAL may be off by the bound of 8-bit quantizing.
subroutine through_module(failed)
  use mpi
  use checks
  implicit none
  integer, intent(inout) :: failed
  integer :: own, info
  character(*), parameter :: binding = 'mpi module: '
  include 'sums.inc'
end subroutine

subroutine through_header(failed)
  use checks
  implicit none
  include 'mpif.h'
  integer, intent(inout) :: failed
  integer :: own, info
  character(*), parameter :: binding = 'mpif.h: '
  include 'sums.inc'
end subroutine

program sums
  use mpi
  use checks
  implicit none
  integer :: failed = 0, error
  character(8) :: argument
  call get_command_argument(1, argument)
  exact = argument == 'exact'
  call MPI_Init(error)
  call through_module(failed)
  call through_header(failed)
  call MPI_Finalize(error)
  if (failed > 0) stop 1
end program
