! SPDX-License-Identifier: BSD-3-Clause
! Nonblocking sums in Fortran, completed in eight ways, and an all-gather: with mpi_f08 where F08 is
! defined, else with the module mpi. PERSISTENT adds persistent ones, which Open MPI 4.1 has not,
! and the errors in statuses, which its Fortran does not copy. Without slimpi the argument is
! `exact`. With `failing` the second sum of each communicator, or persistent request, has to fail
! where it is completed.
#ifdef F08
#define COMM type(MPI_Comm)
#define REQUEST type(MPI_Request)
#define STATUS(name) type(MPI_Status) :: name(2)
#define FIRST statuses(1)
#define ERROR(i) statuses(i)%MPI_ERROR
#else
#define COMM integer
#define REQUEST integer
#define STATUS(name) integer :: name(MPI_STATUS_SIZE, 2)
#define FIRST statuses(:, 1)
#define ERROR(i) statuses(MPI_ERROR, i)
#endif
program requests
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer, parameter :: n = 20000, ways = 8
  integer :: way, i, rank, ranks, level, ierror, index, done, indices(2), times
  real :: near
  real, asynchronous :: a(n), b(n), c(n)
  logical :: flag
  REQUEST :: request(2)
  STATUS(statuses)
  character(8) :: word
  COMM :: comm

  call get_command_argument(1, word)
  near = merge(0., 2., word == 'exact')
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, level, ierror)
  if (level /= MPI_THREAD_MULTIPLE) stop 77
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  ! Before the first sum nothing of slimpi's has begun.
  request = MPI_REQUEST_NULL
  call MPI_Testany(2, request, index, flag, MPI_STATUS_IGNORE, ierror)
  call MPI_Testsome(2, request, done, indices, MPI_STATUSES_IGNORE, ierror)
  do way = 1, ways
    if (word == 'failing') then
      call fail_second(.false.)
      cycle
    end if
    call fill()
    call MPI_Iallreduce(MPI_IN_PLACE, a, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, request(1), ierror)
    call MPI_Iallreduce(b, c, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, request(2), ierror)
    if (way == 1) then
      flag = .false.
      do while (.not. flag)  ! with MPI_STATUS_IGNORE Open MPI 4.1 never sets it
        call MPI_Request_get_status(request(1), flag, FIRST, ierror)
      end do
      if (request(1) == MPI_REQUEST_NULL) call wrong('get_status')
    end if
    if (completed(2) /= MPI_SUCCESS) call wrong('code')
    if (request(1) /= MPI_REQUEST_NULL .or. request(2) /= MPI_REQUEST_NULL) call wrong('requests')
    call check()
  end do
  if (word /= 'failing') then
    call fill_block()
    call MPI_Iallgather(MPI_IN_PLACE, 0, MPI_REAL, a, n / ranks, MPI_REAL, MPI_COMM_WORLD, &
                        request(1), ierror)
    call check_blocks('MPI_Iallgather')
  end if
#ifdef PERSISTENT
  if (word == ' ') then
    call fill_block()
    call MPI_Allgather_init(MPI_IN_PLACE, 0, MPI_REAL, a, n / ranks, MPI_REAL, MPI_COMM_WORLD, &
                            MPI_INFO_NULL, request(1), ierror)
    call MPI_Start(request(1), ierror)
    call check_blocks('MPI_Allgather_init')
    call MPI_Request_free(request(1), ierror)
    call MPI_Allreduce_init(MPI_IN_PLACE, a, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &
                            request(1), ierror)
    call MPI_Allreduce_init(b, c, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &
                            request(2), ierror)
  end if
  do way = 1, ways
    if (word == 'failing') call fail_second(.true.)
    if (word /= ' ') cycle
    call fill()
    if (mod(way, 2) == 0) call MPI_Startall(2, request, ierror)
    do i = 1, 2  ! in another order on every second rank
      if (mod(way, 2) == 1) call MPI_Start(request(merge(i, 3 - i, mod(rank, 2) == 0)), ierror)
    end do
    if (completed(2) /= MPI_SUCCESS) call wrong('code, persistent')
    if (request(1) == MPI_REQUEST_NULL .or. request(2) == MPI_REQUEST_NULL) &
      call wrong('persistent requests')
    call check()
  end do
  if (word == ' ') then
    call MPI_Request_free(request(1), ierror)
    call MPI_Request_free(request(2), ierror)
    if (request(1) /= MPI_REQUEST_NULL .or. request(2) /= MPI_REQUEST_NULL) call wrong('free')
  end if
