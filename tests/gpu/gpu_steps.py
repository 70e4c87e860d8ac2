# SPDX-License-Identifier: BSD-3-Clause
"""The machine with a GPU as tests/gpu/run sees it, and the steps that it runs there."""

import ctypes
import os
import pathlib
import shutil
import subprocess
import sys

LIBRARIES = "usr/lib/x86_64-linux-gnu"
PROGRAMS = "kernels sums calls bench end_to_end passing lowrank nccl habits".split()


def stop(text, code=2):
    print(f"tests/gpu/run: {text}", file=sys.stderr)
    sys.exit(code)


def gpus():
    """How many GPUs CUDA's driver sees; 0 without a driver."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def output(*command):
    """What a command prints; "" where it does not work."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def libraries_of_packages():
    """Folders of NCCL and cuBLAS that came with Python's packages, where no loader looks."""
    files = [file for entry in sys.path for name in ("libnccl.so.2", "libcublas.so.1[123]")
             for file in pathlib.Path(entry).glob(f"nvidia/*/lib/{name}")]
    return sorted({str(file.parent) for file in files})


class Machine:
    """Where things are on the machine with the GPU."""

    def __init__(self, carry, work, quick=False):
        self.carry, self.work = carry, work
        self.quick = quick
        self.sizes = "64K 1M" if quick else "1M 4M 16M 64M 256M 1G"  # of the sums that are timed
        self.root, self.build = work / "root", work / "build"
        self.results, self.logs = work / "results", work / "logs"
        self.preload = self.build / ".libs/libslimpi.so"
        self.prebuilt = carry / "prebuilt"
        # If there are no packages, this is a rehearsal on the system that the tree was built on.
        self.local = not list(carry.glob("*.deb"))
        self.environment = dict(os.environ)
        self.environment.update(
            MPI4PY_MPIABI="mpich", PYTHONUNBUFFERED="1", UCX_LOG_LEVEL="error",
            PATH=f"{self.work}/bin:{self.root}/usr/bin:{os.environ['PATH']}:/usr/local/cuda/bin:"
                 f"/usr/sbin:/sbin:{self.root}/sbin:{self.root}/bin")
        # Only MPI and slimpi's own programs use these paths: for PyTorch, Debian's libraries would
        # be loaded in the place of PyTorch's own.
        paths = [str(self.root / LIBRARIES),
                 str(self.root / LIBRARIES.removeprefix("usr/")),
                 os.environ.get("LD_LIBRARY_PATH", ""), *libraries_of_packages()]
        self.libraries = f"LD_LIBRARY_PATH={':'.join(filter(None, paths))}"
        paths = [f"{self.work}/lib-mpi", os.environ.get("LD_LIBRARY_PATH", "")]
        self.mpi_only = f"LD_LIBRARY_PATH={':'.join(filter(None, paths))}"
        self.mpiexec = "mpiexec.mpich" if self.local else f"{self.work}/bin/mpiexec"

    def unpack(self):
        if self.local:
            return (f"rm -rf {self.build} && mkdir -p {self.root} {self.work}/lib-mpi && "
                    f"cp -r {self.prebuilt} {self.build} && {self.probe()}")
        packages = sorted(self.carry.glob("*.deb"))
        tarballs = sorted(self.carry.glob("slimpi-*.tar.gz"))
        if not packages or not tarballs:
            return (f"echo '{self.carry} holds no packages: fill it with tests/gpu/run --pack, on "
                    "a machine with a network'; exit 1")
        folders = [self.root, self.build, *(self.work / name for name in (
            "source", "bin", "lib-mpi"))]
        lines = ["set -e"]
        lines += [f"rm -rf {folder} && mkdir -p {folder}" for folder in folders]
        lines += [f"dpkg-deb -x {package} {self.root}" for package in packages]
        lines += [f"tar -xzf {tarball} -C {self.root}" for tarball in self.carry.glob("*.tgz")]
        lines += [f"tar -xzf {tarballs[-1]} -C {self.work}/source --strip-components=1"]
        # Packages that were made for /usr, used from elsewhere. Python's mpi4py looks for libmpi.
        mpicc = (f"-I{self.root}/usr/include/x86_64-linux-gnu/mpich -L{self.root}/{LIBRARIES} "
                 "-lmpich")
        lines += [
            f"ln -sf libmpich.so.12 {self.root}/{LIBRARIES}/libmpi.so.12",
            # mpiexec looks for its helpers beside itself.
            f"ln -sf {self.root}/usr/bin/mpiexec.hydra {self.work}/bin/mpiexec",
            f"ln -sf {self.root}/usr/bin/hydra_pmi_proxy {self.work}/bin/hydra_pmi_proxy",
            f"cat >{self.work}/bin/mpicc <<'END'\n#!/bin/sh\n"
            f'[ "$1" = -show ] && {{ echo "gcc {mpicc}"; exit; }}\n'
            f'exec gcc "$@" {mpicc}\nEND', f"chmod +x {self.work}/bin/mpicc"]
        # MPI's library, and what it and mpiexec need that only the packages have.
        lines += [f"ln -s {self.root}/{LIBRARIES}/libmpi*.so.12 {self.work}/lib-mpi",
                  f"env {self.libraries} ldd {self.root}/{LIBRARIES}/libmpich.so.12 "
                  f"{self.work}/bin/mpiexec {self.work}/bin/hydra_pmi_proxy | "
                  f"awk '$3 ~ \"^{self.root}\" {{ print $3 }}' | "
                  f"xargs -r -I+ ln -sf + {self.work}/lib-mpi",
                  *(f"env {libraries} {self.mpiexec} -n 1 true"
                    for libraries in (self.libraries, self.mpi_only))]
        return "\n".join(lines)

    def probe(self):
        """A command that says whether the prebuilt tree runs here."""
        return (f"test -e {self.build}/.libs/slimpi-cuda.so && ! env {self.libraries} ldd "
                f"{self.build}/.libs/*.so {self.build}/tests/gpu/sums "
                f"{self.build}/tests/gpu/kernels | grep 'not found'")

    def make(self):
        """Takes the prebuilt tree where it runs, else builds."""
        if self.local:
            return self.probe()
        jobs = os.cpu_count() or 1
        programs = " ".join(f"tests/gpu/{name}" for name in PROGRAMS)
        return (f"rm -rf {self.build} && mkdir -p {self.build} && "
                f"if [ -d {self.prebuilt} ] && cp -rT {self.prebuilt} {self.build} && "
                f"{self.probe()}; then echo 'the prebuilt tree runs here'; else "
                f"rm -rf {self.build} && mkdir -p {self.build} && {self.configure()} && "
                f"env {self.libraries} make -j{jobs} && "
                f"env {self.libraries} make -j{jobs} {programs}; fi")

    def alone(self, program):
        """A command line that runs a program of slimpi's by itself."""
        return f"cd {self.build} && env {self.libraries} {program}"

    def configure(self):
        include, lib = f"{self.root}/usr/include", f"{self.root}/{LIBRARIES}"
        return (f"cd {self.build} && {self.work}/source/configure --with-cuda "
                f"MPICC={self.work}/bin/mpicc MPIEXEC={self.work}/bin/mpiexec "
                f"CPPFLAGS='-isystem {include}' LDFLAGS=-L{lib} "
                f"HWLOC_CFLAGS=-I{include} HWLOC_LIBS='-L{lib} -lhwloc' "
                f"CMOCKA_CFLAGS=-I{include} CMOCKA_LIBS='-L{lib} -lcmocka'")

    def ranks(self, number, program, options="", tool="", libraries=None, way=""):
        """A command line that runs a program on ranks under the library; the tool runs without.
        way: in which the program's MPI_Allreduce is made (tests/helper/mpi/another_way.c)."""
        preload = f"{self.preload}"
        if way:
            preload = f"{self.build}/tests/helper/.libs/libanother_way.so:{preload} TEST_WAY={way}"
        return (f"cd {self.build} && env {libraries or self.libraries} {self.mpiexec} -n {number} "
                f"env {options} {tool} env LD_PRELOAD={preload} {program}")


