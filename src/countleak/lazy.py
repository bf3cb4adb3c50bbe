"""Names that load their module when they are first used, so that importing a package is quick."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose ``names`` live in other modules.

    A name maps to the module that defines it; a module's own name maps to itself.
    """

    def load(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(names[name])
        return module if names[name].endswith(f".{name}") else getattr(module, name)

    return load, lambda: sorted(names)
