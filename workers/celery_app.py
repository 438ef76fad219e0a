"""The Celery app. It is a doorbell only: SQL holds the truth, so it has no result backend, no ETA tasks and no
priorities.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from celery import Celery

from core.settings import Settings

WORK = "flashpoint.work"


def queue_of(node: str, device: str) -> str:
    """The queue of one device of one node."""
    return f"node.{node}.{device.replace(':', '-')}"


def make_celery(settings: Settings) -> Celery:
    """The app for these settings; nothing connects before it is used."""
    url = settings.broker_url
    if urlsplit(url).scheme == "redis+socket":
        url = f"redis+socket://{settings.broker_socket}"
    app = Celery("flashpoint", broker=url, set_as_current=False)
    app.conf.update(
        task_ignore_result=True,
        result_backend=None,
        task_serializer="json",
        accept_content=["json"],
        task_acks_late=True,
        task_reject_on_worker_lost=False,
        task_default_queue="unclaimed",
        worker_prefetch_multiplier=1,
        worker_concurrency=1,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_hijack_root_logger=False,
        worker_send_task_events=False,
        worker_enable_remote_control=False,
        broker_connection_retry_on_startup=True,
        broker_connection_timeout=2,
        # One message may be unacknowledged for as long as a run takes; the lease in SQL is what finds dead workers.
        broker_transport_options={
            "visibility_timeout": 24 * 3600,
            "socket_timeout": 5,
            "socket_connect_timeout": 2,
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
            "retry_policy": {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2},
        },
        task_publish_retry=False,
    )
    return app