class Step:
    """A command; the seconds that it should take, and those that it may; whether others need it,
    and whether it may find that the machine does not allow what it does (77)."""

    def __init__(self, name, command, expected, limit, needed=False, may_skip=False):
        self.name, self.command, self.needed, self.may_skip = name, command, needed, may_skip
        self.expected, self.limit = expected, limit


def first_steps(machine):
    """What the first minutes are for."""
    far = "SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1"
    results = machine.results
    one_gpu = machine.ranks(
        2, f"tests/gpu/end_to_end {results}/end-to-end-one.json {machine.sizes}",
        "SLIMPI_RANKS_PER_NODE=1 GPU_RANKS=1")
    check = "compute-sanitizer --error-exitcode 9 --tool"
    kernels = f"{'env SHORT=1 ' if machine.quick else ''}tests/gpu/kernels"
    floats = "--quick 3000" if machine.quick else ""
    steps = [Step("kernels", machine.alone(kernels), 60, 300),
             Step("sums-2", machine.ranks(2, "tests/gpu/sums", far), 30, 200),
             Step("bench-kernels", machine.alone(
                 f"tests/gpu/bench --json {results}/bench-kernels.json {floats}"), 60, 300),
             # One rank on the GPU, the other on host buffers: nothing shares the GPU's time.
             Step("end-to-end-one", one_gpu, 60, 300)]
    for tool in ("memcheck", "racecheck"):
        steps.append(Step(f"{tool}-kernels", machine.alone(
            f"env SHORT=1 {check} {tool} tests/gpu/kernels"), 60, 200))
        steps.append(Step(f"{tool}-sums-2", machine.ranks(
            2, "tests/gpu/sums", f"SHORT=1 {far}", f"{check} {tool}"), 60, 120))
    return steps


