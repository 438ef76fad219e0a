from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.errors import UserError
from core.settings import SETTINGS, SOCKET_LIMIT, Settings, settings_from


def read(**variables: str) -> Settings:
    return settings_from({"HOME": "/home/someone", **variables})


def test_defaults_in_a_checkout() -> None:
    settings = read()
    checkout = Path(__file__).resolve().parents[2]
    assert settings.data == checkout / "data"
    assert settings.database_path == checkout / "data" / "flashpoint.db"
    assert settings.environments_dir == checkout / "data" / "environments"
    assert {settings.spool_dir.parent, settings.runs_dir.parent, settings.broker_dir.parent} == {checkout / "data"}
    assert (settings.torch_backend, settings.port, settings.pythons) == ("auto", 8501, ())
    assert settings.node_name
    assert settings.broker_embedded


def test_defaults_of_an_installed_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("core.settings.__file__", str(tmp_path / "site-packages" / "core" / "settings.py"))
    assert read().data == Path("/home/someone/.local/share/flashpoint")
    assert read(XDG_DATA_HOME="/srv/share").data == Path("/srv/share/flashpoint")


def test_every_setting_is_in_the_table_and_is_read() -> None:
    text = Path(__file__).resolve().parents[2].joinpath("core/settings.py").read_text()
    body = text[text.index("def settings_from") :]
    assert len({setting.name for setting in SETTINGS}) == len(SETTINGS)
    for setting in SETTINGS:
        assert f'given["{setting.name}"]' in body
        assert setting.meaning.endswith(".") and setting.default


def test_the_socket_is_short_private_and_one_per_data_folder(tmp_path: Path) -> None:
    one, two = read(FLASHPOINT_DATA=str(tmp_path / "a")), read(FLASHPOINT_DATA=str(tmp_path / "b"))
    assert one.broker_socket and two.broker_socket and one.broker_socket != two.broker_socket
    assert one.broker_socket == read(FLASHPOINT_DATA=str(tmp_path / "a")).broker_socket
    assert one.broker_socket.parent.name.startswith(f"flashpoint-{os.getuid()}-")
    deep = read(FLASHPOINT_DATA=str(tmp_path / ("x" * 200)), TMPDIR="/var/" + "y" * 200)
    assert deep.broker_socket and len(os.fsencode(deep.broker_socket)) < SOCKET_LIMIT


def test_a_postgresql_address_gets_the_psycopg_driver() -> None:
    for scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        settings = read(FLASHPOINT_DATABASE_URL=f"{scheme}://u:p@h/db")
        assert settings.database_url == "postgresql+psycopg://u:p@h/db"
        assert settings.database_path is None


def test_a_relative_file_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read(FLASHPOINT_DATABASE_URL="sqlite:///one.db").database_path == tmp_path / "one.db"
    assert read(FLASHPOINT_DATA="here").data == tmp_path / "here"
    assert read(FLASHPOINT_DATA="~/there").data == Path("/home/someone/there")


def test_a_broker_on_the_network() -> None:
    settings = read(FLASHPOINT_BROKER_URL="redis://queue:6379/0")
    assert (settings.broker_socket, settings.broker_embedded) == (None, False)


@pytest.mark.parametrize("rest", ["/db?host=/run/pg", "u:p%40%2F%3F@[::1]:5432/db?sslmode=require", "h", "u@h/my db"])
def test_good_addresses_of_postgresql_stay_as_they_are(rest: str) -> None:
    assert read(FLASHPOINT_DATABASE_URL=f"postgresql://{rest}").database_url == f"postgresql+psycopg://{rest}"


@pytest.mark.parametrize(
    "url", ["redis://h", "redis://u:p@[::1]:6379/15", "rediss://h:1/0?ssl_cert_reqs=none", "redis+socket:///run/r.sock"]
)
def test_good_addresses_of_a_broker_stay_as_they_are(url: str) -> None:
    assert read(FLASHPOINT_BROKER_URL=url).broker_url == url


