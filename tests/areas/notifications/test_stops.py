"""A process that is killed at any commit between an event and its message loses nothing."""

from __future__ import annotations

import pytest
from sqlalchemy import event

from project_service.kit import deliveries
from project_service.kit.db.session import db
from tests.areas.notifications.conftest import make_rule, to

MAX_COMMITS = 40


class Killed(BaseException):
    """Stands for the end of the process: nothing may handle it."""


@pytest.fixture
def kill_at(app):
    """Runs an action up to its commit number ``number``, which is not made; returns whether it came so far."""

    def run(number, action):
        commits = []

        def count(_session):
            commits.append(1)
            if len(commits) == number:
                raise Killed

        event.listen(db.session, "before_commit", count)
        try:
            action()
        except Killed:
            return True
        finally:
            event.remove(db.session, "before_commit", count)
            db.session.remove()
        return False

    return run


def test_a_kill_at_any_commit_loses_no_message_and_keeps_the_order(
    kill_at, post, send, later, channel, project, receiver
):
    make_rule(project, to(channel), group_wait=0)

    def titles():
        return [item["object_attributes"]["title"] for body in receiver.bodies for item in body["items"]]

    for number in range(1, MAX_COMMITS):
        post({"title": f"First {number}"})
        later(seconds=400)  # a message of its own
        was_killed = kill_at(number, deliveries.send_all_due)
        later(seconds=60)
        post({"title": f"Second {number}"})
        send(seconds=400)
        send()
        in_order = list(dict.fromkeys(titles()))  # a message may arrive twice
        assert in_order[-2:] == [f"First {number}", f"Second {number}"]
        if not was_killed:
            break

    assert (was_killed, number > 3) == (False, True)
