"""The `notify` field of a pipeline: its targets, and its mistakes with line, value and fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipeline_texts import FLIGHTS, line_of, load_text, problems_of, table_definition
from windows_pipeline.config import definition_digest
from windows_pipeline.storage.catalog import specs_of

TABLES = (
    *("raw_events", "keyed_windows", "late_records", "final_windows", "corrections", "alerts"),
    *("failed_windows", "firings", "early_warnings"),
)


def with_target(fields: str) -> str:
    return f"{FLIGHTS}notify:\n  people: {fields}\n"


def with_options(options: str) -> str:
    return f"{{topic: {{servers: 'a:1', name: t, options: {options}}}}}"


def test_a_target_has_the_fields_of_its_file(tmp_path: Path) -> None:
    text = with_target(
        "{file: sent.jsonl, rules: [quiet], min_severity: 2.5, events: [opened], max_age: 2 hours}"
    )
    pipeline = load_text(
        tmp_path, f"{text}  chat:\n    webhook: {{url: 'https://x/a', format: slack}}\n"
    )
    people, chat = pipeline.notify["people"], pipeline.notify["chat"]
    assert (people.file, people.rules, people.min_severity) == ("sent.jsonl", ("quiet",), 2.5)
    assert (people.events, people.max_age, people.webhook) == (("opened",), 7_200_000, None)
    assert chat.webhook is not None
    assert (chat.webhook.url, chat.webhook.format) == ("https://x/a", "slack")
    assert (chat.rules, chat.min_severity, chat.max_age) == (None, None, 86_400_000)


def test_targets_are_no_part_of_a_definition(tmp_path: Path) -> None:
    """Rule H1: no table's digest changes, and only notifications are added."""
    without = load_text(tmp_path, FLIGHTS)
    sent = load_text(tmp_path, with_target("{file: sent.jsonl}"))
    other = load_text(tmp_path, with_target("{file: other.jsonl, min_severity: 3}"))
    for table in TABLES:
        name = None if table == "raw_events" else "hourly"
        found = {definition_digest(table_definition(each, name, table)) for each in (without, sent)}
        assert len(found) == 1, table
    names = [[spec.name for spec in specs_of(each, "w").written] for each in (without, sent)]
    assert names[1] == [*names[0], "flights/hourly/notifications"]
    digests = {
        definition_digest(table_definition(each, "hourly", "notifications"))
        for each in (sent, other)
    }
    assert len(digests) == 1
    # A changed rule is another definition.
    changed = load_text(tmp_path, with_target("{file: sent.jsonl}").replace("10", "11", 1))
    assert changed.windows != sent.windows
    spec = specs_of(changed, "w").of("hourly").notifications
    assert spec is not None
    assert definition_digest(spec.definition) not in digests


