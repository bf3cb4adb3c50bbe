"""An adapter of an engine that counts exactly, well or badly: `python engine.py PEOPLE MODE`."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "adapters"))

from questions import Refused, arguments, serve


def main():
    parser = arguments(__doc__)
    parser.add_argument("mode")
    words = parser.parse_args()
    asked = []

    def open_engine(people):
        # Engines print, in Python and below it.
        print("ready")
        os.write(1, b"engine 1.0\n")
        if words.mode == "one column":
            return lambda question: len(people.id_column)

        def count(question):
            asked.append(question)
            print("counting")
            if len(asked) > 7:
                if words.mode == "spends":
                    raise Refused("the budget of 7 is spent")
                if words.mode == "dies":
                    os._exit(3)
                if words.mode == "raises":
                    raise ZeroDivisionError("division by\nzero")
            if words.mode == "refuses":
                raise Refused("not for you")
            if words.mode == "picks" and len(asked) % 5 == 4:
                raise Refused("not on a Thursday")
            if words.mode == "hides" and len(question.rows) < 3:
                return None
            return len(question.rows)

        return count

    serve(f"exact, {words.mode}", words.people, open_engine)


if __name__ == "__main__":
    main()
