#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What each kernel takes of the GPU, as its driver says after loading: registers, local memory
(what does not fit into registers, per thread), shared memory, and the blocks that a multiprocessor
runs at once. Usage: gpu_resources.py FOLDER FILE, where FOLDER has the *.fatbin files of
kernels/cuda and its arguments.h; writes FILE as JSON."""

import ctypes
import json
import pathlib
import re
import sys

THREADS = 256  # of a block; kThreads of kernels/cuda/arguments.h
# The numbers of CUfunction_attribute.
ATTRIBUTES = {"registers": 4, "local_bytes": 3, "shared_bytes": 1, "most_threads": 0,
              "built_for": 6}


def load():
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        result = getattr(cuda, name)(*arguments)
        if result != 0:
            sys.exit(f"gpu_resources.py: {name}: CUDA error {result}")
    return call


def main(folder, file):
    call, device, context = load(), ctypes.c_int(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxPushCurrent_v2", context)
    names = re.findall(r"\bX\((\w+), (\w+),", (folder / "arguments.h").read_text(encoding="utf-8"))
    modules, rows = {}, []
    for module, name in names:
        if module not in modules:
            modules[module] = ctypes.c_void_p()
            image = ctypes.create_string_buffer((folder / f"{module}.fatbin").read_bytes())
            call("cuModuleLoadData", ctypes.byref(modules[module]), image)
        function, value, row = ctypes.c_void_p(), ctypes.c_int(), {"kernel": name}
        call("cuModuleGetFunction", ctypes.byref(function), modules[module],
             f"slimpi_{name}".encode())
        for attribute, number in ATTRIBUTES.items():
            call("cuFuncGetAttribute", ctypes.byref(value), number, function)
            row[attribute] = value.value
        call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(value), function, THREADS,
             ctypes.c_size_t(0))
        rows.append({**row, "blocks_at_once": value.value})
        print(rows[-1])
    file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
