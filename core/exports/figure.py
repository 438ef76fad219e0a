"""Pictures: a Vega-Lite dictionary as PNG, SVG, PDF or HTML, drawn in this process by vl-convert. Nothing is
fetched."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from core.errors import FlashpointError

#: The packages that bring the fonts; each holds its faces in a folder ``files``.
FONT_PACKAGES = ("fontpkg_ibm_plex_sans", "fontpkg_ibm_plex_sans_condensed", "fontpkg_ibm_plex_mono")
SCALE = 2.0  # pixels of a PNG per pixel of the figure

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:;
 script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<script>{script}</script>
</head>
<body>
<div id="figure"></div>
<script>vegaEmbed("#figure", {data}, {{renderer: "svg", actions: false}});</script>
</body>
</html>
"""

# The renderer is one engine for the process and is not made for two threads at a time.
_turn = threading.Lock()


def font_folder(package: str) -> Path:
    """The folder with the font files of a font package. Raises ModuleNotFoundError when it is not installed."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"The font package {package} is not installed; install Flashpoint's dependencies.")
    return Path(spec.origin).parent / "files"


@cache
def _converter() -> Any:
    import vl_convert

    for package in FONT_PACKAGES:
        vl_convert.register_font_directory(str(font_folder(package)))
    return vl_convert


def _png(spec: dict[str, Any]) -> bytes:
    return bytes(_converter().vegalite_to_png(spec, scale=SCALE))


def _svg(spec: dict[str, Any]) -> bytes:
    return str(_converter().vegalite_to_svg(spec)).encode()


def _pdf(spec: dict[str, Any]) -> bytes:
    return bytes(_converter().vegalite_to_pdf(spec))


@cache
def _vega() -> str:
    return str(_converter().javascript_bundle())


def _html(spec: dict[str, Any]) -> bytes:
    # vl-convert's own page pastes the specification into a script as it is, so a name with </script> in it would run.
    # Here "<" is escaped, and the page's policy lets it load nothing.
    data = (
        json.dumps(spec, ensure_ascii=False)
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )
    return _PAGE.format(title=escape(_title(spec)), script=_vega(), data=data).encode()


def _title(spec: dict[str, Any]) -> str:
    title = spec.get("title", "")
    return str(title.get("text", "") if isinstance(title, dict) else title) or "Flashpoint"


RENDERERS: dict[str, Callable[[dict[str, Any]], bytes]] = {"png": _png, "svg": _svg, "pdf": _pdf, "html": _html}


def render(spec: dict[str, Any], name: str) -> bytes:
    """The picture; ``name`` is a key of ``RENDERERS``. 0.2 to 1.2 s each, the first of a process a second more.

    Raises FlashpointError when the renderer refuses the specification.
    """
    with _turn:
        try:
            return RENDERERS[name](spec)
        except ValueError as error:  # vl-convert's only class of errors; the rest of its text is a JavaScript trace
            cause = (str(error).strip().splitlines() or ["no reason given"])[0][:200].rstrip(".:")
            raise FlashpointError(f"The figure could not be drawn as {name} ({cause}); export data instead.") from error
