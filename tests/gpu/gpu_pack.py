# SPDX-License-Identifier: BSD-3-Clause
"""Fills the folder that tests/gpu/run takes to a machine with a GPU."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from gpu_steps import BLAS, LIBRARIES, output, stop

# What the bare machine is not expected to have; the libraries that MPICH needs are added to it.
PACKAGES = """mpich libmpich12 libmpich-dev libhwloc-dev libhwloc15 libcmocka-dev libcmocka0
  libfmt-dev nlohmann-json3-dev libcli11-dev zlib1g-dev libopenblas-pthread-dev
  libopenblas0-pthread make dataset-fashion-mnist""".split()
EVERYWHERE = {"libc6", "libgcc-s1", "libstdc++6", "zlib1g"}


def libraries_of(files):
    """The Debian packages of the libraries that these files need."""
    found = set()
    for file in files:
        for path in re.findall(r"=> (/\S+)", output("ldd", file)):
            owner = output("dpkg", "-S", os.path.realpath(path)).split(":")[0]
            if owner:
                found.add(owner)
    return found - EVERYWHERE


def leave_out_archives(package):
    """Makes a tarball of a package without its static libraries, which are most of it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
        for archive in pathlib.Path(folder).rglob("*.a"):
            archive.unlink()
        subprocess.run(["tar", "-czf", package.with_suffix(".tgz"), "-C", folder, "."], check=True)
    package.unlink()


def copy_prebuilt(build, carry):
    """What the steps need of the build folder, laid out as there."""
    files = [*build.glob(".libs/*.so"), *build.glob("tests/gpu/*"), build / "tests/gpu/.dirstamp"]
    for file in files:
        if file.suffix in (".o", ".json") or not file.is_file():
            continue
        to = carry / "prebuilt" / file.relative_to(build)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)


def pack(carry, local):
    """Fills the folder. `local`: for a machine with the same system, without the packages."""
    build = pathlib.Path.cwd()
    if not (build / "config.status").exists():
        stop("--pack wants a configured tree: run it in the build folder")
    carry.mkdir(parents=True, exist_ok=True)
    for old in carry.glob("*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    here = pathlib.Path(__file__).resolve().parent
    for name in ("run", "gpu_steps.py", "gpu_pack.py"):
        shutil.copy(here / name, carry)
    copy_prebuilt(build, carry)
    if local:
        print(f"{carry}: the built tree, for a machine with the system of this one")
        return
    subprocess.run(["make", "-s", "dist"], cwd=build, check=True)
    tarball = max(build.glob("slimpi-*.tar.gz"), key=lambda file: file.stat().st_mtime)
    shutil.copy(tarball, carry)
    needed = libraries_of(["/usr/bin/mpiexec.hydra", "/usr/bin/hydra_pmi_proxy",
                           f"/{LIBRARIES}/libmpich.so.12", f"/{LIBRARIES}/libcmocka.so.0",
                           f"/{BLAS}/libopenblas.so.0"])
    names = sorted(set(PACKAGES) | needed)
    if subprocess.run(["apt-get", "-q", "download", *names], cwd=carry, check=False).returncode:
        stop("apt-get cannot download the packages", 1)
    for package in carry.glob("*-dev_*.deb"):
        leave_out_archives(package)
    size = sum(file.stat().st_size for file in carry.iterdir())
    print(f"{carry}: {tarball.name} and {len(names)} packages, {size / 1e6:.0f} MB")
