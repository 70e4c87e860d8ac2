# SPDX-License-Identifier: BSD-3-Clause
"""Objects that a program finds once it asks for them: functions are called with a module when it
has imported that, and environment variables are set when it reads them."""
import importlib.abc
import importlib.machinery
import os
import sys

OLDEST = (2, 4)  # the first PyTorch with the backend; gloo of 2.1 has no reduce-scatter

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


class _Environment(type(os.environ)):
    """os.environ, of which os.environ[NAME] of some names may find a value first. `in` and get()
    do not: programs ask by these whether there is one, some ranks of them alone."""
    names, find = (), None

    def __getitem__(self, name):
        try:
            return super().__getitem__(name)
        except KeyError:
            if name not in _Environment.names or sys._getframe(1).f_code.co_filename == _MAPPING:
                raise
        find, _Environment.names = _Environment.find, ()
        find()
        return super().__getitem__(name)


_MAPPING = type(os.environ).get.__code__.co_filename


def variables(names, find):
    """Has find() set variables that are not set when the program reads one of them."""
    _Environment.names, _Environment.find = names, find
    os.environ.__class__ = _Environment
