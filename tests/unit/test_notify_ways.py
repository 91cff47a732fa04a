"""E-mail and programs as ways to notify somebody; with a real mail server and real programs."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import pytest

from tests.support.notified import Notified
from tests.support.receivers import mail_server, receiver

MAIL = """  people:
    email:
      host: 127.0.0.1
      port: {port}
      starttls: {starttls}
      {login}
      from: pipeline@example.com
      to: [a@example.com, b@example.com]
"""
LOGIN = "user: '${env:MAIL_USER}'\n      password: '${env:MAIL_PASSWORD}'"


def test_a_mail_has_one_subject_whatever_a_key_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key is text of the data: it adds no header and no address."""
    monkeypatch.setenv("MAIL_USER", "me")
    monkeypatch.setenv("MAIL_PASSWORD", "s3cret-s3cret")
    with mail_server() as box:
        targets = MAIL.format(port=box.port, starttls="false", login=LOGIN)
        project = Notified(tmp_path, targets)
        project.happen({"key": "x\r\nBcc: c@example.com\r\n\r\nä\u2028é" + "y" * 500})
        sent = project.deliver()["people"]
    assert (sent.events, sent.failed) == (1, False)
    (mail,) = box.mails
    assert box.to == [["a@example.com", "b@example.com"]]
    assert box.logins == [b"\0me\0s3cret-s3cret"]
    assert mail["Bcc"] is None
    assert mail["Subject"].startswith("flights hourly: disruption opened for x\\r\\nBcc: c@")
    assert r"ä\u2028éyyy" in mail["Subject"]
    assert "\u2028" not in mail["Subject"]
    assert len(mail["Subject"]) <= 200
    assert (mail["From"], mail["To"]) == ("pipeline@example.com", "a@example.com, b@example.com")
    assert mail["Message-ID"].endswith("@example.com>")
    assert "worst window: 2013-01-01 08:00:00 to" in mail.get_content()
    assert "s3cret" not in project.log.read_text()


def test_a_webhooks_address_may_have_a_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is sent as HTTP's basic authentication, and stands in no other place."""
    monkeypatch.setenv("PASSWORD", "s3cret%40s3cret")
    with receiver() as hook:
        url = hook.url.replace("http://", "http://me:${env:PASSWORD}@")
        project = Notified(tmp_path, f"  people:\n    webhook: {{url: '{url}'}}\n")
        project.happen({})
        assert project.deliver()["people"].events == 1
    (login,) = hook.logins
    assert login is not None
    assert base64.b64decode(login.removeprefix("Basic ")) == b"me:s3cret@s3cret"
    assert "s3cret" not in project.log.read_text()


def test_addresses_may_be_those_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_FROM", "hidden-sender@example.com")
    monkeypatch.setenv("ON_CALL", "hidden-person@example.com")
    text = MAIL.replace("pipeline@example.com", "'${{env:MAIL_FROM}}'")
    text = text.replace("b@example.com", "'${{env:ON_CALL}}'")
    with mail_server() as box:
        project = Notified(tmp_path, text.format(port=box.port, starttls="false", login=""))
        project.happen({})
        assert project.deliver()["people"].events == 1
    assert box.to == [["a@example.com", "hidden-person@example.com"]]
    assert box.mails[0]["From"] == "hidden-sender@example.com"
    monkeypatch.setenv("ON_CALL", "hidden person")
    project.happen({"key": "LGA"})
    with pytest.raises(
        ValueError,
        match=r"yaml:\d+: notify\.people\.email\.to\S* \$\{env:ON_CALL\} is not an e-mail",
    ) as wrong:
        project.deliver()
    assert "hidden" not in str(wrong.value)
    monkeypatch.delenv("ON_CALL")
    with pytest.raises(ValueError, match="refers to the environment variable ON_CALL, which is"):
        project.deliver()
    assert "hidden" not in project.log.read_text()


def test_a_mail_server_that_refuses_keeps_messages_waiting(tmp_path: Path) -> None:
    """A temporary answer is tried again at once; an unencrypted server gets nothing."""
    with mail_server() as box:
        project = Notified(tmp_path, MAIL.format(port=box.port, starttls="false", login=""))
        project.happen({})
        box.answers = ["554 no"]
        assert project.deliver()["people"].reason == "answered 554"
        box.answers = ["451 later"]
        assert project.deliver()["people"].events == 1
        assert len(box.mails) == 1
        project.happen({"key": "LGA"})
        project.targets = MAIL.format(port=box.port, starttls="true", login="")
        sent = project.deliver()["people"]
        assert (sent.failed, sent.reason) == (True, "no answer: SMTPNotSupportedError")
        assert len(box.mails) == 1
        project.targets = MAIL.format(port=box.port, starttls="false", login="")
    sent = project.deliver(waits_s=())["people"]
    assert (sent.failed, sent.reason) == (True, "no answer: ConnectionRefusedError")


def test_a_program_gets_the_message_on_its_input(tmp_path: Path) -> None:
    """Its arguments are no shell's; a status other than 0 keeps the message."""
    program = tmp_path / "page.py"
    program.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\n"
        "pathlib.Path(sys.argv[2]).write_bytes(sys.stdin.buffer.read())\n"
        "sys.exit(int(sys.argv[1]))\n"
    )
    program.chmod(0o755)
    out = tmp_path / "$(id); out"

    def targets(status: int) -> str:
        return f"  people:\n    command: [{program}, '{status}', '{out}']\n"

    project = Notified(tmp_path, targets(3))
    project.happen({"key": "$(id)"})
    with pytest.raises(
        ValueError, match=r"^flights: notify\.people\.command: the settings must allow"
    ):
        project.deliver()
    project.commands = (str(program),)
    assert project.deliver(waits_s=())["people"].reason == f"{program}: ended with exit status 3"
    project.targets = targets(0)
    assert project.deliver()["people"].events == 1
    assert json.loads(out.read_bytes())["events"][0]["key"] == "$(id)"
    project.happen({"key": "LGA"})
    program.chmod(0o644)
    assert project.deliver(waits_s=())["people"].reason.endswith(
        "cannot be started (Permission denied)"
    )
