"""Where numba's settings may come from: the environment, which is checked first, and not the current folder.

numba reads `.numba_config.yaml` in the current folder, where a stranger could name the folder from which it loads
compiled code. It reads the file only where YAML can be imported, so it cannot be while the settings are. numba's import
also sets where kernels are kept (`kernel_cache`).
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Final

from profiler.errors import BadInput
from profiler.plain import one_line

THREADS: Final = "NUMBA_NUM_THREADS"
NO_COMPILING: Final = "NUMBA_DISABLE_JIT"


def _read_settings(module: ModuleType, usual: importlib.abc.Loader) -> None:
    """Load numba's settings without the file in the current folder, and with a folder for kernels."""
    from profiler.process import kernel_cache

    # Each candidate that does not fit makes an error that nobody sees, in colours.
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
    before = sys.modules.get("yaml")
    sys.modules["yaml"] = None  # type: ignore[assignment]  # import's own sign for "is not there"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a file lies there which cannot be read
            usual.exec_module(module)
    finally:
        del sys.modules["yaml"]
        if before is not None:
            sys.modules["yaml"] = before
    module.CACHE_DIR = str(kernel_cache.place(module.CACHE_DIR))  # type: ignore[attr-defined]
    # Each compilation would read a changed environment anew, and forget this folder and what modules set: kernels
    # would then be kept in the current folder, and loaded from there.
    module.reload_config = lambda: None  # type: ignore[attr-defined]
    module.CACHE_LOCATOR_CLASSES = ""  # type: ignore[attr-defined]  # others than the one below


def _keep_kernels(module: ModuleType, usual: importlib.abc.Loader) -> None:
    """Have numba keep kernels of the program in the folder of the present state of their sources."""
    from profiler.process import kernel_cache

    usual.exec_module(module)
    from numba.core import caching, config  # the first is this module

    class Locator(caching.UserProvidedCacheLocator):
        def __init__(self, function: object, file: str) -> None:
            super().__init__(function, file)  # type: ignore[no-untyped-call]
            kept = Path(config.CACHE_DIR)  # type: ignore[attr-defined]
            self._cache_path = str(kernel_cache.folder(Path(file).resolve(), kept))

        @classmethod
        def from_function(cls, function: object, file: str) -> Locator | None:
            # Nothing else where the folder cannot be used: kernels of other sources may lie there.
            return cls(function, file) if kernel_cache.is_of_program(Path(file).resolve()) else None

    caching.CacheImpl._locator_classes.insert(0, Locator)


def _make_less(module: ModuleType, usual: importlib.abc.Loader) -> None:
    """Skip numba's code for what only kernels call, and unwanted C wrappers: a fifth less time in a first run."""
    usual.exec_module(module)
    from numba.core import codegen, lowering, targetconfig

    try:
        library, jit = vars(codegen)["CPUCodeLibrary"], vars(codegen)["JITCPUCodegen"]
        lower, flags = vars(lowering)["Lower"], vars(targetconfig)["TargetConfig"]
        optimise, finish = library._optimize_final_module, library._finalize_final_module
        wrap, set_env = lower.create_cfunc_wrapper, jit.set_env
    except (KeyError, AttributeError):
        return

    def is_for_c() -> bool:
        chosen = targetconfig.ConfigStack.top_or_none()
        return chosen is None or bool(chosen.is_set("no_cfunc_wrapper"))

    def is_part(from_cache: object) -> bool:
        # What comes from the cache is compiled, whatever function is being compiled now.
        return from_cache is None and not is_for_c() and targetconfig.ConfigStack().top().no_cpython_wrapper is True

    def put_together(self):  # type: ignore[no-untyped-def]
        manager, builder = self._codegen._module_pass_manager(opt=0, loop_vectorize=False, cost="cheap")
        return manager.run(self._final_module, builder) if is_part(self._shared_module) else optimise(self)

    def compile(self):  # type: ignore[no-untyped-def]
        if is_part(self._shared_module):
            self._finalized = True
        else:
            finish(self)

    defaults = cache(lambda kind: {name: option.default for name, option in kind.options.items()})
    library._optimize_final_module, library._finalize_final_module = put_together, compile
    lower.create_cfunc_wrapper = lambda self: wrap(self) if is_for_c() else None
    jit.set_env = lambda self, name, env: self._engine.get_global_value_address(name) and set_env(self, name, env)
    flags.values = lambda self: defaults(type(self)) | self._values  # type: ignore[arg-type]


CHANGED: Final[dict[str, Callable[[ModuleType, importlib.abc.Loader], None]]] = {
    "numba.core.config": _read_settings,
    "numba.core.caching": _keep_kernels,
    "numba.core.compiler": _make_less,
}
"""Modules of numba, and how they are loaded."""


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in CHANGED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, usual: importlib.abc.Loader) -> None:
        self._usual = usual

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._usual.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        CHANGED[module.__name__](module, self._usual)


def check_environment() -> None:
    """BadInput where numba would refuse to be imported or to compile."""
    value = os.environ.get(THREADS, "").strip()
    if value and not (value.isdecimal() and len(value) < 6 and int(value) >= 1):
        raise BadInput(
            f"The environment variable {THREADS} must be a whole number from 1, not "
            f"{one_line(value)!r}; unset it, and all cores can be used."
        )
    value = os.environ.get(NO_COMPILING, "").strip()
    if value.lstrip("+-").isdecimal() and value.strip("+-0"):
        raise BadInput(f"The environment variable {NO_COMPILING} is set, and nothing can be decoded; unset it.")


def ignore_folder() -> None:
    """From now on numba's import takes no notice of the current folder."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
