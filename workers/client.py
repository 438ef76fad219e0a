"""Rings the doorbell of a node: a message that says only that there is work."""

from __future__ import annotations

from celery.exceptions import OperationalError as CeleryOperationalError
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from core.errors import Unavailable
from core.settings import Settings
from workers.celery_app import WORK, make_celery, queue_of


def ring(settings: Settings, node: str, device: str) -> None:
    """Tells the worker of that device that a run is queued. Raises Unavailable, within seconds, when the broker is
    away.

    A ring that is lost does no harm: the scheduler rings again for every queued run.
    """
    app = make_celery(settings)
    try:
        with app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, timeout=3)
            app.send_task(
                WORK,
                args=[node, device],
                queue=queue_of(node, device),
                connection=connection,
                retry=False,
                expires=24 * 3600,
            )
    except (OperationalError, CeleryOperationalError, RedisError, OSError) as error:
        raise Unavailable("The broker does not answer; the run is saved and starts when the broker is back.") from error
    finally:
        app.close()
