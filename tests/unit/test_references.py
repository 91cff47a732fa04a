"""References to environment variables: resolved at their use, and shown nowhere."""

from __future__ import annotations

import copy
import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pipeline_texts import (
    FLIGHTS,
    changed,
    line_of,
    load_text,
    problems_of,
    table_definition,
)
from windows_pipeline.config import (
    ConfigError,
    Pipeline,
    definition_digest,
    load_pipeline,
)
from windows_pipeline.settings import SETTINGS_VARIABLE, Settings, SettingsError, load_settings
from windows_pipeline.sources.kafka.topic import KafkaTopic
from windows_pipeline.streaming.sources import topic_of
from windows_pipeline.text.references import (
    Referring,
    reference_problem,
    refers,
    resolved,
    without_values,
)

CANARY = "hunter2x"
TOPIC = re.sub(r"  (path|arrival): .*\n", "", FLIGHTS).replace(
    "format: jsonl",
    "format: kafka\n  kafka:\n    servers: ${env:WP_SERVERS}\n    topic: b\n    options:\n"
    "      sasl.jaas.config: 'user password=\"${env:WP_PASSWORD}\";'",
)
SETTINGS = "warehouse: w\npipelines: p\nlanding: ${env:WP_LANDING}/in\nspark:\n"
SPARK_KEY = "spark.hadoop.fs.s3a.secret.key"


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WP_SERVERS", "broker:9092")
    monkeypatch.setenv("WP_PASSWORD", CANARY)
    monkeypatch.setenv("WP_LANDING", "/landed-here")
    monkeypatch.delenv("WP_GONE", raising=False)
    monkeypatch.delenv(SETTINGS_VARIABLE, raising=False)


def settings_of(folder: Path, text: str) -> Settings:
    (folder / "settings.yaml").write_text(text)
    return load_settings(folder)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${env:WP_PASSWORD}", CANARY),
        ("a ${env:WP_PASSWORD} b ${env:WP_SERVERS}", f"a {CANARY} b broker:9092"),
        ("$${env:WP_PASSWORD}", "${env:WP_PASSWORD}"),
        ("$x ${x} $$ ${env:WP_PASSWORD}", f"$x ${{x}} $$ {CANARY}"),
    ],
)
def test_a_reference_stands_for_the_variables_value(text: str, value: str) -> None:
    assert refers(text)
    assert reference_problem(text) is None
    assert resolved(Referring(text, "f:1: x")) == value


