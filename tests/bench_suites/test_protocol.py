"""The lines between conductor and children: what is sent comes back, and what is no message is refused."""

from __future__ import annotations

import math
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_suites.kit.protocol import Channel, Closed, ProtocolError, TimedOut, decode, encode

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
messages = st.dictionaries(
    st.text(), st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)


@given(messages)
def test_round_trip(message: dict[str, object]) -> None:
    line = encode(message)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert decode(line[:-1]) == message


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"hello",
        b"[1, 2]",
        b"null",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1',
        b"\xff\xfe",
        b"\x00",
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
)
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(line)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_never_sent(value: float) -> None:
    with pytest.raises(ValueError):
        encode({"wall": value})


def pair() -> tuple[Channel, socket.socket]:
    ours, theirs = socket.socketpair()
    return Channel(ours), theirs


def test_a_line_in_pieces_is_one_message_and_two_lines_are_two() -> None:
    channel, peer = pair()
    peer.sendall(b'{"a": 1')
    with pytest.raises(TimedOut):
        channel.receive(0.02)
    peer.sendall(b'}\n{"b": 2}\n')
    assert channel.receive(1) == {"a": 1}
    assert channel.receive(1) == {"b": 2}


def test_an_endless_line_is_cut_off() -> None:
    channel, peer = pair()
    peer.settimeout(5)
    sent = 0
    with pytest.raises(ProtocolError, match="more than"):
        while True:
            peer.sendall(b"x" * 65536)
            sent += 65536
            try:
                channel.receive(0.05)
            except TimedOut:
                continue


def test_a_peer_that_hangs_up_is_closed() -> None:
    channel, peer = pair()
    peer.sendall(b'{"half": ')
    peer.close()
    with pytest.raises(Closed):
        channel.receive(1)
