"""The program that searches with CP-SAT; ``search.CpSat`` starts it and talks to it in JSON lines.

OR-tools and highspy each bring a libhighs.so.1 of another version, and a process can load only one
of them. So this file runs as a process of its own, by its path: it imports nothing of countleak.

The first line is the system: ``rows``, one pair of columns with +1 and columns with -1 per row;
``low``, ``high``; ``workers``, ``seed``; ``hint``, bits or null. Each further line asks for a
solution: ``until``, seconds since the epoch; ``lower`` and ``upper`` of the bits; ``differ``, pairs
of a column and a bit that a solution must contradict at least once, or null. Each is answered by
one line: ``outcome``; ``x`` where one was found; ``trouble``, text or null, where it is undecided.
"""

import json
import os
import sys
from queue import SimpleQueue
from threading import Thread
from time import time
from typing import Any

from ortools.sat.python import cp_model


def build(
    system: dict[str, Any], request: dict[str, Any]
) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
    """(W) as a model, and its bits."""
    model = cp_model.CpModel()
    bits = [
        model.new_int_var(lower, upper, "")
        for lower, upper in zip(request["lower"], request["upper"], strict=True)
    ]
    for (plus, minus), low, high in zip(system["rows"], system["low"], system["high"], strict=True):
        terms = [bits[j] for j in plus + minus]
        signs = [1] * len(plus) + [-1] * len(minus)
        total = cp_model.LinearExpr.weighted_sum(terms, signs)
        model.add_linear_constraint(total, low, high)
    if system["hint"] is not None:
        for bit, value in zip(bits, system["hint"], strict=True):
            model.add_hint(bit, value)
    return model, bits


def answer(system: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """Search once."""
    model, bits = build(system, request)
    if request["differ"] is not None:
        # How many of them differ, as a linear constraint: the relaxation sees it as well.
        pairs = request["differ"]
        signs = [-1 if value else 1 for _, value in pairs]
        changed = cp_model.LinearExpr.weighted_sum([bits[j] for j, _ in pairs], signs)
        model.add(changed >= 1 - sum(value for _, value in pairs))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = system["workers"]
    solver.parameters.random_seed = system["seed"]
    solver.parameters.max_time_in_seconds = max(0.01, request["until"] - time())
    status = solver.solve(model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return {"outcome": "found", "x": [solver.value(bit) for bit in bits]}
    if status == cp_model.INFEASIBLE:
        return {"outcome": "none"}
    trouble = None if status == cp_model.UNKNOWN else f"CP-SAT says {solver.status_name(status)}"
    return {"outcome": "undecided", "trouble": trouble}


def listen(lines: "SimpleQueue[str]") -> None:
    """Pass on what is asked; end at once where nobody is left to answer, even while searching."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


def main() -> None:
    """Read the system, then answer requests until the input ends."""
    lines: SimpleQueue[str] = SimpleQueue()
    Thread(target=listen, args=(lines,), daemon=True).start()
    system = json.loads(lines.get())
    while True:
        sys.stdout.write(json.dumps(answer(system, json.loads(lines.get()))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
