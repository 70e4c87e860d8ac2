# SPDX-License-Identifier: BSD-3-Clause
"""Reads the variables that a launcher sets in a process's environment, before MPI is
initialized."""
import os

# The variables of Open MPI, of MPICH and its derivatives, of a step of Slurm, and of PyTorch, in
# this order.
_RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK")
_SIZE = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE")
_LOCAL_RANK = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "LOCAL_RANK")
_LOCAL_SIZE = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "LOCAL_WORLD_SIZE")


def is_of_mpi():
    """Returns whether a launcher of MPI has started this process directly, and not through
    torchrun."""
    return "TORCHELASTIC_RUN_ID" not in os.environ and any(
        name in os.environ for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"))


def by_torch():
    """Returns whether torchrun, or another launcher that sets the same variables, has started this
    process."""
    return not is_of_mpi() and all(
        name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def _number(names):
    for name in names[-1:] + names if by_torch() else names:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


def size():
    """Returns the number of ranks that the launcher started; None without a launcher."""
    return _number(_SIZE)


def rank():
    return _number(_RANK) if size() is not None else None


def local_rank():
    return _number(_LOCAL_RANK)


def local_size():
    return _number(_LOCAL_SIZE)


def family():
    """Returns the family of the launcher's MPI, "mpich" or "openmpi"; None if it is unknown."""
    if not is_of_mpi():
        return None
    if "OMPI_COMM_WORLD_SIZE" in os.environ:
        return "openmpi"
    return "mpich" if "PMI_SIZE" in os.environ and "SLURM_STEP_ID" not in os.environ else None


def prefix():
    """Returns the prefix at which the launcher's MPI is installed, from the path of the launcher,
    which runs in an ancestor of this process; None if no ancestor is a launcher."""
    if by_torch():
        return None
    process = os.getppid()
    for _ in range(8):
        try:
            program = os.readlink(f"/proc/{process}/exe")
            with open(f"/proc/{process}/stat") as stat:
                process = int(stat.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return None
        if os.path.basename(program).split(".")[0] in (
                "hydra_pmi_proxy", "mpiexec", "mpirun", "orted", "orterun", "prted", "prterun"):
            return os.path.dirname(os.path.dirname(program))
    return None


def set_environment():
    """Sets the variables of torchrun from those of a launcher of MPI. Variables that are already
    set keep their values."""
    if "RANK" in os.environ or size() is None:
        return
    values = {"RANK": rank(), "WORLD_SIZE": size(),
              "LOCAL_RANK": local_rank(), "LOCAL_WORLD_SIZE": local_size()}
    for name, value in values.items():
        if value is not None:
            os.environ.setdefault(name, str(value))
