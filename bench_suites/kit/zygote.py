"""A zygote: a process that imported torch and ran nothing. Each case is a fork of it: clean, and ready in
milliseconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import sys
import time
from typing import Any, Dict, List, Optional

from .authoring import Suite
from .catalog import find_case, load_suites
from .child import run_child
from .protocol import VERSION, Channel, Closed, TimedOut

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """On Linux: this process is killed when its parent dies, so that no fork outlives its zygote."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def thread_count() -> int:
    """The threads of this process, 1 where the system does not tell."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


def import_torch(suites: List[Suite]) -> Any:
    """Imports torch and what the suites want preloaded; modules that this build lacks are left to the cases to miss."""
    torch = importlib.import_module("torch")
    for suite in suites:
        for module in suite.needs.preload:
            try:
                importlib.import_module(module)
            except ImportError:
                print(f"flashpoint: this build has no {module}", file=sys.stderr)
    return torch


def serve(connect: str, name: str, suites: List[str], child: Optional[str]) -> int:
    """The process's whole life: import, say hello, fork on demand, end when the conductor is gone.

    ``child`` is an order as JSON: then this process measures that one case itself and never forks, which is the way out
    for builds whose import starts threads.
    """
    die_with_parent()
    catalog = load_suites()
    begin = time.perf_counter()
    torch = import_torch([catalog[s] for s in suites])
    if child is not None:
        order = json.loads(child)
        run_child(order, find_case(catalog, order["case"]), torch, connect)
        return 0
    channel = Channel.connect(connect)
    channel.send(
        {
            "hello": "zygote",
            "version": VERSION,
            "id": name,
            "pid": os.getpid(),
            "torch": torch.__version__,
            "threads": thread_count(),
            "import_s": time.perf_counter() - begin,
        }
    )
    with contextlib.suppress(Closed):  # the conductor is gone: that is the end of a zygote's work
        _serve_forks(channel, catalog, torch, connect)
    return 0


def _serve_forks(channel: Channel, catalog: Dict[str, Suite], torch: Any, connect: str) -> None:
    alive: Dict[int, str] = {}
    while True:
        _reap(channel, alive)
        try:
            order = channel.receive(0.2)
        except TimedOut:
            continue
        threads = thread_count()
        if threads != 1:
            channel.send({"cannot_fork": order["id"], "threads": threads})
            continue
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _be_child(channel, order, catalog, torch, connect)
        alive[pid] = order["id"]


def _be_child(channel: Channel, order: Dict[str, Any], catalog: Dict[str, Suite], torch: Any, connect: str) -> None:
    code = 70
    try:
        channel.close()
        die_with_parent()
        run_child(order, find_case(catalog, order["case"]), torch, connect)
        code = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # never run the zygote's own exit handlers in a fork


def _reap(channel: Channel, alive: Dict[int, str]) -> None:
    while alive:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid in alive:
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            channel.send({"exited": alive.pop(pid), "code": code})
