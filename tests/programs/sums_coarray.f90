! SPDX-License-Identifier: BSD-3-Clause
! co_sum of coarray Fortran, which the runtime turns into an MPI_Allreduce of MPI_REAL4, in place.
! Arguments and output as in sums.f90.
program sums_coarray
  use checks
  implicit none
  character(*), parameter :: binding = 'coarray: '
  integer :: i, rank, ranks, failed = 0, verdict
  integer :: places(count), integers(count), lowest(count), highest(count)
  real :: values(count), wanted(count), few(short)
  double precision :: doubles(count)
  character(8) :: argument

  call get_command_argument(1, argument)
  exact = argument == 'exact'
  rank = this_image() - 1
  ranks = num_images()
  places = [(i, i = 1, count)]

  values = rank + 1
  call co_sum(values)
  call agree('real(4), constants', all(values == ranks * (ranks + 1) / 2))

  wanted = ramps(places, ranks)
  values = ramp(places, rank)
  call co_sum(values)
  call agree('real(4)', maxval(abs(values - wanted)) <= bound(wanted, ranks))

  integers = transfer(values, integers)
  lowest = integers
  highest = integers
  call co_min(lowest)
  call co_max(highest)
  call agree('the same bytes on every image', all(lowest == integers .and. highest == integers))

  doubles = ramp(places, rank)
  call co_sum(doubles)
  call agree('real(8)', all(doubles == wanted))

  integers = ramp(places, rank)
  call co_sum(integers)
  call agree('integer(4)', all(integers == wanted))

  few = ramp(places(:short), rank)
  call co_sum(few)
  call agree('real(4), few', all(few == wanted(:short)))
  if (failed > 0) stop 1
contains
  subroutine agree(name, good)
    character(*), intent(in) :: name
    logical, intent(in) :: good
    verdict = bad(good)
    call co_sum(verdict)
    call tell(binding // name, verdict, rank, failed)
  end subroutine
end program
