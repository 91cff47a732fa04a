"""No error shows a value that may be a password, whatever its type and whatever else is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pipeline_texts import FLIGHTS, problems_of
from windows_pipeline.settings import SETTINGS_VARIABLE, SettingsError, load_settings

SECRET = "hunter2x"  # noqa: S105  the value that no error may show
TOPIC = re.sub(r"  (path|arrival): .*\n", "", FLIGHTS).replace(
    "format: jsonl", "format: kafka\n  kafka:\n    servers: a:1\n    topic: b\n    {options}"
)
SETTINGS = "warehouse: w\npipelines: p\nlanding: .\n"
VALUES = [
    "[hunter2x]",
    "{hunter2x: 1}",
    "{a: hunter2x}",
    "{hunter2x: 1, hunter2x: 2}",
    "{1: hunter2x}",
    "{[hunter2x]: 1}",
    "!!bool hunter2x",
    "!!int hunter2x",
    "!!binary hunter2x",
    "!!timestamp hunter2x",
    "!hunter2x",
    "!hunter2x a",
    "*hunter2x",
    "&hunter2x",
    "@hunter2x",
    "%hunter2x",
    "`hunter2x",
    "'hunter2x",
    '"hunter2x',
    '"hunter2x\\q"',
    "'hunter2x' x",
    "hunter2x: a",
    "[hunter2x",
    "| hunter2x",
    "- hunter2x",
    "hunter2x\n\tx",
    "\x00hunter2x",
]
WRONG_TYPES = ["123456789", "1.5", "true", "2013-01-01", "", "[a]", "{a: b}", "!!bool abc", "[]"]


def settings_problem(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    (folder / "settings.yaml").write_text(text)
    monkeypatch.delenv(SETTINGS_VARIABLE, raising=False)
    with pytest.raises(SettingsError) as refused:
        load_settings(folder)
    assert str(refused.value).startswith(f"{folder / 'settings.yaml'}:")
    return str(refused.value)


@pytest.mark.parametrize("value", VALUES)
def test_a_secret_of_a_pipeline_is_not_shown(tmp_path: Path, value: str) -> None:
    text = TOPIC.replace("{options}", f"options:\n      sasl.password: {value}")
    problems = problems_of(tmp_path, text)
    assert all(problem.startswith(f"{tmp_path / 'flights.yaml'}:") for problem in problems)
    assert SECRET not in "\n".join(problems)


@pytest.mark.parametrize("value", VALUES)
def test_a_secret_of_a_topic_that_is_written_is_not_shown(tmp_path: Path, value: str) -> None:
    options = f"options:\n        sasl.jaas.config: {value}"
    topic = f"topic:\n      servers: a:1\n      name: b\n      {options}"
    problems = problems_of(tmp_path, f"{FLIGHTS}notify:\n  people:\n    {topic}")
    assert problems
    assert SECRET not in "\n".join(problems)


@pytest.mark.parametrize(
    "options",
    [
        "options: hunter2x",
        "options: {sasl.password=hunter2x}",
        "options: {sasl.password hunter2x: }",
        "options: {sasl.password=hunter2x: a, sasl.password=hunter2x: b}",
        "options: [sasl.password, hunter2x]",
        "options: [[hunter2x]]",
        "options:\n      - sasl.password: hunter2x",
        "options: {a: [hunter2x], [hunter2x]: 3}",
    ],
)
def test_options_of_another_shape_are_not_shown(tmp_path: Path, options: str) -> None:
    problems = problems_of(tmp_path, TOPIC.replace("{options}", options))
    assert SECRET not in "\n".join(problems)
    assert any("source.kafka.options" in problem for problem in problems)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    servers: a:1\n", "    - servers: a:1\n"),
        ("  kafka:\n", "  kafka: [{options: {sasl.password: hunter2x}}]\n  other:\n"),
    ],
)
def test_mistakes_around_options_do_not_show_them(tmp_path: Path, old: str, new: str) -> None:
    text = TOPIC.replace("{options}", "options: {sasl.password: hunter2x}").replace(old, new)
    assert SECRET not in "\n".join(problems_of(tmp_path, text))
    listed = "name: x\nsource: [{kafka: {options: {sasl.password: hunter2x}}}]\n"
    assert SECRET not in "\n".join(problems_of(tmp_path, listed))


@pytest.mark.parametrize("value", [value for value in WRONG_TYPES if "!" not in value])
def test_an_error_says_which_type_an_option_must_have(tmp_path: Path, value: str) -> None:
    text = TOPIC.replace("{options}", f"options:\n      sasl.password: {value}")
    (problem,) = problems_of(tmp_path, text)
    assert problem.endswith(
        "source.kafka.options.sasl.password: must be text in quotes; the value is not shown"
    )


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("root", ["spark", "small_batches", "storage_options"])
def test_a_secret_of_the_settings_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, value: str
) -> None:
    text = f"{SETTINGS}{root}:\n  spark.hadoop.fs.s3a.secret.key: {value}\n"
    assert SECRET not in settings_problem(tmp_path, monkeypatch, text)


@pytest.mark.parametrize("value", [value for value in WRONG_TYPES if "!" not in value])
def test_an_error_says_which_type_a_setting_must_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    said = settings_problem(tmp_path, monkeypatch, f"{SETTINGS}spark:\n  spark.key: {value}\n")
    if value:
        assert said == (
            f"{tmp_path}/settings.yaml:5: spark.spark.key: must be text in quotes; "
            "the value is not shown"
        )
    else:
        assert said.endswith("spark.spark.key: has no value; it must be text in quotes")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("spark: [hunter2x]", ":4: spark: must be 'name: value' lines, indented under it; the"),
        ("spark: hunter2x", ":4: spark: must be 'name: value' lines"),
        (
            "spark: {}\nsprak: hunter2x",
            ":5: sprak: 'sprak' is not a field here; did you mean 'spark'",
        ),
        ("spark: {}\npackages: hunter2x", ":5: packages: must be a list of texts in quotes"),
        ("spark: {}\npackages: [1]", ":5: packages.0: must be text in quotes"),
        ("spark: {}\narrival_ranges: 0", ":5: arrival_ranges: must be a whole number above zero"),
        ("spark: {}\nkeep_plans: hunter2x", ":5: keep_plans: must be true or false; the value is"),
        ("spark: {}\nui_url: ftp://hunter2x", ":5: ui_url: is not an address; write the one that"),
        ("spark: {}\nui_url: https://hunter2x@host", ":5: ui_url: is not an address"),
        ("spark: {}\nlanding: x", "'landing' occurs twice, on line 3 and on line 5"),
        ("profile: hunter2x", ":4: profile: must be local; the value is not shown"),
        ("profile: [local]", ":4: profile: must be local; the value is not shown"),
        (
            "profile: local\nspark: {spark.remote: hunter2x}",
            "a server with options of its own; rem",
        ),
    ],
)
def test_other_mistakes_of_the_settings_have_their_line_and_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    said = settings_problem(tmp_path, monkeypatch, SETTINGS + text)
    assert words in said
    assert SECRET not in said
