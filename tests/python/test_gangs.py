# tests/python/test_gangs.py -- applications and gangs through ctypes, against a real dibsd.
# SPDX-License-Identifier: Apache-2.0
import dibs
import pytest
from dibs import application

from conftest import until


def test_a_gang_runs_when_it_is_whole_and_its_tasks_take_its_placeholders(dibsd):
    with dibs.connect(dibsd.socket) as client, dibs.connect(dibsd.socket) as other:
        with client.claim("gpu", timeout=5):
            pair = other.add_application("pair", "gpu", groups={"rank": 2})
            assert pair.wait_for("reserving", timeout=5)
            assert not pair.wait_for("running", timeout=0.01)
            with pytest.raises(dibs.Expired):
                pair.claim("early", group="rank", timeout=0.01)
        assert pair.wait_for("running", timeout=10)
        with pair.claim("a", group="rank", timeout=5) as one, pair.claim("b", group="rank", timeout=5) as two:
            assert {one.attributes["device"], two.attributes["device"]} == {"0", "1"}
            with pytest.raises(dibs.errors.WrongState, match="^2 tasks of application pair have not ended$"):
                pair.remove()
        pair.complete()
        assert pair.wait_for("completed", timeout=5)
        pair.remove()
        until(lambda: client.snapshot("gpu").idle == 2)


def test_a_dead_name_is_an_error_of_its_own(dibsd):
    with dibs.connect(dibsd.socket) as client:
        client.add_application("pair", "gpu", groups={"rank": 2}).fail()
        with pytest.raises(dibs.errors.ApplicationEnded):
            client.add_application("pair", "gpu")
        with pytest.raises(dibs.errors.ApplicationEnded):
            client.claim("gpu", timeout=5, terms=dibs.Terms(application="pair", task="a"))


def test_an_application_is_adopted_once_its_manager_has_gone(dibsd):
    with dibs.connect(dibsd.socket) as second:
        with dibs.connect(dibsd.socket) as first:
            first.add_application("pair", "gpu", groups={"rank": 1})
            with pytest.raises(dibs.errors.NotHolder):
                second.adopt_application("pair", "gpu")

        adopted = []

        def adopt():
            try:
                adopted.append(second.adopt_application("pair", "gpu"))
            except dibs.errors.NotHolder:
                return False
            return True
        until(adopt)
        assert adopted[0].wait_for("running", timeout=5)
        with dibs.connect(dibsd.socket) as other:
            application.Application(other, other._session, "pair", "gpu", 0).remove()
        assert not adopted[0].wait_for("killed", timeout=5)
        assert adopted[0].state == "removed"


def test_one_that_is_adopted_by_its_manager_is_the_one_that_there_is(dibsd):
    with dibs.connect(dibsd.socket) as client:
        pair = client.add_application("pair", "gpu", groups={"rank": 2})
        assert client.adopt_application("pair", "gpu") is pair
        assert pair.wait_for("running", timeout=10)
        assert pair.number != 0


def test_what_is_there_already_and_what_is_dropped_is_said(dibsd):
    with dibs.connect(dibsd.socket) as client:
        app = client.add_application("a", "gpu", groups={"rank": 0})
        assert app.wait_for("running", timeout=10)
        assert isinstance(app.error, dibs.errors.Malformed)
        assert "the gang was dropped" in str(app.error)
        with pytest.raises(dibs.errors.Duplicate, match="^application a is there already, and stays as it is"):
            client.add_application("a", "gpu")
        app.add_task("t")
        with pytest.raises(dibs.errors.Duplicate, match="^task t of application a is there already"):
            app.add_task("t")
        with pytest.raises(dibs.errors.NotFound, match="application"):
            client.adopt_application("b", "gpu")


def test_applications_of_one_name_are_told_apart(dibsd):
    with dibs.connect(dibsd.socket) as client, dibs.connect(dibsd.socket) as other:
        first = client.add_application("cyc", "gpu")
        application.Application(other, other._session, "cyc", "gpu", 0).remove()
        second = client.add_application("cyc", "gpu")
        second.complete()
        second.remove()
        third = client.add_application("cyc", "gpu")
        assert third.wait_for("running", timeout=10)
        assert len({first.number, second.number, third.number}) == 3
        assert (first.state, second.state) == (None, None)
        assert client.next_application_event(0) is None
        third.remove()
        assert client._applications == {}
        with pytest.raises(dibs.errors.NotFound):
            first.remove()


@pytest.mark.parametrize("name", ["a\tb", "a\0b", "a\x7f"])
def test_a_name_with_control_characters_is_no_name(dibsd, name):
    with dibs.connect(dibsd.socket) as client:
        app = client.add_application("a", "gpu", groups={"rank": 1})
        for wrong in (lambda: client.add_application(name, "gpu"),
                      lambda: client.add_application("b", "gpu", groups={name: 1}),
                      lambda: client.adopt_application(name, "gpu"),
                      lambda: app.add_task(name),
                      lambda: app.add_task("t", group=name),
                      lambda: app.complete_task(name),
                      lambda: app.remove_task(name),
                      lambda: app.claim(name, timeout=5),
                      lambda: client.claim("gpu", timeout=5, terms=dibs.Terms(application=name, task="t"))):
            with pytest.raises(dibs.errors.BadName, match="control characters"):
                wrong()


def test_what_cannot_be_is_refused_by_name(dibsd):
    with dibs.connect(dibsd.socket) as client:
        for members in (True, -1, 1.5, 2**32, 2**32 + 1):
            with pytest.raises(dibs.errors.BadArgument, match="group 'rank': members: a whole number from 0"):
                client.add_application("a", "gpu", groups={"rank": members})
        for priority in (-1, 2**31, 2**32 + 1):
            with pytest.raises(dibs.errors.BadArgument, match="priority: a whole number from 0 to 2147483647"):
                client.add_application("a", "gpu", priority=priority)
        with pytest.raises(dibs.errors.BadVector):
            client.add_application("a", "gpu", groups={"rank": (1, {"memory": "much"})})
        with pytest.raises(dibs.errors.NoSuchPool):
            client.add_application("a", "nowhere")
        app = client.add_application("a", "gpu", groups={"rank": 3})
        with pytest.raises(dibs.errors.BadArgument, match="priority: a whole number"):
            app.add_task("t", priority=2**32)
        assert not app.wait_for("running", timeout=5)
        assert isinstance(app.error, dibs.errors.BadUnits)
        assert client.next_application_event(0) is None