def test_a_value_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WP_PASSWORD", "${env:WP_SERVERS}$${env:")
    assert resolved(Referring("${env:WP_PASSWORD}", "f:1: x")) == "${env:WP_SERVERS}$${env:"


def test_a_text_of_code_is_returned_unchanged() -> None:
    assert resolved("${env:WP_PASSWORD}") == "${env:WP_PASSWORD}"


@pytest.mark.parametrize(
    "text", ["${env:}", "${env:WP PASSWORD}", "${env:A", "${env:1}", "${env:é}"]
)
def test_a_reference_without_a_name_is_refused(tmp_path: Path, text: str) -> None:
    assert "write ${env:NAME}" in str(reference_problem(text))
    (problem,) = problems_of(tmp_path, changed("path: data/flights  ", f"path: '{text}'  "))
    line = line_of(FLIGHTS, "path: data/flights")
    assert problem.startswith(f"{tmp_path / 'flights.yaml'}:{line}: source.path: has '${{env:'")


@given(st.text(alphabet="${}:envA1 ", max_size=30))
def test_any_text_is_resolved_or_refused(text: str) -> None:
    """What has no problem has no reference left but escaped ones."""
    if reference_problem(text) is None and "${env:" in text:
        with suppress(ConfigError):  # a variable that is not set
            assert resolved(Referring(text, "f:1: x")) != text


def test_a_text_keeps_its_place_in_copies() -> None:
    text = Referring("${env:X}", "f.yaml:3: x")
    for made in (copy.copy(text), copy.deepcopy(text)):
        assert (made, made.location) == (text, text.location)


def test_a_pipeline_holds_references_and_its_topic_has_the_values(tmp_path: Path) -> None:
    pipeline = load_text(tmp_path, TOPIC)
    for made in (pipeline, copy.deepcopy(pipeline), pipeline.model_copy()):
        assert CANARY not in repr(made)
        assert CANARY not in made.model_dump_json()
        topic = topic_of(made.source)
        assert topic.servers == "${env:WP_SERVERS}"
        assert topic.client["bootstrap.servers"] == "broker:9092"
        assert topic.client["sasl.jaas.config"] == f'user password="{CANARY}";'
        assert CANARY not in repr(topic)


def test_digests_hold_no_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule H1: how records are reached changes no row."""

    def digests(pipeline: Pipeline) -> list[str]:
        definitions = [
            table_definition(pipeline, None, "raw_events"),
            table_definition(pipeline, "hourly", "final_windows"),
        ]
        assert CANARY not in str(definitions)
        return [definition_digest(definition) for definition in definitions]

    first = digests(load_text(tmp_path, TOPIC))
    monkeypatch.setenv("WP_PASSWORD", "another")
    assert digests(load_text(tmp_path, TOPIC)) == first


def test_a_missing_variable_is_named_at_its_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WP_PASSWORD")
    topic = topic_of(load_text(tmp_path, TOPIC).source)  # loads all the same
    with pytest.raises(ConfigError) as missing:
        topic.client  # noqa: B018  the property raises
    line = line_of(TOPIC, "sasl.jaas.config")
    assert str(missing.value) == (
        f"{tmp_path / 'flights.yaml'}:{line}: source.kafka.options.sasl.jaas.config: refers to the "
        "environment variable WP_PASSWORD, which is not set; set it, or write "
        "$${env:WP_PASSWORD} for the text itself"
    )


def test_a_path_may_refer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = changed("path: data/flights  ", "path: ${env:WP_LANDING}/flights  ")
    source = load_text(tmp_path, text).source
    assert source.path == "${env:WP_LANDING}/flights"
    assert source.required_path == "/landed-here/flights"
    monkeypatch.delenv("WP_LANDING")
    with pytest.raises(
        ConfigError, match=r"flights.yaml:\d+: source.path: .* variable WP_LANDING,"
    ):
        source.required_path  # noqa: B018  the property raises


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("grace: 6 hours", "grace: '${env:WP_GONE}'", "windows.hourly.grace"),
        ("severity: -record_count", "severity: ${env:WP_GONE}", "windows.hourly.alerts.quiet.sev"),
        ("name: flights", "name: $${env:WP_GONE}", "name"),
    ],
)
def test_fields_that_decide_rows_have_no_references(
    tmp_path: Path, old: str, new: str, field: str
) -> None:
    """Rule H1: the digest of a definition has a text that means the same everywhere."""
    text = changed(old, new)
    (problem,) = problems_of(tmp_path, text)
    assert problem.startswith(f"{tmp_path / 'flights.yaml'}:{line_of(text, new)}: {field}")
    assert "${env:WP_GONE}' refers to the environment, but a pipeline's results" in problem
    assert "(rule H1); write the value itself; references may stand in" in problem


def test_a_topics_name_may_refer(tmp_path: Path) -> None:
    """It is a location, as `source.path` is: `rejected_records` shows it."""
    pipeline = load_text(tmp_path, TOPIC.replace("topic: b", "topic: ${env:WP_SERVERS}"))
    assert topic_of(pipeline.source).topic == "broker:9092"
    assert "broker:9092" not in pipeline.model_dump_json()


@pytest.mark.parametrize("name", ["WP_TOPIC", "WP_SERVERS", "WP_PASSWORD"])
def test_a_source_names_the_variable_that_it_misses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("WP_TOPIC", "b")
    source = load_text(tmp_path, TOPIC.replace("topic: b", "topic: ${env:WP_TOPIC}")).source
    source.require_variables()
    monkeypatch.delenv(name)
    with pytest.raises(ConfigError, match=f"environment variable {name}, which is not set"):
        source.require_variables()


def test_a_name_has_no_reference(tmp_path: Path) -> None:
    text = TOPIC.replace("      sasl.jaas.config:", "      '${env:WP_PASSWORD}':")
    problems = problems_of(tmp_path, text)
    assert any("a name has no references" in problem for problem in problems)
    assert CANARY not in "".join(problems)


def test_settings_hold_references_and_spark_gets_the_values(tmp_path: Path) -> None:
    text = (
        f"{SETTINGS}  spark.master: local[1]\n  {SPARK_KEY}: ${{env:WP_PASSWORD}}\n"
        "small_batches:\n  spark.sql.x: ${env:WP_PASSWORD}\npackages: ['${env:WP_PASSWORD}']\n"
    )
    settings = settings_of(tmp_path, text)
    assert settings.landing == "/landed-here/in"
    for made in (settings, copy.deepcopy(settings), settings.model_copy()):
        assert CANARY not in repr(made)
        assert CANARY not in made.model_dump_json()
        assert made.spark_conf()[SPARK_KEY] == CANARY
        assert made.spark_conf()["spark.jars.packages"].endswith(f",{CANARY}")
        assert made.conf_for(1) == {"spark.sql.x": CANARY}
        assert made.private_keys == {SPARK_KEY}


@pytest.mark.parametrize(
    ("old", "new", "field", "line"),
    [
        ("warehouse: w", "warehouse: ${env:WP_GONE}", "warehouse", 1),
        ("WP_LANDING", "WP_GONE", "landing", 3),
    ],
)
def test_a_location_of_the_settings_needs_its_variable(
    tmp_path: Path, old: str, new: str, field: str, line: int
) -> None:
    text = f"{SETTINGS}  spark.master: local[1]\n".replace(old, new)
    with pytest.raises(SettingsError) as missing:
        settings_of(tmp_path, text)
    where = f"{tmp_path}/settings.yaml:{line}: {field}: refers to the environment variable WP_GONE"
    assert str(missing.value).startswith(where)


def test_a_missing_variable_of_spark_is_named_at_its_use(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, f"{SETTINGS}  {SPARK_KEY}: ${{env:WP_GONE}}\n")
    with pytest.raises(ConfigError, match=f"settings.yaml:5: spark.{SPARK_KEY}: .* WP_GONE, which"):
        settings.spark_conf()


@pytest.mark.parametrize(
    "key",
    [
        "spark.driver.extraJavaOptions",
        "spark.executor.defaultJavaOptions",
        "spark.app.name",
        "spark.databricks.delta.properties.defaults.x",
    ],
)
def test_what_spark_shows_has_no_reference(tmp_path: Path, key: str) -> None:
    with pytest.raises(SettingsError) as refused:
        settings_of(tmp_path, f"{SETTINGS}  {key}: ${{env:WP_PASSWORD}}\n")
    assert f"settings.yaml:5: spark.{key}: refers to the environment, but Spark" in str(
        refused.value
    )
    assert CANARY not in str(refused.value)


def test_a_timeout_that_is_no_number_is_not_shown() -> None:
    topic = KafkaTopic("a:1", "b", options={"default.api.timeout.ms": CANARY})
    with pytest.raises(ValueError, match="must be a whole number of milliseconds") as refused:
        topic.client  # noqa: B018  the property raises
    assert CANARY not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_location_stays_in_messages(tmp_path: Path) -> None:
    text = changed("path: data/flights  ", "path: ${env:WP_LANDING}/2013/flights  ")
    path = load_text(tmp_path, text).source.required_path
    assert path == "/landed-here/2013/flights"
    assert without_values(f"{path}: there is no such folder") == f"{path}: there is no such folder"


def test_errors_of_other_programs_are_shown_without_values(tmp_path: Path) -> None:
    """Kafka's client names a value that it refuses."""
    topic_of(load_pipeline(written(tmp_path)).source).client  # noqa: B018  now the value is known
    assert (
        without_values(f"Invalid value {CANARY} for x") == "Invalid value ${env:WP_PASSWORD} for x"
    )


def written(folder: Path) -> Path:
    file = folder / "flights.yaml"
    file.write_text(TOPIC)
    return file