def more_sums(machine):
    """Sums by all ways, on one GPU."""
    near = "SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=0"
    far = "SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1"
    steps = []
    for number in (1, 2, 4):
        if number != 2:
            steps.append(Step(f"sums-{number}", machine.ranks(number, "tests/gpu/sums", far), 40,
                              200))
        steps += [Step(f"sums-{number}-in-node", machine.ranks(
                      number, "tests/gpu/sums", f"EXACT=1 {near} SLIMPI_INTRA=shm"), 40, 200),
                  Step(f"calls-{number}", machine.ranks(
                      number, f"tests/gpu/calls {60 if machine.quick else 10000}", far), 60,
                       300),
                  Step(f"passing-{number}", machine.ranks(
                      number, "tests/gpu/passing", "SLIMPI_RANKS_PER_NODE=1"), 20, 200)]
    for way in ("nonblocking", "persistent"):
        steps += [Step(f"sums-2-{way}", machine.ranks(2, "tests/gpu/sums", far, way=way), 30, 100),
                  Step(f"passing-2-{way}", machine.ranks(
                      2, "tests/gpu/passing", "SLIMPI_RANKS_PER_NODE=1", way=way), 20, 100)]
    for habit in ("virtual", "streams", "capture", "reset", "fork"):
        steps.append(Step(f"habits-{habit}", machine.ranks(
            2, f"tests/gpu/habits {habit}", f"{far} SLIMPI_ALGORITHM=allreduce"), 10, 60))
    lowrank = f"{far} SLIMPI_START=0 SLIMPI_POWERSGD_RANK=4 SLIMPI_ALGORITHM=powersgd"
    steps.append(Step("powersgd-2", machine.ranks(
        2, "tests/gpu/lowrank 50 4000", f"{lowrank} SLIMPI_POWERSGD_SHAPES=4000=80x50"), 20, 120))
    for intra in ("shm", "mpi"):
        options = f"SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=2 SLIMPI_INTRA={intra}"
        steps.append(Step(f"sums-4-{intra}", machine.ranks(4, "tests/gpu/sums", options), 40, 200))
    for algorithm in ("qsgd", "fp16", "bf16", "allreduce", "decentralized",
                      "low_precision_decentralized"):
        steps.append(Step(f"sums-2-{algorithm}", machine.ranks(
            2, "tests/gpu/sums", f"{far} SLIMPI_ALGORITHM={algorithm}"), 30, 200))
    # Managed memory last: ranks of several processes may fault pages of it back and forth.
    steps.append(Step("sums-2-managed", machine.ranks(2, "tests/gpu/sums managed", far), 60, 200))
    return steps


def links(machine):
    """NCCL. It takes no two ranks on one GPU: their sums pass through host memory then, and to ask
    for NCCL is an error."""
    near = "SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=0"
    said = machine.logs / "links.txt"
    shared = machine.ranks(4, "tests/gpu/nccl any 20003 3000017",
                           f"{near} SLIMPI_RANKS_PER_NODE=2 SLIMPI_LOG=info")
    forced = machine.ranks(2, "tests/gpu/nccl any 20003", f"{near} SLIMPI_INTRA=nccl")
    steps = [Step("links-shared", f"({shared}) >{said} 2>&1 && cat {said} && "
                  f"grep -q 'NCCL is not used inside the node' {said} && "
                  f"grep -q 'pass through host memory' {said}", 30, 200),
             Step("links-refused", f"! ({forced}) >{said} 2>&1 && cat {said} && "
                  f"grep -q 'SLIMPI_INTRA=nccl cannot be used here' {said}", 20, 200)]
    for number in (2, 4):
        if gpus() < number:
            continue
        own = "sh -c 'CUDA_VISIBLE_DEVICES=$PMI_RANK exec tests/gpu/nccl any 20003 9000017'"
        options = f"{near} SLIMPI_INTRA=nccl"
        steps += [Step(f"links-{number}", machine.ranks(number, own, options), 40, 200),
                  Step(f"links-{number}-leader", machine.ranks(
                      number, own, f"{options} SLIMPI_RANKS_PER_NODE=2 SLIMPI_HIERARCHY=leader"),
                       40, 200)]
    return steps


