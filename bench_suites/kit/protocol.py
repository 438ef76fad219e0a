"""The lines that a conductor and the measured processes exchange: one JSON object a line over a Unix socket.

Every connection begins with a hello that carries VERSION; a peer of another version is refused. What arrives is not
trusted: lines are bounded, numbers are finite, and anything else is a ProtocolError.
"""

from __future__ import annotations

import json
import socket
import time
from typing import Any, Dict, Optional

VERSION = 1
MAX_LINE = 1 << 20


class ProtocolError(Exception):
    """The peer said something that is no message."""


class Closed(Exception):
    """The peer is gone."""


class TimedOut(Exception):
    """The peer did not answer before its deadline."""


def _refuse(constant: str) -> Any:
    raise ProtocolError(f"the number {constant} is not finite")


def decode(line: bytes) -> Dict[str, Any]:
    """One line to one message. Raises ProtocolError."""
    try:
        message = json.loads(line.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not a JSON line: {line[:60]!r}") from error
    if not isinstance(message, dict):
        raise ProtocolError(f"not a JSON object: {line[:60]!r}")
    return message


def encode(message: Dict[str, Any]) -> bytes:
    """One message to one line. Raises ValueError for NaN and infinities."""
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode("utf-8") + b"\n"


class Channel:
    """One connection, both ways."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.buffer = b""

    @classmethod
    def connect(cls, path: str) -> "Channel":
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(path)
        return cls(connection)

    def send(self, message: Dict[str, Any]) -> None:
        """Raises Closed."""
        try:
            self.socket.sendall(encode(message))
        except OSError as error:
            raise Closed(str(error)) from error

    def receive(self, seconds: Optional[float] = None) -> Dict[str, Any]:
        """The next message, waiting at most ``seconds``. Raises Closed, TimedOut, ProtocolError."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self.buffer:
            if len(self.buffer) > MAX_LINE:
                raise ProtocolError(f"a line of more than {MAX_LINE} bytes")
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TimedOut(f"no answer within {seconds:g} s")
            self.socket.settimeout(left)
            try:
                chunk = self.socket.recv(65536)
            except socket.timeout as error:
                raise TimedOut(f"no answer within {seconds:g} s") from error
            except OSError as error:
                raise Closed(str(error)) from error
            if not chunk:
                raise Closed("the connection ended")
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        return decode(line)

    def close(self) -> None:
        self.socket.close()
