"""From addresses to pages: every page is made here, whole, and htmx takes the part it wants."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import FastAPI, Request
from fastapi.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.routing import Route

from countleak.errors import CountleakError, InputError
from countleak.lab_page import drawing
from countleak.lab_page.accuracy_map import ATTACKERS, LAWS, MapSettings
from countleak.lab_page.asking import EXAMPLES, Question
from countleak.lab_page.attacks import REPORT, Attacks, KeptAttack, Picture
from countleak.lab_page.processes import NoRoom, Processes
from countleak.lab_page.settings import (
    DECODERS,
    LONGEST_QUESTION,
    NOISES,
    RELEASES,
    SECRET,
    AttackSettings,
    bank,
)
from countleak.shares import percent

MOST_FIELDS = 20
# A browser that has an asset asks for it again after so many seconds, or with another version.
ASSET_SECONDS = 86_400
ASSETS = {
    "lab.css": "text/css",
    "icon.svg": "image/svg+xml",
    "htmx.min.js": "text/javascript",
    "hx-sse.min.js": "text/javascript",
    "htmx-LICENSE.txt": "text/plain",
}
_PACKAGE = "countleak.lab_page"
Handler = Callable[[Request], Awaitable[Response]]
T = TypeVar("T")


@dataclass(frozen=True)
class Site:
    """The pages of the lab; ``quick`` processes answer questions and draw maps."""

    quick: Processes
    attacks: Attacks
    templates: Environment

    async def ask(self, request: Request) -> Response:
        """The page to ask Diffix on, with the answer to what was asked."""
        form = _fields(request.url.query)
        text = form.get("statement", "")
        content: dict[str, Any] = {"text": text, "release": form.get("release", "18.1")}
        content |= {"explanation": None, "problem": ""}
        code = 200
        if text.strip():
            try:
                question = Question(text, content["release"])
                content["explanation"] = await self.quick.submit(question).end
            except CountleakError as error:
                content["problem"] = str(error)
                code = _code(error)
        return self._page("ask", request, code, **content)

    async def attack(self, request: Request) -> Response:
        """The page to attack on, with nothing begun."""
        settings, problem = _tried(AttackSettings.of_form, _fields(request.url.query))
        code = 422 if problem else 200
        settings = settings or AttackSettings()
        return self._page("attack", request, code, settings=settings, kept=None, problem=problem)

    async def start(self, request: Request) -> Response:
        """Begin an attack, and show it."""
        form = _fields((await request.body()).decode("utf-8", "replace"))
        settings, problem = _tried(AttackSettings.of_form, form)
        code, kept = 422, None
        if settings is not None:
            try:
                kept = self.attacks.start(settings)
            except NoRoom as error:
                code, problem = 503, str(error)
        if kept is None:
            shown = {"settings": settings or AttackSettings(), "kept": None, "problem": problem}
            return self._page("attack", request, code, **shown)
        return self._at(kept, request)

    async def show(self, request: Request) -> Response:
        """The page of an attack."""
        try:
            kept = self._kept(request)
        except InputError as error:
            shown = {"settings": AttackSettings(), "kept": None, "problem": str(error)}
            return self._page("attack", request, 404, **shown)
        return self._page("attack", request, **self._shown(kept))

    async def events(self, request: Request) -> Response:
        """The pictures of an attack as they change, as server-sent events."""
        kept = self._kept(request)

        async def sent() -> AsyncIterator[str]:
            async for picture in self.attacks.pictures(kept):
                yield _event(self._render("live", kept=kept, **_drawn(kept, picture)))
            yield "event: rest\ndata:\n\n"

        return StreamingResponse(
            sent(), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    async def stop(self, request: Request) -> Response:
        """Stop an attack; whoever watches it sees when it has."""
        kept = self._kept(request)
        self.attacks.stop(kept)
        return Response(status_code=204) if _is_htmx(request) else self._at(kept, request)

    async def resume(self, request: Request) -> Response:
        """Resume an attack, and show it."""
        kept = self._kept(request)
        self.attacks.resume(kept)
        return self._at(kept, request)

    async def result(self, request: Request) -> Response:
        """The result of an attack as JSON, to keep."""
        kept = self._kept(request)
        headers = {"content-disposition": 'attachment; filename="result.json"'}
        return Response(kept.result(), media_type="application/json", headers=headers)

    async def download(self, request: Request) -> Response:
        """A file that an attack left in its folder, to keep."""
        kept, name = self._kept(request), request.path_params["name"]
        if name == REPORT:
            await self.attacks.report(kept)
        if name not in kept.downloads:
            raise InputError("there is no such file; choose one that the page of the attack lists")
        return FileResponse(kept.folder / name, filename=name)

    async def map(self, request: Request) -> Response:
        """The map of accuracy over noise and questions."""
        settings, problem = _tried(MapSettings.of_form, _fields(request.url.query))
        found, chart = None, None
        if settings is not None:
            try:
                found = await self.quick.submit(settings).end
                chart = drawing.chart(found)
            except CountleakError as error:
                problem = str(error)
        content = {"settings": settings or MapSettings(), "found": found, "chart": chart}
        return self._page("map", request, 422 if problem else 200, problem=problem, **content)

    async def asset(self, request: Request) -> Response:
        """A file that a page loads."""
        name = request.path_params["name"]
        if name not in ASSETS:
            raise InputError("there is no such file; go back to the lab")
        headers = {"cache-control": f"max-age={ASSET_SECONDS}"}
        return Response(_asset(name), media_type=ASSETS[name], headers=headers)

    def _kept(self, request: Request) -> KeptAttack:
        return self.attacks.find(request.path_params["attack_id"])

    def _at(self, kept: KeptAttack, request: Request) -> Response:
        """The page of an attack, under its own address."""
        address = f"/attacks/{kept.id}"
        if not _is_htmx(request):
            return RedirectResponse(address, 303)
        page = self._page("attack", request, **self._shown(kept))
        page.headers["hx-push-url"] = address
        return page

    def _shown(self, kept: KeptAttack) -> dict[str, Any]:
        drawn = _drawn(kept, kept.picture)
        return {"settings": kept.settings, "kept": kept, "problem": "", **drawn}

    def _page(self, name: str, request: Request, code: int = 200, **content: Any) -> HTMLResponse:
        return HTMLResponse(self._render(name, page=name, **content), code)

    def _render(self, name: str, **content: Any) -> str:
        return self.templates.get_template(f"{name}.html.j2").render(content)


def make_app(quick: Processes, attacks: Attacks) -> FastAPI:
    """The lab, whose work these processes do."""
    site = Site(quick, attacks, _templates())

    async def failed(request: Request, error: Exception) -> Response:
        assert isinstance(error, CountleakError)
        return PlainTextResponse(str(error), 404 if isinstance(error, InputError) else 503)

    addresses: Mapping[str, Mapping[str, Handler]] = {
        "/": {"GET": site.ask},
        "/attack": {"GET": site.attack},
        "/attacks": {"POST": site.start},
        "/attacks/{attack_id}": {"GET": site.show},
        "/attacks/{attack_id}/events": {"GET": site.events},
        "/attacks/{attack_id}/stop": {"POST": site.stop},
        "/attacks/{attack_id}/resume": {"POST": site.resume},
        "/attacks/{attack_id}/result.json": {"GET": site.result},
        "/attacks/{attack_id}/files/{name}": {"GET": site.download},
        "/map": {"GET": site.map},
        "/assets/{name}": {"GET": site.asset},
    }
    routes = [
        Route(address, handler, methods=[method])
        for address, handlers in addresses.items()
        for method, handler in handlers.items()
    ]
    return FastAPI(
        title="countleak, the lab",
        # Pages for people; there is no interface for programs to describe.
        openapi_url=None,
        routes=routes,  # type: ignore[arg-type]
        exception_handlers={CountleakError: failed},
    )


def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader(_PACKAGE),
        # Whatever a visitor writes is text on every page.
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "secret": SECRET,
        "people_in_bank": len(bank()),
        "releases": RELEASES,
        "noises": NOISES,
        "decoders": DECODERS,
        "laws": LAWS,
        "attackers": ATTACKERS,
        "examples": EXAMPLES,
        "longest_question": LONGEST_QUESTION,
        "bar": drawing.bar,
        "asset": _address_of,
    }
    environment.filters |= {
        "percent": percent,
        "signed": drawing.signed,
        "capitalize_first": lambda text: text[:1].upper() + text[1:],
    }
    return environment


@cache
def _asset(name: str) -> bytes:
    return files(_PACKAGE).joinpath("assets", name).read_bytes()


def _address_of(name: str) -> str:
    """Where a page loads an asset from: somewhere else whenever it has changed."""
    return f"/assets/{name}?{sha256(_asset(name)).hexdigest()[:8]}"


def _drawn(kept: KeptAttack, picture: Picture) -> dict[str, Any]:
    return {
        "picture": picture,
        "grid": drawing.grid(kept, picture),
        "curve": drawing.curve(kept, picture),
        "guessable": drawing.guessable(kept),
        "rows": drawing.rows(kept, picture),
    }


def _fields(text: str) -> dict[str, str]:
    """The fields of a form; the last of each name, and none of too many."""
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        return {}


def _tried(make: Callable[[Mapping[str, str]], T], form: Mapping[str, str]) -> tuple[T | None, str]:
    """What a form makes, or why nothing."""
    try:
        return make(form), ""
    except InputError as error:
        return None, str(error)


def _code(error: CountleakError) -> int:
    """The status of a page that shows an error: a refusal is an answer like any other."""
    return 503 if isinstance(error, NoRoom) else 422 if isinstance(error, InputError) else 200


def _is_htmx(request: Request) -> bool:
    return request.headers.get("hx-request") == "true"


def _event(html: str) -> str:
    """A server-sent event with this content."""
    return "".join(f"data: {line}\n" for line in html.splitlines() if line.strip()) + "\n"
