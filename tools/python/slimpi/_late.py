# SPDX-License-Identifier: BSD-3-Clause
"""Changes that wait until the program needs them. after() calls a function with a module as soon as
the program has imported the module. variables() sets environment variables as soon as the program
reads one of them."""
import contextlib
import functools
import importlib.abc
import inspect
import os
import sys
import threading

OLDEST = (2, 4)  # the first PyTorch that can have the backend; gloo of 2.1 has no reduce-scatter

_signature = functools.lru_cache(None)(inspect.signature)
_functions = {}  # by the module's name: functions in the order of after()
_here = threading.local()  # asking: the modules that this thread's _Finder is looking for


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of after() by the other finders of sys.meta_path, such as those of editable
    installs and of pytest."""

    def find_spec(self, name, path, target=None):
        asking = vars(_here).setdefault("asking", set())
        if name not in _functions or name in asking:  # other finders ask the others, too
            return None
        asking.add(name)
        try:
            specs = (finder.find_spec(name, path, target) for finder in [*sys.meta_path]
                     if hasattr(finder, "find_spec"))
            spec = next((spec for spec in specs if spec is not None), None)
        finally:
            asking.discard(name)
        if hasattr(getattr(spec, "loader", None), "exec_module"):
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader:
    """Runs a module by its own loader, which other modules may share, and then calls the functions
    of after()."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(vars(self)["_loader"], name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for function in _functions[module.__spec__.name]:
            function(module)


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
    library lacks the function, or has other arguments than context() knows, or if the module has
    imported the function from another module where this was done."""
    before = getattr(getattr(owner, name, None), "_slimpi_contexts", ())
    if context in before:
        return

    @replace(owner, name)
    def call(function, *arguments, **keywords):
        try:
            around = context(_signature(function).bind(*arguments, **keywords).arguments)
        except (AttributeError, LookupError, TypeError, ValueError):
            around = contextlib.nullcontext()
        with around:
            return function(*arguments, **keywords)

    if hasattr(owner, name):
        getattr(owner, name)._slimpi_contexts = *before, context


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
