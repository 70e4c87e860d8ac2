# SPDX-License-Identifier: BSD-3-Clause
# Parts of the Python package by themselves, in one process and without MPI. Prints a line for each
# case: its name, and ok or what was wrong.
import contextlib
import ctypes
import importlib.util
import inspect
import io
import os
import sys
import tempfile
import threading
import weakref
import zipfile

import slimpi
from slimpi import _goodbye, _late, _worker

world = sys.modules["slimpi._world"]  # which slimpi's own name _world hides


def late_imports():
    """Functions are changed once, whatever finds their modules, also a function that one module has
    imported from another; and other modules of the same loader stay as they are."""
    called, imported = [], []

    class OfHook:
        """A finder and loader, as those of an editable install."""

        def find_spec(self, name, path=None, target=None):
            return importlib.util.spec_from_loader(name, self) if name == "of_hook" else None

        def create_module(self, spec):
            return None

        def exec_module(self, module):
            module.double = lambda value: 2 * value

    def within(arguments):
        called.append(dict(arguments))
        return contextlib.nullcontext()

    def change(module):
        imported.append(module.__name__)
        _late.within(within, module, "double")

    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "modules.zip")
        with zipfile.ZipFile(path, "w") as modules:
            modules.writestr("of_zip.py", "def double(value):\n    return 2 * value\n")
            modules.writestr("of_zip_again.py", "from of_zip import double\n")
            modules.writestr("of_zip_unchanged.py", "def double(value):\n    return value\n")
        sys.path.append(path)
        sys.meta_path.append(OfHook())
        for name in "of_hook", "of_zip", "of_zip_again":
            _late.after(name, change)
        import of_hook
        import of_zip_again
        import of_zip_unchanged
        assert of_zip_again.double(3) == of_hook.double(3) == 6
        assert of_zip_unchanged.double(4) == 4
        assert imported == ["of_hook", "of_zip", "of_zip_again"], imported
        assert called == [{"value": 3}] * 2, called
        assert "def double" in inspect.getsource(sys.modules["of_zip"])
        del sys.path[-1], sys.meta_path[-1]


def failing_jobs():
    """A job that fails, and whose error cannot be printed, does not end its thread."""
    worker, done, stderr = _worker.Worker(), threading.Event(), sys.stderr
    sys.stderr = io.StringIO()
    sys.stderr.close()
    try:
        worker.submit(lambda: 1 / 0)
        worker.submit(done.set)
        assert done.wait(20), "the thread has ended"
    finally:
        sys.stderr = stderr
        worker.end()


def many_groups():
    """Another thread may make groups while one looks at all of them: here, with each line."""
    alive, groups = world.alive, weakref.WeakValueDictionary()
    kept = []

    def make(*arguments):
        kept.append(set())
        groups[id(kept[-1])] = kept[-1]
        return make

    make()
    sys.settrace(make)
    try:
        found = alive(groups)
    finally:
        sys.settrace(None)
    assert 0 < len(found) < len(kept), f"{len(found)} of {len(kept)}"


def goodbyes():
    """A rank that cannot be told that this one leaves keeps the others from nothing, and MPI may
    read the message later."""
    class Mpi:
        sent = []

        def constant(self, name):
            return 0

        def call(self, name, *arguments):
            pass

        def handle(self, name, address, length, kind, to, *arguments):
            if to == 2:
                raise slimpi.Error("rank 2 has failed")
            self.sent.append((to, address))
            return 0

    one = _goodbye.Goodbyes.__new__(_goodbye.Goodbyes)
    one._mpi, one._rank, one._sent, one._comm = Mpi(), 0, [], 0
    try:
        one.send(range(4), 7, 5)
    except slimpi.Error:
        pass
    others = [(ctypes.c_int64 * 3)(9, 9, 9) for _ in range(1000)]
    assert [to for to, _ in Mpi.sent] == [1, 3], f"only {Mpi.sent} are told"
    for _, address in Mpi.sent:
        message = list((ctypes.c_int64 * 3).from_address(address))
        assert message == [0, 7, 5], f"{message}, and {len(others)} others"


for case in late_imports, failing_jobs, many_groups, goodbyes:
    result = "ok"
    try:
        case()
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    print(case.__name__, result)
