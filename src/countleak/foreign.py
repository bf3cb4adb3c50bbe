"""Text that others wrote, made fit to print: what a server says, what a file or a name holds.

A terminal obeys what it is sent. So whatever comes from outside goes through ``clean`` before it is
printed or put into an error, and ``without`` takes secrets out of it.
"""

import re
from urllib.parse import quote, quote_plus

LONGEST = 300
# In a sentence, what others wrote takes no more room than the rest.
BRIEF = 80
HIDDEN = "***"
# Where texts of others hold passwords: in addresses, and behind their name.
PASSWORDS = re.compile(
    r"(://[^\s:@/]*:|\b(?:password|passwd|pwd|token)=)[^\s@;,&'\"]+", re.IGNORECASE
)


def clean(text: str) -> str:
    r"""The text on one line, with whatever a terminal could act on written out, like ``\x1b``."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def clean_lines(text: str) -> str:
    """The same, with the ends of lines and the tabs kept."""
    return "\n".join("\t".join(map(clean, line.split("\t"))) for line in text.split("\n"))


def first_line(text: str) -> str:
    """What a server says, as part of a line: its first words, clean and not for ever.

    What looks like a password in it is hidden, whoever's it is.
    """
    lines = text[: 10 * LONGEST].strip().splitlines()
    line = PASSWORDS.sub(rf"\1{HIDDEN}", clean(lines[0])) if lines else "no reason given"
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


def brief(text: str) -> str:
    """The text as part of a sentence: clean, on one line, and short."""
    line = clean(text[: BRIEF + 1])
    return line if len(line) <= BRIEF else f"{line[:BRIEF]}…"


def without(text: str, *secrets: str | None) -> str:
    """The text without any of the secrets, however they are written in it."""
    spellings = {
        spelling
        for secret in secrets
        if secret
        for spelling in (secret, *_spellings(secret))
        if spelling
    }
    # The longest first: one may hold another.
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, HIDDEN)
    return text


def _spellings(secret: str) -> tuple[str, ...]:
    """How a secret may be quoted: in an address, in SQL, in a connection string, in an escape."""
    encoded = secret.encode("utf-8", "surrogatepass")
    backslashed = secret.replace("\\", "\\\\")
    return (
        secret.strip(),
        quote(encoded),
        quote(encoded, safe=""),
        quote_plus(encoded),
        secret.replace("'", "''"),
        backslashed,
        backslashed.replace("'", "\\'"),
        repr(secret)[1:-1],
        clean(secret),
        encoded.decode("utf-8", "replace"),
    )
