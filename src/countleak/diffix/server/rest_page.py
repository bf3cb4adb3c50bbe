"""The page that describes the REST interface: one document, which loads nothing from elsewhere."""

from collections.abc import Iterator
from html import escape
from typing import Any

_STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:46em;margin:2em auto;padding:0 1em}"
    "code{background:#eee;padding:0 .2em;overflow-wrap:anywhere}dt{margin-top:.5em}"
)


def page(described: dict[str, Any]) -> str:
    """The HTML page of an OpenAPI description."""
    about = described["info"]
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(about['title'])}</title>"
        "<meta name=viewport content='width=device-width'>"
        f"<style>{_STYLE}</style><h1>{escape(about['title'])} {escape(about['version'])}</h1>"
        f"<p>{escape(about['description'])} The whole description, for programs: "
        f"<a href=/openapi.json>openapi.json</a>.</p>{''.join(_operations(described))}</html>"
    )


def _operations(described: dict[str, Any]) -> Iterator[str]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield f"<h2><code>{method.upper()} {escape(path)}</code></h2>"
            yield f"<p>{escape(operation.get('description', ''))}</p><dl>"
            for parameter in operation.get("parameters", ()):
                yield f"<dt><code>{escape(parameter['name'])}</code> ({parameter['in']})</dt>"
                yield f"<dd>{escape(parameter.get('description', ''))}</dd>"
            if "requestBody" in operation:
                yield "<dt>body</dt><dd><code>"
                yield escape('{"query": {"statement": "SELECT ...", "data_source_name": "..."}}')
                yield "</code></dd>"
            for code, response in operation["responses"].items():
                yield f"<dt>{escape(code)}</dt><dd>{escape(response['description'])}</dd>"
            yield "</dl>"
