# SPDX-License-Identifier: BSD-3-Clause
"""Calls libslimpi and the process's MPI through ctypes.

Every handle and constant is one machine word, in the form in which slimpi_get_mpi_constant of
slimpi.h returns it. A function that libslimpi defines is called in libslimpi, so that the library
need not be preloaded; all others are called in MPI's library.
"""
import ctypes
import functools
import glob
import os
import re
import sys

from . import _launcher

_KINDS = {"p": ctypes.c_void_p, "h": ctypes.c_size_t, "i": ctypes.c_int, "s": ctypes.c_char_p}

# The types of each function's arguments. p: a pointer, also one to a result; h: a handle; i: an
# int; s: text.
_SIGNATURES = {
    "MPI_Abort": "hi", "MPI_Allgather": "pihpihh", "MPI_Allreduce": "ppihhh", "MPI_Barrier": "h",
    "MPI_Bcast": "pihih",
    "MPI_Comm_create_group": "hhip", "MPI_Comm_free": "p", "MPI_Comm_group": "hp",
    "MPI_Comm_rank": "hp", "MPI_Comm_set_errhandler": "hh", "MPI_Comm_set_info": "hh",
    "MPI_Comm_set_name": "hs", "MPI_Comm_size": "hp", "MPI_Error_string": "ipp",
    "MPI_Finalize": "", "MPI_Finalized": "p", "MPI_Get_library_version": "pp",
    "MPI_Group_free": "p", "MPI_Group_incl": "hipp", "MPI_Iallreduce": "ppihhhp",
    "MPI_Info_create": "p", "MPI_Info_free": "p", "MPI_Info_set": "hss", "MPI_Init_thread": "ppip",
    "MPI_Initialized": "p", "MPI_Iprobe": "hihpp", "MPI_Isend": "pihiihp", "MPI_Query_thread": "p",
    "MPI_Recv": "pihhihp", "MPI_Reduce_scatter_block": "ppihhh", "MPI_Request_free": "p",
    "MPI_Wait": "pp", "PMPI_Allreduce": "ppihhh",
}
STATUS_BYTES = 64    # more than any MPI's MPI_Status
_TEXT_BYTES = 16384  # more than any MPI's MPI_MAX_LIBRARY_VERSION_STRING


class Error(RuntimeError):
    """An error whose text says what slimpi cannot do and how to solve that."""


class WrongLauncher(Error):
    """An error that is the same on every rank of the job, so that one rank is enough to print
    it."""


def text_of(error):
    """Returns the text of an exception as a line for the other ranks."""
    return str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"


class Matrix(ctypes.Structure):
    """slimpi_matrix_t of slimpi.h"""
    _fields_ = [("rows", ctypes.c_uint64), ("columns", ctypes.c_uint64)]


class Tensor(ctypes.Structure):
    """slimpi_tensor_t of slimpi.h"""
    _fields_ = [("size", ctypes.c_uint64), ("name", ctypes.c_char_p),
                ("matrices", ctypes.POINTER(Matrix)), ("matrix_count", ctypes.c_uint64)]


def mapped(pattern):
    """Returns the paths of files that this process has mapped and whose name, without directory,
    matches the pattern."""
    with open("/proc/self/maps") as maps:
        paths = dict.fromkeys(line.rstrip("\n").split(None, 5)[5] for line in maps if "/" in line)
    return [path for path in paths if re.search(pattern, os.path.basename(path))]


def _installed_library():
    """Yields the paths where the libslimpi of this package may be: in an installation's prefix, and
    in the environment of a wheel."""
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(here, "..", "..", "..", "libslimpi.so.0")  # PREFIX/lib/slimpi/python/slimpi
    try:
        from importlib import metadata
        for file in metadata.files("slimpi") or []:
            if file.name == "libslimpi.so.0":
                yield str(file.locate())
    except metadata.PackageNotFoundError:
        pass


def load_slimpi():
    """Returns the libslimpi that is preloaded, or else the one that was installed with this
    package."""
    for path in mapped(r"^libslimpi\.so"):
        return ctypes.CDLL(path)
    for path in _installed_library():
        if os.path.exists(path):
            return ctypes.CDLL(path)
    try:
        return ctypes.CDLL("libslimpi.so.0")
    except OSError:
        raise Error("libslimpi.so.0 was not found: start the program with slimpi-run, or install "
                    "slimpi with pip") from None


def _candidates():
    """Yields files and names of MPI libraries, the launcher's own first. Under torchrun MPICH comes
    before Open MPI, because torchrun can start MPICH only."""
    names = {"mpich": ["libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.0"],
             "openmpi": ["libmpi.so.40"]}
    family = _launcher.family()
    families = [names[family]] if family else list(names.values())
    for names in families if _launcher.by_torch() else [sum(families, [])]:
        for prefix in filter(None, (_launcher.prefix(), sys.prefix)):
            for name in names:
                yield from glob.glob(os.path.join(prefix, "lib", name))
                yield from glob.glob(os.path.join(prefix, "lib", "*-linux-gnu", name))
        yield from names


def load_mpi():
    """Returns the MPI library that the process has loaded; if it has none, loads the launcher's or
    another."""
    for path in mapped(r"^libmpi(ch|_abi)?\.so"):
        return ctypes.CDLL(path)
    for name in _candidates():
        try:
            return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
    raise Error("no MPI was found: install one (pip install mpich, or apt-get install mpich), or "
                "name the directory of its libmpi.so in LD_LIBRARY_PATH")