def times(machine):
    """Measurements whose ranks share the GPU: what they measure is its time slices, too."""
    results, steps = machine.results, []
    for number in (2, 4):
        program = f"tests/gpu/end_to_end {results}/end-to-end-{number}.json {machine.sizes}"
        steps.append(Step(f"end-to-end-{number}", machine.ranks(
            number, program, "SLIMPI_RANKS_PER_NODE=1"), 90, 400))
    program = f"tests/gpu/end_to_end {results}/end-to-end-2-mps.json {machine.sizes}"
    together = machine.ranks(2, program, "SLIMPI_RANKS_PER_NODE=1")
    if shutil.which("nvidia-cuda-mps-control"):
        steps.append(Step("end-to-end-2-mps", "nvidia-cuda-mps-control -d && "
                          "trap 'echo quit | nvidia-cuda-mps-control' EXIT; "
                          f"export CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps; {together}", 90, 400))
    steps.append(Step("trace", machine.ranks(
        2, f"tests/gpu/end_to_end {results}/trace-times.json {'1M' if machine.quick else '64M'}",
        f"SLIMPI_RANKS_PER_NODE=1 GPU_RANKS=1 SLIMPI_TRACE={results}/trace.trace"), 30, 120))
    return steps


def shaped_link(machine):
    """The GPU's rank and one of the host on two emulated hosts. Where the machine allows none, the
    lab says 77."""
    steps = []
    for rate in ("10gbit", "25gbit"):
        lab = (f"{sys.executable} tools/slimpi-lab --hosts 2 --rate {rate} --mpi mpich --mpiexec "
               f"{machine.mpiexec} --env LD_PRELOAD={machine.preload} --env GPU_RANKS=1 -- ")
        program = f"tests/gpu/end_to_end {machine.results}/end-to-end-{rate}.json {machine.sizes}"
        steps.append(Step(f"end-to-end-{rate}", machine.alone(lab + program), 90, 300,
                          may_skip=True))
    return steps


def training(machine):
    """A PyTorch program. With plain MPI, as users know, it dies, or mpi4py refuses."""
    train = (f"{shutil.which('python3')} {machine.work}/source/tests/programs/train_gpu.py --data "
             f"{machine.carry}/images --json {machine.results}/train")
    alone = f"cd {machine.build} && env {machine.mpi_only} {machine.mpiexec} -n"
    plain = train.split(" --json")[0]
    return [Step("train-1", f"{alone} 1 {train}-1.json", 60, 300),
            Step("train-2", machine.ranks(2, f"{train}-2.json", "SLIMPI_RANKS_PER_NODE=1",
                                          libraries=machine.mpi_only), 60, 300),
            Step("train-2-by-hand", f"{alone} 2 {train}-2-by-hand.json --by-hand", 60, 300),
            # The step must fail: without slimpi the program ends with an error or hangs.
            Step("train-2-plain", f"! {{ {alone.replace('env', 'timeout 20 env', 1)} 2 {plain} "
                 "--steps 2; }", 30, 60)]


def scripts(machine):
    """PyTorch scripts that know nothing of slimpi, with models on the GPU. NCCL takes no two ranks
    on one GPU; with a host of its own for each rank it does."""
    programs = f"{machine.work}/source/tests/programs"
    python = f"NCCL_HOSTID=$PMI_RANK exec {shutil.which('python3')} {programs}"
    steps = []
    for name, options, program in (
            ("ddp-gloo", "--algorithm allreduce", "ddp.py --device cuda plain views two double"),
            ("ddp-nccl", "", "ddp.py --device cuda --backend nccl plain views static"),
            ("ddp-packed", "--algorithm packed --bits 4", "ddp.py --device cuda accumulate join"),
            ("sums-nccl", "--algorithm allreduce", "backend.py cuda"),
            ("sharded-nccl", "", "sharded.py --device cuda --backend nccl ddp hand fsdp1 fsdp2")):
        log = f"{machine.logs}/{name}.txt"
        steps.append(Step(name, f"cd {machine.build} && env {machine.mpi_only} OMP_NUM_THREADS=1 "
                          "CUBLAS_WORKSPACE_CONFIG=:4096:8 "
                          f"{machine.mpiexec} -n 2 tools/slimpi-run --torch --ranks-per-node 1 "
                          f"{options} sh -c '{python}/{program}' >{log} && cat {log} && "
                          # Both ranks have the same model; a program of cases prints ok for each
                          # case and rank.
                          f"! grep -v -e ' ok' -e ' [01] 0[.]' -e 'rank [01] ' {log} && "
                          f"! sed -n 's/ rank [01] / /p' {log} | sort | uniq -u | grep .", 20, 90))
    return steps


def make_steps(machine):
    """All steps, the most valuable first."""
    steps = [Step("unpack", machine.unpack(), 15, 120, True),
             Step("build", machine.make(), 15 if machine.prebuilt.exists() else 180, 500, True),
             *first_steps(machine), *links(machine), *more_sums(machine), *times(machine),
             *shaped_link(machine),
             *([] if machine.local else training(machine) + scripts(machine))]
    for step in steps:
        if machine.quick:
            step.expected = min(step.expected, 15)
    return steps
