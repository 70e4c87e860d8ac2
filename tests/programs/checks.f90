! SPDX-License-Identifier: BSD-3-Clause
! What sums.f90 and sums_f08.f90 put in, what must come out, and how they say so.
module checks
  implicit none
  integer, parameter :: count = 100003, short = 10, guards = 4
  real, parameter :: guard = -12345.0
  logical :: exact = .false.
contains
  ! What rank r puts in at i: small whole numbers, another order on each rank.
  elemental integer function ramp(i, r)
    integer, intent(in) :: i, r
    ramp = mod(i + 3 * r, 17)
  end function

  elemental integer function ramps(i, ranks)
    integer, intent(in) :: i, ranks
    integer :: r
    ramps = 0
    do r = 0, ranks - 1
      ramps = ramps + ramp(i, r)
    end do
  end function

  ! Half a step of each rank's values and half a step of the sums, in 255 steps; a little for
  ! adding up floats.
  real function bound(sums, ranks)
    real, intent(in) :: sums(:)
    integer, intent(in) :: ranks
    bound = 0.0
    if (.not. exact) bound = 1.0001 * (ranks * 16.0 + maxval(sums) - minval(sums)) / 510.0
  end function

  integer function bad(good)
    logical, intent(in) :: good
    bad = merge(0, 1, good)
  end function

  subroutine tell(name, bad_ranks, rank, failed)
    character(*), intent(in) :: name
    integer, intent(in) :: bad_ranks, rank
    integer, intent(inout) :: failed
    failed = failed + bad_ranks
    if (rank == 0) print '(3a)', merge('PASS', 'FAIL', bad_ranks == 0), ' ', name
  end subroutine
end module
