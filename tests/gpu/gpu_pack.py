# SPDX-License-Identifier: BSD-3-Clause
"""Fills the folder that tests/gpu/run takes to a machine with a GPU."""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from gpu_steps import LIBRARIES, PROGRAMS, output, stop

MOST_MIB = 48  # what can be carried is limited, and the tree goes along
PLUGINS = "libslimpi slimpi-cuda slimpi-hwloc slimpi-lab-exit".split()

# Packages that the bare machine may lack. The libraries that MPICH needs are added to this list.
PACKAGES = """mpich libmpich12 libmpich-dev libhwloc-dev libhwloc15 libcmocka-dev libcmocka0
  libfmt-dev nlohmann-json3-dev libcli11-dev zlib1g-dev make
  iproute2""".split()
IMAGES, MOST_IMAGES = "dataset-fashion-mnist", 20000
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


def copy_prebuilt(build, carry, local):
    """What the steps need of the build folder, laid out as there, without debug information."""
    files = [*(f".libs/{name}.so" for name in PLUGINS), "tools/slimpi-run",
             "tests/helper/.libs/libanother_way.so", *(f"tests/gpu/{name}" for name in PROGRAMS)]
    for name in files:
        to = carry / "prebuilt" / name
        if not (build / name).is_file():
            if local:
                continue
            stop(f"{name} is not built: run `make check TESTS=` first")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / name, to)
        subprocess.run(["strip", "-g", to], check=True)
    # The lab, for links that are shaped.
    source = pathlib.Path(__file__).resolve().parents[2]
    shutil.copytree(source / "tools/slimpi_lab", carry / "prebuilt/tools/slimpi_lab",
                    ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("python", "startup"):
        shutil.copytree(source / "tools" / name, carry / "prebuilt/.libs/slimpi" / name,
                        ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("slimpi-lab", ".dirstamp"):
        shutil.copy(build / "tools" / name, carry / "prebuilt/tools")
    # A program that finds this file knows that plugins are in the .libs of its own build folder.
    shutil.copy(build / "tests/gpu/.dirstamp", carry / "prebuilt/tests/gpu")


def copy_images(carry):
    """The images that the training step needs: so many of each part, in the packages' format."""
    with tempfile.TemporaryDirectory() as folder:
        download(folder, [IMAGES])
        package = next(pathlib.Path(folder).glob("*.deb"))
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
        (carry / "images").mkdir()
        for file in pathlib.Path(folder).rglob("*-ubyte.gz"):
            values = gzip.decompress(file.read_bytes())
            number = min(int.from_bytes(values[4:8], "big"), MOST_IMAGES)
            # The sizes of the array's dimensions, the number of images first.
            head = 4 + 4 * values[3]
            width = (len(values) - head) // int.from_bytes(values[4:8], "big")
            kept = values[:4] + number.to_bytes(4, "big") + values[8:head + number * width]
            (carry / "images" / file.name).write_bytes(gzip.compress(kept))


def download(folder, names):
    if subprocess.run(["apt-get", "-q", "download", *names], cwd=folder, check=False).returncode:
        stop("apt-get cannot download the packages", 1)


def pack(carry, local):
    """Fills the folder. `local`: for a machine with the same system, without the packages."""
    build = pathlib.Path.cwd()
    if not (build / "config.status").exists():
        stop("--pack wants a configured tree: run it in the build folder")
    carry.mkdir(parents=True, exist_ok=True)
    for old in carry.glob("*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    here = pathlib.Path(__file__).resolve().parent
    for name in ("run", "gpu_steps.py"):
        shutil.copy(here / name, carry)
    copy_prebuilt(build, carry, local)
    if local:
        print(f"{carry}: the built tree, for a machine with the system of this one")
        return
    subprocess.run(["make", "-s", "dist"], cwd=build, check=True)
    tarball = max(build.glob("slimpi-*.tar.gz"), key=lambda file: file.stat().st_mtime)
    shutil.copy(tarball, carry)
    needed = libraries_of(["/usr/bin/mpiexec.hydra", "/usr/bin/hydra_pmi_proxy",
                           f"/{LIBRARIES}/libmpich.so.12", f"/{LIBRARIES}/libcmocka.so.0",
                           shutil.which("ip") or "/sbin/ip", shutil.which("tc") or "/sbin/tc"])
    names = sorted(set(PACKAGES) | needed)
    download(carry, names)
    for package in carry.glob("*-dev_*.deb"):
        leave_out_archives(package)
    copy_images(carry)
    size = sum(file.stat().st_size for file in carry.rglob("*") if file.is_file())
    print(f"{carry}: {tarball.name} and {len(names)} packages, {size / 2**20:.1f} MiB")
    if size > MOST_MIB * 2**20:
        stop(f"that is more than {MOST_MIB} MiB, the most that can be carried", 1)
