"""Checks of the two addresses that may hold a password: no sentence of this module repeats more than a scheme, and a
wrong address is refused here instead of by a driver, whose own words may repeat all of it."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from core.errors import UserError

_LIBPQ = (
    "host port hostaddr dbname user password passfile require_auth channel_binding connect_timeout client_encoding "
    "options application_name fallback_application_name keepalives keepalives_idle keepalives_interval "
    "keepalives_count tcp_user_timeout sslmode sslnegotiation sslcompression sslcert sslkey sslpassword "
    "sslcertmode sslrootcert sslcrl sslcrldir sslsni requirepeer ssl_min_protocol_version ssl_max_protocol_version "
    "krbsrvname gsslib gssencmode gssdelegation service target_session_attrs load_balance_hosts"
)
#: What the driver of PostgreSQL takes after the "?", by the names of libpq.
POSTGRESQL_OPTIONS = frozenset(_LIBPQ.split())
_NUMBERS = frozenset(("connect_timeout", "port"))
_BROKER_OPTIONS = frozenset(("ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile"))
_CERTIFICATE = frozenset(("none", "optional", "required", "cert_none", "cert_optional", "cert_required"))
_SERVER = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s\[\]:/?#,]*)(?::([0-9]{1,5}))?(?:/[^?#]*)?")


def postgresql_address(rest: str) -> str:
    """``rest``, what follows ``postgresql://``, when it is ``[USER[:PASSWORD]@]HOST[:PORT]/NAME[?OPTION=VALUE]``.

    Raises UserError otherwise; a user's name or password with ``@``, ``/`` or ``?`` needs their percent form, because
    readers of addresses differ in where such a password ends.
    """
    account, _, place = rest.rpartition("@")
    if any(sign in account for sign in "@/?"):
        raise _bad_database("has one of @, / and ? in its user, password or options; write them as %40, %2F and %3F")
    server, _, query = place.partition("?")
    found = _SERVER.fullmatch(server)
    if found is None:
        raise _bad_database("has a host or port that cannot be read; write postgresql://USER:PASSWORD@HOST:PORT/NAME")
    if found[1] and not 1 <= int(found[1]) <= 65535:
        raise _bad_database("has a port that is no number from 1 to 65535; mend the port")
    options = parse_qsl(query, keep_blank_values=True)
    names = [name for name, _ in options if name != "host"]
    if set(names) - POSTGRESQL_OPTIONS or len(set(names)) != len(names):
        raise _bad_database("has an option after the ? that PostgreSQL does not know, or has one twice; remove it")
    if not all(re.fullmatch("[0-9]{1,5}", value, re.ASCII) for name, value in options if name in _NUMBERS):
        raise _bad_database("has a port or connect_timeout after the ? that is no number; mend it")
    if _controls(rest):
        raise _bad_database("holds a control character in percent form; remove it")
    return rest


def broker_address(text: str) -> SplitResult:
    """The parts of ``redis://``, ``rediss://`` or ``redis+socket://``. Raises UserError for all else."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _bad_broker("has a host or port that cannot be read; write redis://:PASSWORD@HOST:PORT/0") from None
    if _controls(text):
        raise _bad_broker("holds a control character in percent form; remove it")
    if parts.scheme == "redis+socket" and parts.path.startswith("/") and not parts.netloc:
        if parts.query or parts.fragment:
            raise _bad_broker("has something after the socket's path; write redis+socket:///PATH")
        return parts
    if parts.scheme not in ("redis", "rediss") or not parts.hostname:
        raise _bad_broker(
            f"starts with {text.partition(':')[0][:20]!r} and names no Redis; "
            "write redis://HOST:PORT/0, rediss://HOST:PORT/0 or redis+socket:///PATH"
            if "://" in text
            else "names no Redis; write redis://HOST:PORT/0, rediss://HOST:PORT/0 or redis+socket:///PATH"
        )
    if port == 0:
        raise _bad_broker("has the port 0; write a number from 1 to 65535")
    if not re.fullmatch("/?|/[0-9]{1,5}", parts.path, re.ASCII):
        raise _bad_broker("names a database that is no number; write redis://HOST:PORT/0")
    options = parse_qsl(parts.query, keep_blank_values=True)
    known = _BROKER_OPTIONS if parts.scheme == "rediss" else frozenset()
    if any(name not in known for name, _ in options) or bool(parts.query) != bool(options) or parts.fragment:
        raise _bad_broker(
            "has something after the database that is not known; only rediss:// takes options: "
            "ssl_cert_reqs, ssl_ca_certs, ssl_certfile and ssl_keyfile"
        )
    if any(name == "ssl_cert_reqs" and value.lower() not in _CERTIFICATE for name, value in options):
        raise _bad_broker("has an ssl_cert_reqs that is not known; write none, optional or required")
    return parts


def _controls(text: str) -> bool:
    return any(ord(sign) < 32 or ord(sign) == 127 for sign in unquote(text))


def _bad_database(what: str) -> UserError:
    return UserError(f"FLASHPOINT_DATABASE_URL {what}.")


def _bad_broker(what: str) -> UserError:
    return UserError(f"FLASHPOINT_BROKER_URL {what}.")
