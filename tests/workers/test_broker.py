"""The embedded broker and the doorbell: real Redis protocol over a private socket."""

from __future__ import annotations

import os
import signal
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from core.errors import Unavailable, UserError
from core.settings import Settings, settings_from
from workers.broker import end_left_over, make_server, private_folder
from workers.celery_app import make_celery, queue_of
from workers.client import ring


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_from({"FLASHPOINT_DATA": str(tmp_path / "data"), "TMPDIR": "/tmp"})


@pytest.fixture
def broker(settings: Settings) -> Iterator[Redis]:
    server = make_server(settings)
    server.start()
    client = Redis(unix_socket_path=str(settings.broker_socket))
    yield client
    client.close()
    server.stop()


def test_a_ring_is_one_message_in_the_queue_of_the_device(broker: Redis, settings: Settings) -> None:
    ring(settings, "epyc-01", "cpu")
    ring(settings, "epyc-01", "cuda:0")
    assert broker.llen(queue_of("epyc-01", "cpu")) == 1
    assert broker.llen(queue_of("epyc-01", "cuda:0")) == 1
    message = broker.lindex(queue_of("epyc-01", "cpu"), 0)
    assert b"flashpoint.work" in message


def test_rings_survive_a_kill_of_the_server(settings: Settings) -> None:
    server = make_server(settings)
    server.start()
    ring(settings, "epyc-01", "cpu")
    Redis(unix_socket_path=str(settings.broker_socket)).execute_command("WAITAOF", 1, 0, 2000)
    pid = int((settings.broker_dir / "valkey.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
        pass  # its end takes a moment
    again = make_server(settings)
    again.start()
    try:
        assert Redis(unix_socket_path=str(settings.broker_socket)).llen(queue_of("epyc-01", "cpu")) == 1
    finally:
        again.stop()


def test_a_server_that_a_killed_parent_left_behind_is_ended(settings: Settings) -> None:
    first = make_server(settings)
    first.start()
    second = make_server(settings)  # the first one is still there, as after a SIGKILL of its parent
    second.start()
    second.stop()


def test_a_pid_file_that_names_another_program_harms_nobody(tmp_path: Path) -> None:
    pid_file = tmp_path / "valkey.pid"
    pid_file.write_text(str(os.getpid()))
    assert end_left_over(pid_file) is False


def test_the_socket_is_for_this_user_alone(broker: Redis, settings: Settings) -> None:
    assert settings.broker_socket is not None
    assert stat.S_IMODE(settings.broker_socket.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(settings.broker_socket.stat().st_mode) == 0o700


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(UserError, match="belongs to somebody else"):
        private_folder(tmp_path / "link")


def test_without_a_broker_a_ring_says_so(settings: Settings) -> None:
    with pytest.raises(Unavailable, match="saved and starts when the broker is back"):
        ring(settings, "epyc-01", "cpu")


def test_a_broker_that_hangs_does_not_hang_the_click(settings: Settings) -> None:
    assert settings.broker_socket is not None
    private_folder(settings.broker_socket.parent)
    settings.broker_socket.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as frozen:
        frozen.bind(str(settings.broker_socket))
        frozen.listen(1)  # accepts into its backlog and never answers
        ended = threading.Event()

        def click() -> None:
            with pytest.raises(Unavailable):
                ring(settings, "epyc-01", "cpu")
            ended.set()

        threading.Thread(target=click, daemon=True).start()
        assert ended.wait(60)
    settings.broker_socket.unlink()


def test_celery_is_a_doorbell_only(settings: Settings) -> None:
    conf = make_celery(settings).conf
    assert conf.task_ignore_result and not conf.result_backend
    assert conf.accept_content == ["json"]
    assert conf.worker_prefetch_multiplier == 1 and conf.worker_concurrency == 1
    assert conf.broker_transport_options["visibility_timeout"] == 24 * 3600
    assert conf.broker_transport_options["socket_timeout"] <= 5
    assert conf.worker_cancel_long_running_tasks_on_connection_loss is False
