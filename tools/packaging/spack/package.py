# SPDX-License-Identifier: BSD-3-Clause
"""Recipe of slimpi for Spack. Until slimpi is released somewhere, build it from a source tree:

    mkdir -p REPO/packages/slimpi && cp tools/packaging/spack/package.py REPO/packages/slimpi
    printf 'repo:\n  namespace: local\n' >REPO/repo.yaml && spack repo add REPO
    spack dev-build slimpi@0.1.0
"""
from spack.package import *  # noqa: F403


class Slimpi(AutotoolsPackage):  # noqa: F405
    """Compressed MPI_Allreduce of floats, preloaded into unchanged MPI programs."""

    license("BSD-3-Clause")  # noqa: F405
    version("0.1.0")  # noqa: F405

    variant("cuda", default=False, description="Buffers in NVIDIA GPUs' memory")  # noqa: F405

    depends_on("c", type="build")  # noqa: F405
    depends_on("cxx", type="build")  # noqa: F405
    for tool in ("autoconf", "automake", "libtool", "pkgconfig"):
        depends_on(tool, type="build")  # noqa: F405
    depends_on("mpich")  # noqa: F405
    depends_on("hwloc@2:")  # noqa: F405
    depends_on("fmt")  # noqa: F405
    depends_on("nlohmann-json")  # noqa: F405
    depends_on("cli11")  # noqa: F405
    depends_on("cuda@12:", when="+cuda")  # noqa: F405
    depends_on("python@3", type="run")  # noqa: F405

    def autoreconf(self, spec, prefix):
        Executable("./bootstrap")()  # noqa: F405

    def configure_args(self):
        mpi = self.spec["mpich"].prefix.bin
        args = [f"MPICC={mpi.mpicc}", f"MPIEXEC={mpi.mpiexec}"]
        return args + self.with_or_without("cuda", activation_value="prefix")
