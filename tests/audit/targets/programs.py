"""Programs that answer counts over lines, well or badly: `python programs.py MODE [FILE]`.

With a FILE the id and the members of every question are written there before it is answered.
"""

import json
import os
import sys
import time
from pathlib import Path

MODE, *FILES = sys.argv[1:]
LOG = Path(FILES[0]).open("a") if FILES else None  # noqa: SIM115


def say(line):
    sys.stdout.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
    sys.stdout.flush()


def value(question, text):
    """Answer with a value as it is written, JSON or not."""
    say(f'{{"id": {question["id"]}, "value": {text}}}')


def count(question):
    """Of the members, those with an even id."""
    return float(sum(member % 2 == 0 for member in question["members"]))


BAD = {
    "garbage": lambda q: say("what?"),
    "no object": lambda q: say("[1]"),
    "deep": lambda q: say("[" * 60_000),
    "huge line": lambda q: say("x" * 10**7),
    "endless line": lambda q: [sys.stdout.write("x" * 2**16) for _ in range(10**5)],
    "digits": lambda q: value(q, "9" * 20_000),
    "wrong id": lambda q: say({"id": 10**6, "value": 1}),
    "twice": lambda q: [say({"id": q["id"], "value": 1})] * 2 and say({"id": q["id"], "value": 1}),
    "text id": lambda q: say({"id": str(q["id"]), "value": 1}),
    "repeats": lambda q: sys.exit(f"cannot log in with {FILES[1:]}"),
    "exit": lambda q: sys.exit("budget file \x1b[2J missing"),
    "killed": lambda q: os.kill(os.getpid(), 9),
    "closed": lambda q: (os.close(1), time.sleep(60)),
    "error": lambda q: say({"id": q["id"], "error": "no such \x1b[2J column"}),
    "refused": lambda q: say({"id": q["id"], "refused": "budget spent"}),
    "silence": lambda q: None,
    "forks": lambda q: os.fork() and sys.exit("left a child behind"),
}
VALUES = {
    "nan": "NaN",
    "infinity": "Infinity",
    "1e14": "1e14",
    "null": "null",
    "text": '"5"',
    "true": "true",
    "list": "[5]",
}


def main():
    if MODE == "deaf":
        time.sleep(60)
    hello = json.loads(sys.stdin.readline())
    if LOG and MODE == "hello":
        LOG.write(json.dumps(hello))
        LOG.flush()
    if MODE == "other protocol":
        say({"id": 0, "protocol": 2})
    elif MODE == "no table":
        say({"id": 0, "error": "no such table"})
    else:
        say({"id": 0, "protocol": 1, "name": "evens\x1b[2J, exactly"})
    held = []
    for number, line in enumerate(sys.stdin):
        question = json.loads(line)
        if LOG and MODE != "hello":
            LOG.write(json.dumps(question["members"]) + "\n")
            LOG.flush()
        if MODE == "stderr":
            sys.stderr.write("x" * 10**6 + "\n")
        if MODE == "backwards":
            # Answers come in the reverse order, four at a time.
            held.append(question)
            if len(held) == 4:
                for each in reversed(held):
                    say({"id": each["id"], "value": count(each)})
                held = []
        elif MODE == "suppresses" and count(question) < 5:
            say({"id": question["id"], "suppressed": True})
        elif MODE in BAD and number >= 7:
            BAD[MODE](question)
        elif MODE in VALUES and number == 7:
            value(question, VALUES[MODE])
        else:
            say({"id": question["id"], "value": count(question)})


if __name__ == "__main__":
    main()