class Mpi:
    """Calls functions of MPI by name. Raises an Error if one returns an error."""

    def __init__(self):
        self.slimpi = load_slimpi()
        self.library = load_mpi()
        self._functions, self._constants = {}, {}
        self.interface = ""  # names the network interface, if slimpi chose it
        self.slimpi.slimpi_version.restype = ctypes.c_char_p
        self.version = self.slimpi.slimpi_version().decode()
        text, length = ctypes.create_string_buffer(_TEXT_BYTES), ctypes.c_int()
        self.call("MPI_Get_library_version", text, ctypes.byref(length))
        # Open MPI's text is long, such as "Open MPI v4.1.4, package: ...", so only the part before
        # "," is kept.
        line = text.value.decode(errors="replace").splitlines()[0].partition(",")[0]
        self.description = " ".join(line.split())

    def constant(self, name):
        if name in self._constants:
            return self._constants[name]
        value = ctypes.c_uint64()
        if self.slimpi.slimpi_get_mpi_constant(name.encode(), ctypes.byref(value)) != 0:
            raise Error(f"slimpi does not support this MPI ({self.description}): use MPICH, "
                        "Open MPI, or one with their ABI")
        self._constants[name] = value.value
        return value.value

    def _function(self, name):
        function = self._functions.get(name)
        if function is None:
            library = self.slimpi if hasattr(self.slimpi, name) else self.library
            function = getattr(library, name)
            function.argtypes = [_KINDS[kind] for kind in _SIGNATURES[name]]
            function.restype = ctypes.c_int
            self._functions[name] = function
        return function

    def call(self, name, *arguments):
        code = self._function(name)(*arguments)
        if code != 0:
            raise Error(f"{name}: {self._error_text(code)}")

    def _error_text(self, code):
        text, length = ctypes.create_string_buffer(_TEXT_BYTES), ctypes.c_int()
        if self._function("MPI_Error_string")(code, text, ctypes.byref(length)) != 0:
            return f"MPI error {code}"
        return text.value.decode(errors="replace")

    def integer(self, name, *arguments):
        """Calls a function that writes an int to its last argument, and returns the int."""
        value = ctypes.c_int()
        self.call(name, *arguments, ctypes.byref(value))
        return value.value

    def handle(self, name, *arguments):
        """Calls a function that writes a handle to its last argument, and returns the handle."""
        value = ctypes.c_uint64(0)
        self.call(name, *arguments, ctypes.byref(value))
        return value.value

    def check_option(self, name, value):
        reason = ctypes.create_string_buffer(1024)
        if self.slimpi.slimpi_check_option(name.encode(), value.encode(), reason,
                                           ctypes.c_uint64(len(reason))) != 0:
            raise Error(reason.value.decode(errors="replace"))

    def option(self, name):
        """Returns the text of an option's value in this process."""
        value = ctypes.create_string_buffer(4096)
        self.slimpi.slimpi_get_option(name.encode(), value, ctypes.c_uint64(len(value)))
        return value.value.decode(errors="replace")

    @functools.lru_cache(None)
    def traits(self, algorithm):
        """Returns the traits of an algorithm that are not the default, by the names that they have
        in src/options/algorithms.def."""
        function = self.slimpi.slimpi_get_traits
        function.restype = ctypes.c_char_p
        text = function(algorithm.partition(":")[0].encode()).decode()
        return dict(re.findall(r"\.(\w+) = (?:\w+::)?(\w+)", text))

    def set_timeout(self, comm, seconds):
        """Sets how long this rank waits at most in later sums on a communicator."""
        self.slimpi.slimpi_set_timeout(ctypes.byref(ctypes.c_uint64(comm)),
                                       ctypes.c_uint64(seconds))

    def describe_next(self, name, matrices=()):
        rows = (Matrix * len(matrices))(*(Matrix(*matrix) for matrix in matrices))
        tensor = Tensor(ctypes.sizeof(Tensor), name.encode(), rows, len(matrices))
        if self.slimpi.slimpi_describe_next(ctypes.byref(tensor)) != 0:
            raise Error(f"slimpi_describe_next refused the matrices of {name}: each needs at least "
                        "one row and one column")

    def get_state(self, comm, name):
        """Returns the state of a named tensor as bytes; None if the tensor has no state."""
        comm, size = ctypes.c_uint64(comm), ctypes.c_uint64()
        arguments = ctypes.byref(comm), name.encode()
        if self.slimpi.slimpi_get_state(*arguments, None, ctypes.byref(size)) != 0:
            return None
        state = ctypes.create_string_buffer(size.value)
        if self.slimpi.slimpi_get_state(*arguments, state, ctypes.byref(size)) != 0:
            return None
        return state.raw

    def set_state(self, comm, name, state):
        """Sets the state of a named tensor from bytes. If `state` is None, on all ranks, the
        tensor's next sum begins without state. Returns whether the bytes were a state that this
        rank can use."""
        comm = ctypes.c_uint64(comm)
        return self.slimpi.slimpi_set_state(ctypes.byref(comm), name.encode(), state,
                                            ctypes.c_uint64(len(state or b""))) == 0


def check_bits(mpi, bits, algorithm, name="--torch-weights"):
    """Raises an Error if weights cannot be sent in this number of bits. name: the option or
    argument that the error names."""
    try:
        mpi.check_option("bits", bits)
    except Error as error:
        raise Error(str(error).replace("slimpi_bits", name)) from None
    if float(bits) % 1 and mpi.traits(algorithm).get("codec") != "packed":
        raise Error(f"{name}={bits} cannot be combined with {algorithm}; accepted: 1 to 16 without "
                    "a half, or the algorithm packed")