#endif
  if (rank == 0) print '(a)', trim(merge('the second', 'all ways  ', word == 'failing'))
  call MPI_Finalize(ierror)
contains
  subroutine fill()
    a = [(mod(i, 100) + rank, i = 1, n)]
    b = [(mod(i, 50), i = 1, n)]
    c = 0
  end subroutine

  ! A block of each rank, of equal values, which no codec changes.
  subroutine fill_block()
    a = 0
    a(rank * (n / ranks) + 1:(rank + 1) * (n / ranks)) = rank + 1
  end subroutine

  subroutine check_blocks(name)
    character(*), intent(in) :: name
    call MPI_Wait(request(1), MPI_STATUS_IGNORE, ierror)
    do i = 1, n / ranks * ranks
      if (a(i) /= (i - 1) / (n / ranks) + 1) exit
    end do
    if (i <= n / ranks * ranks) call wrong(name)
  end subroutine

  subroutine check()
    do i = 1, n
      if (abs(a(i) - real(ranks * mod(i, 100) + ranks * (ranks - 1) / 2)) > near) exit
      if (abs(c(i) - real(ranks * mod(i, 50))) > near) exit
    end do
    if (i <= n) call wrong('sums')
  end subroutine

  ! Completes the pending ones of both requests; the code of the one that fails, or of success.
  ! MPICH sets no flag beside an error.
  integer function completed(pending)
    integer, intent(in) :: pending
    integer :: code, left, found, places(2), j
    logical :: is_done
    completed = MPI_SUCCESS
    left = pending
    is_done = .false.
    do while (left > 0)
      select case (way)
      case (1)
        call MPI_Wait(request(left + 2 - pending), MPI_STATUS_IGNORE, code)
        found = 1
      case (2)
        call MPI_Waitall(2, request, statuses, code)
        found = 2
      case (3)
        call MPI_Waitany(2, request, j, MPI_STATUS_IGNORE, code)
        found = 1
      case (4)
        call MPI_Waitsome(2, request, found, places, statuses, code)
      case (5)
        call MPI_Test(request(left + 2 - pending), is_done, MPI_STATUS_IGNORE, code)
        found = merge(1, 0, is_done .or. code /= MPI_SUCCESS)
      case (6)
        call MPI_Testall(2, request, is_done, statuses, code)
        found = merge(2, 0, is_done .or. code /= MPI_SUCCESS)
      case (7)
        call MPI_Testany(2, request, j, is_done, MPI_STATUS_IGNORE, code)
        found = merge(1, 0, is_done .or. code /= MPI_SUCCESS)
      case (8)
        call MPI_Testsome(2, request, found, places, statuses, code)
      end select
#ifdef PERSISTENT
      if (code == MPI_ERR_IN_STATUS) code = merge(ERROR(1), ERROR(2), mod(way, 4) == 0)
#endif
      if (code /= MPI_SUCCESS) completed = code
      left = left - found
    end do
  end function

  subroutine fail_second(persistent)
    logical, intent(in) :: persistent
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierror)
    call fill()
#ifdef PERSISTENT
    if (persistent) call MPI_Allreduce_init(b, c, n, MPI_REAL, MPI_SUM, comm, MPI_INFO_NULL, &
                                            request(2), ierror)
#endif
    do times = 1, 3
      if (persistent) then
        call MPI_Start(request(2), ierror)
      else
        call MPI_Iallreduce(b, c, n, MPI_REAL, MPI_SUM, comm, request(2), ierror)
      end if
      if (ierror /= MPI_SUCCESS) call wrong('start')
      if ((completed(1) /= MPI_SUCCESS) .neqv. times == 2) call wrong('error')
    end do
    if (persistent) call MPI_Request_free(request(2), ierror)
    call MPI_Comm_free(comm, ierror)
  end subroutine

  subroutine wrong(what)
    character(*), intent(in) :: what
    print '(a, i2, 2a)', 'way ', way, ': wrong ', what
    stop 1
  end subroutine
end program
