# SPDX-License-Identifier: BSD-3-Clause
"""Functions that are called with a module once the program has imported it."""
import importlib.abc
import importlib.machinery
import sys

_functions = {}  # by the module's name, in the order of after()


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules as Python does, and has the functions called after they have run."""

    def find_spec(self, name, path, target=None):
        if name not in _functions:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                for function in _functions[name]:
                    function(module)

            spec.loader.exec_module = exec_module
        return spec


def after(name, function):
    """Calls the function now if the module has been imported."""
    if name in sys.modules:
        function(sys.modules[name])
        return
    if not _functions:
        sys.meta_path.insert(0, _Finder())
    _functions.setdefault(name, []).append(function)
