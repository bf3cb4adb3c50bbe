"""What the site shows beside its pages: every verb and every name in Python, from the code.

MkDocs calls what begins with ``on_``. A page that holds one of the ``MARKS`` gets what it stands
for. ``SECURITY.md``, which code hosts look for in the root, is a page of the site too.
"""

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import countleak
from countleak.cli import build

ROOT = Path(__file__).parent.parent
# In a table a plain one would begin the next cell.
BAR = "&#124;"
# The theme's search, which it opens as a dialog.
SEARCH = 'data-md-component="search" role="dialog"'


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The pages, and that on security, whose links are those of a page in the root."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8").replace("](docs/", "](")
    files.append(File.generated(config, "security.md", content=text))
    return files


def on_post_page(output: str, **_: Any) -> str:
    """The page as it is served: what the theme opens for a search says so to who cannot see it."""
    return output.replace(SEARCH, f'{SEARCH} aria-label="Search"')


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page, with what each mark stands for in its place."""
    markdown = markdown.replace("](../SECURITY.md", "](security.md")
    for mark, lines in MARKS.items():
        if mark in markdown:
            markdown = markdown.replace(mark, "\n".join(lines()))
    return markdown


def names() -> Iterator[str]:
    """Every name at the top level, for mkdocstrings to describe."""
    for name in countleak.__all__:
        member = getattr(countleak, name)
        yield f"::: {member.__module__}.{name}\n"


def verbs() -> Iterator[str]:
    """Every verb of the command line, line by line in Markdown."""
    for path, command in commands(build(), "countleak"):
        context = command.make_context(path, [], resilient_parsing=True)
        usage = " ".join(command.collect_usage_pieces(context))
        yield from (f"## {path}", "", paragraphs(command.help or ""), "")
        yield from ("```text", f"{path} {usage}", "```", "")
        for title, records in options(command, context).items():
            yield from ("", f"**{title}**", "", "| | what it says |", "|---|---|")
            yield from (f"| {literal(name)} | {cell(text)} |" for name, text in records)
        yield ""


def commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every verb of a group and of the groups in it, with what is typed."""
    for name in group.table:
        command = group.commands[name]
        if hasattr(command, "table"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def options(command: Any, context: Any) -> dict[str, list[tuple[str, str]]]:
    """Arguments and options under the titles that ``--help`` lists them under."""
    parts: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            name = parameter.metavar or str(parameter.name).upper()
            parts.setdefault("Arguments", []).append((name, record[1]))
        else:
            title = command.sections.get(str(parameter.name), "Options")
            parts.setdefault(title, []).append(record)
    return parts


def paragraphs(text: str) -> str:
    """The help of a verb, whose paragraphs are divided by blank lines."""
    return "\n\n".join(escaped(" ".join(part.split())) for part in text.split("\n\n"))


def cell(text: str) -> str:
    """Text that stays in one cell of a table."""
    return escaped(" ".join(text.split())).replace("|", BAR)


def literal(text: str) -> str:
    """What is typed, in one cell of a table."""
    return f"<code>{html.escape(text).replace('|', BAR)}</code>"


def escaped(text: str) -> str:
    """Text in which nothing outside backticks is taken for HTML."""
    parts = text.split("`")
    parts[::2] = [html.escape(part, quote=False) for part in parts[::2]]
    return "`".join(parts)


MARKS = {"<!-- every verb -->": verbs, "<!-- every name -->": names}
