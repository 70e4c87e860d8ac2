# SPDX-License-Identifier: BSD-3-Clause
"""Changes that wait until the program needs them. after() calls a function with a module as soon as
the program has imported the module. variables() sets environment variables as soon as the program
reads one of them."""
import contextlib
import functools
import importlib.abc
import importlib.machinery
import inspect
import os
import sys

OLDEST = (2, 4)  # the first PyTorch that can have the backend; gloo of 2.1 has no reduce-scatter

_signature = functools.lru_cache(None)(inspect.signature)
_functions = {}  # by the module's name: functions in the order of after()


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules as Python does, and calls the functions of after() when a module has run."""

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
    """Calls function(module) once the module has been imported, which may be at once."""
    if name in sys.modules:
        function(sys.modules[name])
        return
    if not _functions:
        sys.meta_path.insert(0, _Finder())
    _functions.setdefault(name, []).append(function)


def replace(owner, name):
    """Returns a decorator for the replacement of a function of a module or class. The replacement
    gets the function it replaces, and then the arguments of the call. Does nothing if this version
    of the library lacks the function."""
    def decorate(replacement):
        function = getattr(owner, name, None)
        if function is not None:
            @functools.wraps(function)
            def call(*arguments, **keywords):
                return replacement(function, *arguments, **keywords)

            setattr(owner, name, call)
        return replacement

    return decorate


def within(context, owner, name):
    """Makes each call of a function of a module or class run within context(arguments), where
    `arguments` has the arguments of the call by their names. Does nothing if this version of the
    library lacks the function, or has other arguments than context() knows."""
    @replace(owner, name)
    def call(function, *arguments, **keywords):
        try:
            around = context(_signature(function).bind(*arguments, **keywords).arguments)
        except (AttributeError, LookupError, TypeError, ValueError):
            around = contextlib.nullcontext()
        with around:
            return function(*arguments, **keywords)


class _Environment(type(os.environ)):
    """The class of os.environ after variables(). Reading os.environ[NAME] calls find() if NAME is
    one of `names` and not set. `in` and get() do not call it, because a program may use them on
    only some ranks, to ask whether there is a value, and find() is collective."""
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
    """Makes the program call find(), once, when it reads one of these variables and the variable is
    not set. find() must set them."""
    _Environment.names, _Environment.find = names, find
    os.environ.__class__ = _Environment
