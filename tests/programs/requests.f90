! SPDX-License-Identifier: BSD-3-Clause
! Nonblocking sums in Fortran, completed in eight ways: with mpi_f08 where F08 is defined,
! else with the module mpi. Unlike nonblocking.f90 it needs no persistent ones, which Open MPI 4.1
! has not. Without slimpi the argument is `exact`. With `failing` the second sum has to fail, where
! it is completed.
#ifdef F08
#define COMM type(MPI_Comm)
#define REQUEST type(MPI_Request)
#define STATUS(name) type(MPI_Status) :: name(2)
#else
#define COMM integer
#define REQUEST integer
#define STATUS(name) integer :: name(MPI_STATUS_SIZE, 2)
#endif
program requests
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer, parameter :: n = 20000, ways = 8
  integer :: way, i, rank, ranks, level, ierror, found, index, done, indices(2)
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
  if (word == 'failing') then
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierror)
    a = 1
    do way = 1, 3
      call MPI_Iallreduce(a, c, n, MPI_REAL, MPI_SUM, comm, request(1), ierror)
      call MPI_Wait(request(1), MPI_STATUS_IGNORE, ierror)
      if ((ierror /= MPI_SUCCESS) .neqv. way == 2) call wrong('error')
    end do
    if (rank == 0) print '(a)', 'the second'
    call MPI_Finalize(ierror)
    stop
  end if
  ! Before the first sum nothing of slimpi's has begun.
  request = MPI_REQUEST_NULL
  call MPI_Testany(2, request, index, flag, MPI_STATUS_IGNORE, ierror)
  call MPI_Testsome(2, request, done, indices, MPI_STATUSES_IGNORE, ierror)
  do way = 1, ways
    a = [(mod(i, 100) + rank, i = 1, n)]
    b = [(mod(i, 50), i = 1, n)]
    c = 0
    call MPI_Iallreduce(MPI_IN_PLACE, a, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, request(1), ierror)
    call MPI_Iallreduce(b, c, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, request(2), ierror)
    flag = .false.
    done = 0
    select case (way)
    case (1)
      call MPI_Wait(request(1), MPI_STATUS_IGNORE, ierror)
      call MPI_Wait(request(2), MPI_STATUS_IGNORE, ierror)
    case (2)
      call MPI_Waitall(2, request, statuses, ierror)
    case (3)
      do i = 1, 2
        call MPI_Waitany(2, request, index, MPI_STATUS_IGNORE, ierror)
      end do
    case (4)
      do while (done < 2)
        call MPI_Waitsome(2, request, found, indices, statuses, ierror)
        done = done + found
      end do
    case (5)
      do i = 1, 2
        flag = .false.
        do while (.not. flag)
          call MPI_Test(request(i), flag, MPI_STATUS_IGNORE, ierror)
        end do
      end do
    case (6)
      do while (.not. flag)
        call MPI_Testall(2, request, flag, MPI_STATUSES_IGNORE, ierror)
      end do
    case (7)
      do while (done < 2)
        call MPI_Testany(2, request, index, flag, MPI_STATUS_IGNORE, ierror)
        if (flag) done = done + 1
      end do
    case (8)
      do while (done < 2)
        call MPI_Testsome(2, request, found, indices, statuses, ierror)
        done = done + found
      end do
    end select
    if (request(1) /= MPI_REQUEST_NULL .or. request(2) /= MPI_REQUEST_NULL) call wrong('requests')
    do i = 1, n
      if (abs(a(i) - real(ranks * mod(i, 100) + ranks * (ranks - 1) / 2)) > near) exit
      if (abs(c(i) - real(ranks * mod(i, 50))) > near) exit
    end do
    if (i <= n) call wrong('sums')
  end do
  if (rank == 0) print '(a)', 'all ways'
  call MPI_Finalize(ierror)
contains
  subroutine wrong(what)
    character(*), intent(in) :: what
    print '(a, i2, 2a)', 'way ', way, ': wrong ', what
    stop 1
  end subroutine
end program