@pytest.mark.parametrize(
    ("fields", "path", "problem"),
    [
        ("{}", "", "has no way; write one of webhook, email, command, file, topic under it"),
        ("", "", "'' has no value; write 'people:' with 'webhook: ...' or another way under it"),
        ("x", "", "'x' is not a mapping; write 'people:' with 'webhook: ...' or another way"),
        (
            "{file: a, webhook: {url: 'https://x'}}",
            ".file",
            "'a' is a second way, after webhook; move it to a target of its own",
        ),
        ("{file: a/b}", ".file", "'a/b' is not the name of a file; write letters, digits, '_'"),
        ("{file: .}", ".file", "'.' is not the name of a file; write letters, digits, '_'"),
        ("{file: _delivered.jsonl}", ".file", "'_delivered.jsonl' is not the name of a file"),
        (
            "{file: a, rules: [quite]}",
            ".rules.0",
            "'quite' is not an alert rule here; did you mean",
        ),
        ("{file: a, min_severity: high}", ".min_severity", "'high' is not a number; write one"),
        ("{file: a, min_severity: true}", ".min_severity", "'true' is not a number; write one"),
        ("{file: a, events: [open]}", ".events.0", "'open' is not a known value; use 'opened'"),
        ("{file: a, max_age: 3}", ".max_age", "'3' has no unit; write a whole number and"),
        ("{file: a, max_age: 0 s}", ".max_age", "'0 s' must be above zero; write at least '1 ms'"),
        ("{file: a, rule: x}", ".rule", "'rule' is not a field here; did you mean 'rules'?"),
        ("{webhook: {}}", ".webhook.url", "is missing; write"),
        ("{webhook: {url: 'https://x', form: a}}", ".webhook.form", "'form' is not a field here;"),
        ("{webhook: {url: 'https://x', format: xml}}", ".webhook.format", "'xml' is not a known"),
        ("{email: {host: a, from: b, to: [c@d]}}", ".email.from", "'b' is not an e-mail address;"),
        ("{email: {host: a, from: b@c, to: []}}", ".email.to", "[] is empty; write at least one"),
        ("{email: {host: a, to: [c@d]}}", ".email.from", "is missing; write 'from: "),
        (
            "{email: {host: a, from: b@c, to: [c@d], user: x}}",
            ".email.password",
            "is missing; write both user and password, or none",
        ),
        (
            "{email: {host: a, port: 65536, from: b@c, to: [c@d]}}",
            ".email.port",
            "'65536' must be 1 to 65535; write the port of the mail server",
        ),
        (
            "{email: {host: a, form: b@c, from: b@c, to: [c@d]}}",
            ".email.form",
            "'form' is not a field here; did you mean 'from'?",
        ),
        ("{file: a, group: 0}", ".group", "'0' is not a whole number above zero; write such a"),
        ("{file: a, rate_limit: 20}", ".rate_limit", "'20' is not a mapping; write 'rate_limit:'"),
        ("{file: a, rate_limit: {messages: 2}}", ".rate_limit.per", "is missing; write 'per: "),
        (
            "{file: a, quiet: {hours: 22-6, zone: UTC}}",
            ".quiet.hours",
            "'22-6' is not from one time to another; write both as in 22:00-06:00",
        ),
        (
            "{file: a, quiet: {hours: 22:00-22:00, zone: UTC}}",
            ".quiet.hours",
            "'22:00-22:00' must be two times that differ; write both as in 22:00-06:00",
        ),
        (
            "{file: a, quiet: {hours: 22:00-24:00, zone: UTC}}",
            ".quiet.hours",
            "'22:00-24:00' is not from one time to another",
        ),
        (
            "{file: a, quiet: {hours: 22:00-06:00, zone: Berlin}}",
            ".quiet.zone",
            "'Berlin' is not a known time zone; did you mean",
        ),
        ("{file: a, quiet: {hours: 22:00-06:00}}", ".quiet.zone", "is missing; write 'zone: "),
        ("{topic: {name: t}}", ".topic.servers", "is missing; write 'servers: "),
        (
            "{topic: {servers: a, name: t}}",
            ".topic.servers",
            "'a' must name each broker with its port; write them as in broker-1:9092,broker-2:9092",
        ),
        ("{topic: {servers: 'a:1, [::1]:2', name: ..}}", ".topic.name", "'..' is not the name of"),
        ("{topic: {servers: 'a:1', topic: t, name: t}}", ".topic.topic", "'topic' is not a field"),
        (
            "{topic: {servers: 'a:1', name: t}, group: 3}",
            ".group",
            "joins messages, but in a topic each event is a message of its own; remove it",
        ),
        (
            with_options("{acks: '0'}"),
            ".topic.options.acks",
            "is not an option of a target; use security.protocol, sasl.mechanism, sasl.jaas.conf",
        ),
        (
            with_options("{security.protocol: TLS}"),
            ".topic.options.security.protocol",
            "must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; correct it; the value is not sh",
        ),
        (
            with_options("{sasl.mechanism: PLAIN}"),
            ".topic.options.sasl.mechanism",
            "has no effect without a log-in; write security.protocol: SASL_SSL, or remove it; the",
        ),
        (
            with_options("{ssl.key.password: '${env:KEY}'}"),
            ".topic.options.ssl.key.password",
            "has no effect without encryption; write security.protocol: SASL_SSL or SSL, or remov",
        ),
        (
            with_options("{security.protocol: SSL, ssl.truststore.location: ca.pem}"),
            ".topic.options.ssl.truststore.location",
            "is read as PEM; write ssl.truststore.type: PEM, and convert a store of another form;",
        ),
        (
            with_options("{security.protocol: SASL_SSL, sasl.jaas.config: '${env:JAAS}'}"),
            ".topic.options",
            "lack sasl.mechanism, which security.protocol: SASL_SSL needs; write it",
        ),
        ("{command: page}", ".command", "'page' is not a list; write one in brackets, as in"),
        ("{command: []}", ".command", "[] is empty; write at least one entry, or leave it out"),
        ("{file: a, rules: quiet}", ".rules", "'quiet' is not a list; write one in brackets"),
        (
            "{webhook: {url: 'ftp://${env:HOST}/a'}}",
            ".webhook.url",
            "must begin with https:// or http:// and name a host; write such an address; the",
        ),
        (
            "{webhook: {url: '${HOOK}'}}",
            ".webhook.url",
            "has '${' that begins no reference; write ${env:NAME} for a variable; the value is",
        ),
        (
            "{file: '${env:A}'}",
            ".file",
            "refers to the environment, but a pipeline's results ",
        ),
    ],
)
def test_a_mistake_has_the_line_the_value_and_the_fix(
    tmp_path: Path, fields: str, path: str, problem: str
) -> None:
    text = with_target(fields)
    (found,) = problems_of(tmp_path, text)
    where = f"{tmp_path / 'flights.yaml'}:{line_of(text, '  people:')}: notify.people{path}: "
    assert found.startswith(where)
    assert problem in found


@pytest.mark.parametrize(
    "url", ["hunter2x", "[hunter2x]", "{hunter2x: 1}", "ftp://hunter2x", "!!int hunter2x", "|\n x"]
)
def test_no_mistake_shows_an_address(tmp_path: Path, url: str) -> None:
    """Who knows it can write to the target."""
    problems = problems_of(tmp_path, with_target(f"{{webhook: {{url: {url}}}}}"))
    assert problems
    assert "hunter2x" not in "\n".join(problems)


def test_a_list_of_targets_is_refused(tmp_path: Path) -> None:
    text = f"{FLIGHTS}notify:\n  - webhook: hunter2x\n"
    (found,) = problems_of(tmp_path, text)
    assert f":{line_of(text, 'notify:')}: notify: " in found
    assert "is a list; write 'notify:' with 'name: ...' lines under it" in found
    assert "hunter2x" not in found