def test_interpreters_keep_their_own_place(tmp_path: Path) -> None:
    link = tmp_path / "python"
    link.symlink_to("/bin/sh")
    assert read(FLASHPOINT_PYTHONS=f"/bin/sh{os.pathsep}{link}").pythons == (Path("/bin/sh"), link)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FLASHPOINT_DATABASE_URL", "mysql://root:secret@h/db"),
        ("FLASHPOINT_DATABASE_URL", "sqlite://"),
        ("FLASHPOINT_DATABASE_URL", "sqlite:///:memory:"),
        ("FLASHPOINT_DATABASE_URL", "results.db"),
        ("FLASHPOINT_BROKER_URL", "amqp://guest:secret@h"),
        ("FLASHPOINT_BROKER_URL", "redis+socket:///" + "x" * 120),
        ("FLASHPOINT_BROKER_URL", "redis://"),
        ("FLASHPOINT_TORCH_BACKEND", "cuda"),
        ("FLASHPOINT_TORCH_BACKEND", "cu12.1 --index"),
        ("FLASHPOINT_NODE_NAME", "a b"),
        ("FLASHPOINT_NODE_NAME", "../up"),
        ("FLASHPOINT_NODE_NAME", "x" * 64),
        ("FLASHPOINT_PORT", "0"),
        ("FLASHPOINT_PORT", "65536"),
        ("FLASHPOINT_PORT", "８５０１"),
        ("FLASHPOINT_PORT", "http"),
        ("FLASHPOINT_PYTHONS", "/no/such/python"),
        ("FLASHPOINT_PYTHONS", "/" + "x" * 256),
        ("FLASHPOINT_DATA", "/" + "x" * 256),
        ("FLASHPOINT_DATA", "/" + "x/" * 3000),
        ("FLASHPOINT_DATABASE_URL", "postgresql://u:secret@h:notaport/db"),
        ("FLASHPOINT_DATABASE_URL", "postgresql://u:secret@h:99999/db"),
        ("FLASHPOINT_DATABASE_URL", "postgresql://u:secret@[::1/db"),
        ("FLASHPOINT_DATABASE_URL", "postgresql://[::1"),
        ("FLASHPOINT_DATABASE_URL", "postgresql://u:secret@h/db?bogus=1"),
        ("FLASHPOINT_DATABASE_URL", "postgresql://h/db?password=secret&password=secret2"),
        ("FLASHPOINT_DATABASE_URL", "postgresql://h/db?connect_timeout=secret"),
        ("FLASHPOINT_DATABASE_URL", "postgresql://u:x@secret@h/db"),
        ("FLASHPOINT_DATABASE_URL", "postgresql://u:x/secret@h/db"),
        ("FLASHPOINT_DATABASE_URL", "postgresql://h/db?password=x@secret"),
        ("FLASHPOINT_DATABASE_URL", "postgresql://h/a%00b"),
        ("FLASHPOINT_BROKER_URL", "secret:secret"),
        ("FLASHPOINT_BROKER_URL", "redis://[::1"),
        ("FLASHPOINT_BROKER_URL", "redis://:secret@h:notaport"),
        ("FLASHPOINT_BROKER_URL", "redis://:secret@h:99999"),
        ("FLASHPOINT_BROKER_URL", "redis://:x/secret@h"),
        ("FLASHPOINT_BROKER_URL", "redis://:secret@h/abc"),
        ("FLASHPOINT_BROKER_URL", "redis://:secret@h/0?foo=bar"),
        ("FLASHPOINT_BROKER_URL", "rediss://:secret@h/0?ssl_cert_reqs=perhaps"),
        ("FLASHPOINT_BROKER_URL", "redis+socket:///a/b?foo=bar"),
        ("FLASHPOINT_DATA", "/dev/null"),
        ("FLASHPOINT_DATA", "/tmp/a\nb"),
    ],
)
def test_a_bad_value_is_refused_in_one_sentence_that_names_it(name: str, value: str) -> None:
    with pytest.raises(UserError) as caught:
        read(**{name: value})
    sentence = str(caught.value)
    assert name in sentence
    assert "secret" not in sentence
    assert "\n" not in sentence and sentence.endswith(".")


def test_an_empty_variable_counts_as_not_set() -> None:
    assert read(FLASHPOINT_PORT="", FLASHPOINT_BROKER_URL=" ") == read()
