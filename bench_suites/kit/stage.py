"""The host's side of the protocol: a socket where zygotes and children report, and what is known of each."""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import Any, Callable, Dict, Optional

from .protocol import VERSION, Channel, Closed, ProtocolError, TimedOut


class Stopping(Exception):
    """Somebody asked the measuring to end."""


class Peer:
    """One connected process."""

    def __init__(self, channel: Channel, hello: Dict[str, Any]) -> None:
        self.channel = channel
        self.hello = hello
        self.id = str(hello["id"])
        self.pid = int(hello["pid"])

    def kill(self) -> None:
        """Ends the process at once; one that is gone already is fine."""
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            self.channel.close()


class Stage:
    """Listens at a Unix socket for the processes of one run. ``stop`` is asked every quarter of a second while
    waiting.
    """

    def __init__(self, path: str, stop: Callable[[], bool]) -> None:
        self.path = path
        self.stop = stop
        self.waiting: Dict[str, Peer] = {}
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        os.chmod(path, 0o600)
        self.listener.listen(64)

    def expect(self, peer: str, seconds: float, gone: Callable[[], Optional[str]]) -> Peer:
        """Waits for the process that says hello with that id.

        ``gone`` tells why the process will never come (None while it may). Raises TimedOut, Closed, ProtocolError,
        Stopping.
        """
        deadline = time.monotonic() + seconds
        while peer not in self.waiting:
            if self.stop():
                raise Stopping()
            self._accept(min(0.25, max(0.01, deadline - time.monotonic())))
            if peer in self.waiting:
                break
            why = gone()
            if why is not None:
                raise Closed(why)
            if time.monotonic() > deadline:
                raise TimedOut(f"no hello within {seconds:g} s")
        return self.waiting.pop(peer)

    def _accept(self, seconds: float) -> None:
        self.listener.settimeout(seconds)
        try:
            connection, _ = self.listener.accept()
        except socket.timeout:
            return
        channel = Channel(connection)
        hello = channel.receive(5.0)
        if hello.get("version") != VERSION:
            channel.close()
            raise ProtocolError(f"the process speaks protocol version {hello.get('version')!r}, not {VERSION}")
        self.waiting[str(hello["id"])] = Peer(channel, hello)

    def ask(self, peer: Peer, message: Dict[str, Any], seconds: float) -> Dict[str, Any]:
        """Sends a message and waits for the answer. Raises TimedOut, Closed, ProtocolError, Stopping."""
        peer.channel.send(message)
        return self.answer(peer, seconds)

    def answer(self, peer: Peer, seconds: float) -> Dict[str, Any]:
        """The next message of a peer. Raises TimedOut, Closed, ProtocolError, Stopping."""
        deadline = time.monotonic() + seconds
        while True:
            if self.stop():
                raise Stopping()
            left = deadline - time.monotonic()
            try:
                return peer.channel.receive(max(0.01, min(0.25, left)))
            except TimedOut:
                if left <= 0:
                    raise TimedOut(f"no answer within {seconds:g} s") from None

    def close(self) -> None:
        self.listener.close()
        for peer in self.waiting.values():
            peer.channel.close()
        if os.path.exists(self.path):
            os.unlink(self.path)
