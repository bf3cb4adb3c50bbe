"""What a user wrote in a module of the current folder, by `module:name`."""

import sys
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from countleak.errors import InputError
from countleak.foreign import clean, first_line


def load(word: str, kind: str = "function") -> Any:
    """The function or class, as ``kind`` says, that `module:name` names."""
    module, _, name = word.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        # What it prints is no result.
        with redirect_stdout(sys.stderr):
            loaded = import_module(module)
    except ModuleNotFoundError as error:
        wanted = error.name or ""
        if not wanted or not module.startswith(wanted):
            raise InputError(f"{clean(module)}.py needs the module {clean(wanted)!r}") from None
        raise InputError(
            f"there is no module {clean(module)!r} in this folder; write module:{kind}, and the "
            "module's name without its ending"
        ) from None
    except (Exception, SystemExit) as error:
        words = first_line(f"{type(error).__name__}: {error}")
        raise InputError(f"{clean(module)}.py cannot be imported ({words})") from None
    found = getattr(loaded, name, None)
    if not (isinstance(found, type) if kind == "class" else callable(found)):
        # What is none of it may be a part of a password; it is not shown.
        own = [
            each
            for each, value in vars(loaded).items()
            if (isinstance(value, type) if kind == "class" else callable(value))
            and getattr(value, "__module__", None) == module
        ]
        raise InputError(
            f"{clean(module)}.py has no {kind} of that name; it has {', '.join(own) or 'none'}"
        )
    return found
