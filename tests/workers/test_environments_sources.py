from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import UserError
from workers.sources import Sources, sources_from_pip
from workers.uvrun import redacted


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / ".config" / "pip").mkdir(parents=True)
    return tmp_path / "home"


def environ(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "XDG_CONFIG_DIRS": str(home / "xdg"), **more}


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_files_and_variables_override_each_other_as_in_pip(home: Path, tmp_path: Path) -> None:
    write(home / "xdg/pip/pip.conf", "[global]\nindex-url = http://a.invalid/simple\ntimeout = 7\nfind-links = /one\n")
    write(
        home / ".config/pip/pip.conf",
        "[global]\nindex_url = http://b.invalid/simple\n[install]\nfind-links =\n  /two\n  /three\n",
    )
    write(tmp_path / "site/pip.conf", "[global]\nextra-index-url = http://c.invalid/x http://d.invalid/y\n")
    found = sources_from_pip(environ(home, PIP_TIMEOUT="30"), tmp_path / "site")
    assert found.index_url == "http://b.invalid/simple"
    assert found.find_links == ("/two", "/three")
    assert found.extra_index_urls == ("http://c.invalid/x", "http://d.invalid/y")
    assert found.timeout == "30"
    chosen = write(tmp_path / "chosen.conf", "[global]\nno-index = true\n")
    assert sources_from_pip(environ(home, PIP_CONFIG_FILE=str(chosen)), tmp_path).no_index
    assert sources_from_pip(environ(home, PIP_CONFIG_FILE=os.devnull), tmp_path) == Sources()


def test_it_reads_what_pip_itself_reads(home: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("pip") is None:
        pytest.skip("this environment has no pip to compare with")
    write(home / "xdg/pip/pip.conf", "[global]\nfind-links = /shared\ncert = /c.pem\n")
    write(home / ".config/pip/pip.conf", "[install]\nextra-index-url = http://e.invalid/simple\n")
    variables = environ(home, PATH=os.environ["PATH"], PIP_FIND_LINKS="/mine /yours", PIP_TRUSTED_HOST="t.invalid")
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], env=variables, capture_output=True, text=True, check=True
    ).stdout
    told = {key: ast.literal_eval(value) for key, _, value in (line.partition("=") for line in listed.splitlines())}
    found = sources_from_pip(variables)
    assert found.find_links == tuple(told[":env:.find-links"].split())
    assert found.trusted_hosts == (told[":env:.trusted-host"],)
    assert found.extra_index_urls == (told["install.extra-index-url"],)
    assert found.cert == told["global.cert"] or "/etc/pip.conf" in listed


def test_addresses_travel_in_the_environment_and_never_in_arguments() -> None:
    found = Sources(
        index_url="https://user:secret@a.invalid/simple",
        extra_index_urls=("https://user:secret@b.invalid/simple",),
        find_links=("https://user:secret@c.invalid/wheels", "/local"),
        proxy="http://user:secret@p.invalid:3128",
    )
    assert "secret" not in " ".join(found.options())
    assert "secret" not in repr(found) and "secret" not in found.in_words()
    told = found.environment({"PATH": "/bin", "FLASHPOINT_DATABASE_URL": "secret", "AWS_SECRET": "x"})
    assert told["UV_DEFAULT_INDEX"].endswith("a.invalid/simple") and told["UV_FIND_LINKS"].endswith("c.invalid/wheels")
    assert set(told) == {"PATH", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS", "ALL_PROXY", "UV_PYTHON_DOWNLOADS"}
    assert found.options() == ["--find-links", "/local", "--index-strategy", "unsafe-best-match"]


def test_options_for_uv() -> None:
    found = Sources(no_index=True, trusted_hosts=("h.invalid",), constraints=("/c.txt",), cert="/c.pem", timeout="9")
    assert found.options() == ["--allow-insecure-host", "h.invalid", "--no-index"]
    assert found.constraint_options() == ["--constraints", "/c.txt"]
    assert {"SSL_CERT_FILE": "/c.pem", "UV_HTTP_TIMEOUT": "9"}.items() <= found.environment({}).items()


def test_where_was_looked_in_words() -> None:
    assert Sources().in_words() == "the package index"
    assert (
        Sources(index_url="x", extra_index_urls=("y", "z")).in_words()
        == "the configured package index and 2 further indexes"
    )
    assert Sources(no_index=True, find_links=("/a",)).in_words() == "the find-links folder"


def test_passwords_are_taken_out_of_output() -> None:
    assert redacted("GET https://me:pass%40word@host/simple failed") == "GET https://***@host/simple failed"
    assert redacted("GET https://me:p@ss/w@rd@host/simple failed") == "GET https://***@host/simple failed"
    assert redacted("GET https://host/simple?token=secret failed?") == "GET https://host/simple?*** failed?"
    assert redacted("who? me@home, torch==2.13.0") == "who? me@home, torch==2.13.0"


def test_the_address_of_a_configured_index_is_taken_out_of_output() -> None:
    env = {
        "UV_DEFAULT_INDEX": "https://me:secret@host/simple/",
        "UV_INDEX": "https://a.example/x own=https://b.example/y",
    }
    assert redacted("no https://me:secret@host/simple/torch/ there", env) == "no <index>/torch/ there"
    assert redacted("no https://me:****@host/simple/torch/ there", env) == "no <index>/torch/ there"
    assert redacted("https://a.example/x/torch https://b.example/y", env) == "<index>/torch <index>"


def test_a_broken_file_is_named(home: Path, tmp_path: Path) -> None:
    file = write(home / ".config/pip/pip.conf", "index-url = x\n")
    with pytest.raises(UserError, match=str(file)):
        sources_from_pip(environ(home), tmp_path)
