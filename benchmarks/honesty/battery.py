"""The battery: simulated systems nobody tuned a decoder for, by kind."""

from benchmarks.honesty import (
    bounded,
    categories,
    correlated,
    independent,
    population,
    published,
)
from benchmarks.honesty.system import System
from countleak.errors import InputError

KINDS: dict[str, tuple[System, ...]] = {
    "independent noise": independent.SYSTEMS,
    "correlated noise": correlated.SYSTEMS,
    "exact and bounded answers": bounded.SYSTEMS,
    "published tables": published.SYSTEMS,
    "the people": population.SYSTEMS,
    "secrets of several values": categories.SYSTEMS,
}
SYSTEMS: dict[str, System] = {
    system.name: system for systems in KINDS.values() for system in systems
}


def system_named(name: str) -> System:
    """The system of the battery with this name."""
    if name not in SYSTEMS:
        raise InputError(f"there is no system {name!r}; choose {', '.join(SYSTEMS)}")
    return SYSTEMS[name]
