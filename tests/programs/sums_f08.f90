! SPDX-License-Identifier: BSD-3-Clause
! The sums of sums.f90 through the mpi_f08 module, whose binding in MPICH calls PMPI_ names for all
! but what takes buffers.
subroutine through_f08(failed)
  use mpi_f08
  use checks
  implicit none
  integer, intent(inout) :: failed
  type(MPI_Comm) :: own
  type(MPI_Info) :: info
  character(*), parameter :: binding = 'mpi_f08: '
  include 'sums.inc'
end subroutine

program sums_f08
  use mpi_f08
  use checks
  implicit none
  character(8) :: argument
  integer :: failed = 0
  call get_command_argument(1, argument)
  exact = argument == 'exact'
  call MPI_Init()
  call through_f08(failed)
  call MPI_Finalize()
  if (failed > 0) stop 1
end program
