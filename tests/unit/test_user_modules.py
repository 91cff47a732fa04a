"""Pipelines name users' aggregates; settings.yaml says whose code runs (rules G1, G3)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import cloudpickle

from tests.support.pipeline_texts import FLIGHTS, changed, line_of, table_definition
from tests.support.windowed import noted, one_window
from windows_pipeline.aggregates import ProjectAggregate, UserModules, parse_aggregate
from windows_pipeline.config import (
    ConfigError,
    Pipeline,
    definition_changes,
    load_pipeline,
)
from windows_pipeline.settings import SettingsError, load_settings

CODE = '''"""Aggregates of a project."""
from dataclasses import dataclass

from windows_pipeline import UserAggregate


@dataclass
class Bounds:
    low: float
    high: float


def create() -> "Bounds | None":
    return None


def update(bounds, value):
    if value == 666:
        raise ValueError("the number of the beast")
    return merge(bounds, Bounds(value, value))


def merge(first, second):
    if first is None or second is None:
        return first or second
    return Bounds(min(first.low, second.low), max(first.high, second.high))


def result(bounds):
    return None if bounds is None else bounds.high - bounds.low


spread = UserAggregate(create, update, merge, result, "double")
nothing = UserAggregate(create, update, merge, result, "struct<low:double>", skip_nulls=False)
nulls = UserAggregate(create, update, merge, result, "double", skip_nulls=False)
'''
OLD = "total_distance: sum(distance)"


def project(folder: Path, aggregate: str, code: str = CODE) -> tuple[Path, Path]:
    """A pipeline's file and the file of its module."""
    module = folder / "my_module.py"
    module.write_text(code)
    file = folder / "flights.yaml"
    file.write_text(changed(OLD, f"total_distance: {aggregate}"))
    return file, module


def loaded(folder: Path, aggregate: str, code: str = CODE) -> Pipeline:
    file, module = project(folder, aggregate, code)
    return load_pipeline(file, [module])


def test_an_aggregate_of_the_project_has_its_type_and_its_name(tmp_path: Path) -> None:
    """Rule G1: with an expression and a condition, as others."""
    text = "my_module:spread(dep_delay * 2) where dest = 'LAX'"
    pipeline = loaded(tmp_path, text)
    windows = pipeline.windows["hourly"]
    assert windows.result_columns(pipeline.source)["total_distance"] == "double"
    aggregate = windows.aggregate_list[-1]
    assert str(aggregate) == text
    assert isinstance(aggregate.function, ProjectAggregate)
    assert aggregate.function.file == str(tmp_path / "my_module.py")
    bound = windows.bound_aggregates(pipeline.source)
    assert bound.of_users == {"total_distance"}
    assert "my_module" not in sys.modules
    copied = windows.model_copy(update={"grace": 0})
    assert copied.aggregate_list == windows.aggregate_list


@pytest.mark.parametrize(
    ("key", "struct", "text", "sql"),
    [
        (
            None,
            "struct(origin, distance)",
            "STRUCT(origin, distance)",
            (
                "CAST(NAMED_STRUCT('origin', `key`, 'distance', `distance`) AS "
                "struct<origin:string,distance:bigint>)"
            ),
        ),
        (
            "[dest, origin]",
            "struct( dest, distance*2 as twice )",
            "STRUCT(dest, distance * 2 AS twice)",
            "'dest', `key`.`dest`, 'twice', ",
        ),
        ("[]", "struct(origin, distance)", "STRUCT(origin, distance)", "'origin', `origin`, "),
    ],
)
def test_it_takes_a_struct_of_columns_and_of_the_key(
    tmp_path: Path, key: str | None, struct: str, text: str, sql: str
) -> None:
    """Rule G1: parts of the definition's key by their own names."""
    file, module = project(tmp_path, f"my_module:spread({struct})")
    if key is not None:
        written = file.read_text().replace(
            "    kind: sliding\n", f"    kind: sliding\n    key: {key}\n"
        )
        file.write_text(written)
    pipeline = load_pipeline(file, [module])
    windows = pipeline.windows["hourly"]
    assert str(windows.aggregate_list[-1]) == f"my_module:spread({text})"
    assert sql in windows.bound_aggregates(pipeline.source).added["_value_total_distance"]
    assert windows.result_columns(pipeline.source)["total_distance"] == "double"


def test_an_edited_module_is_a_changed_definition(tmp_path: Path) -> None:
    """Rule H1: rows of two versions of a function never stand in one table."""
    definitions = []
    for code in (CODE, CODE.replace("bounds.high - bounds.low", "bounds.high - bounds.low + 1")):
        pipeline = loaded(tmp_path, "my_module:spread(dep_delay)", code)
        definitions.append(table_definition(pipeline, "hourly", "final_windows"))
    (change,) = definition_changes(*definitions)
    assert change.startswith("windows.hourly.modules.my_module: was 'SHA-256 ")
    # A stream that runs on has its functions, whatever is written meanwhile.
    (tmp_path / "my_module.py").write_text("spread = 1\n")
    assert table_definition(pipeline, "hourly", "final_windows") == definitions[1]
    (tmp_path / "plain.yaml").write_text(FLIGHTS)
    plain = load_pipeline(tmp_path / "plain.yaml", [tmp_path / "my_module.py"])
    fields = table_definition(plain, "hourly", "final_windows")
    assert [field for field in fields if ".modules." in field] == []


def test_its_functions_reach_a_process_that_has_no_such_module(tmp_path: Path) -> None:
    """Spark's workers get the functions whole, wherever they run."""
    _, module = project(tmp_path, "my_module:spread(dep_delay)")
    aggregate = UserModules((module,)).aggregate("my_module:spread")
    pickled = tmp_path / "pickled"
    pickled.write_bytes(cloudpickle.dumps(aggregate))  # type: ignore[no-untyped-call]
    module.unlink()
    code = (
        "import pickle, sys\n"
        f"user = pickle.loads(open({str(pickled)!r}, 'rb').read())\n"
        "acc = user.create()\n"
        "for value in (3.0, 1.0, 7.5):\n"
        "    acc = user.update(acc, value)\n"
        "print(user.result(acc), 'my_module' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd="/"
    )
    assert done.stdout == "6.5 False\n"


def test_a_failure_names_the_window_the_file_and_the_line(tmp_path: Path) -> None:
    """Rule G3: innermost line of the user's file; other windows have their values."""
    _, module = project(tmp_path, "my_module:spread(dep_delay)")
    aggregate = UserModules((module,)).aggregate("my_module:spread")
    line = CODE[: CODE.index("raise ValueError")].count("\n") + 1
    values, failed = noted(one_window([3.0, 666.0]), aggregate, "double")
    (text,) = failed[0]
    assert (values, text.partition("\n")[0]) == ([None], "result")
    assert text.partition("\n")[2] == (
        "result: my_module:spread(value) failed in window 0: ValueError('the number of the beast')"
        f" ({module}, line {line}, in update)"
    )
    assert noted(one_window([3.0, None, 1.0]), aggregate, "double") == ([2.0], [[]])
    with pytest.raises(RuntimeError, match=rf"my_module\.py, line {line}, in update"):
        one_window([666.0]).aggregated(aggregate, "double")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("my_module:spraed(dep_delay)", "there is no 'spraed' in {module}; did you mean 'spread'?"),
        ("my_module:update(dep_delay)", "'update' is no UserAggregate in {module}; use one of spr"),
        ("other:spread(dep_delay)", "'other' is not one of the modules of settings.yaml (my_modu"),
        ("other:spread(dep_delay)", "write there: modules: [my_module, other]"),
        ("os:system(dest)", "'os' is a module of Python, and code comes from the project's files"),
        ("../my_module:spread(dep_delay)", "is not the name of code; write module:name, where mod"),
        ("my_module:spread", "names no column; write 'my_module:spread(column)'"),
        ("my_module:spread(dep_dely)", "not a column of the source; did you mean 'dep_delay'?"),
        (
            "my_module:spread(a, b)",
            "takes one column; write 'my_module:spread(struct(a, b))' for a value of them all",
        ),
        (
            "my_module:spread(origin)",
            "takes the key, which is not a value column; write my_module:",
        ),
        ("my_module:spread(struct(dep_dely, dest))", "there is no column 'dep_dely'; did you mean"),
        ("my_module:spread(struct())", "is a struct of nothing; name its columns, as in struct(a"),
        (
            "my_module:spread(struct(dest, dep_delay as dest))",
            "has two fields 'dest'; rename one, as in dep_delay as other",
        ),
        (
            "my_module:spread(struct(dest, departed_at))",
            "takes 'departed_at', the event_time; use value columns: ",
        ),
        ("my_module:spread(struct(dest, null as x))", "NULL is no value of a record; name a col"),
        (
            "my_module:spread(struct(dest as `d e`))",
            "names a field of the struct 'd e'; use letters, digits and _, as in dest as x",
        ),
        (
            "my_module:spread(struct(struct(dest), dep_delay))",
            "a struct is the whole value of an aggregate of your own",
        ),
        (
            "max(struct(dest, dep_delay))",
            "a struct is the whole value of an aggregate of your own",
        ),
        ("my_module:nothing(dest)", "returns struct<low:double> by its result_type ({module}), wh"),
        ("my_module:nulls(dest) where dest = 'x'", "takes nulls; set skip_nulls=True in {module}"),
    ],
)
def test_a_mistake_has_file_line_value_and_fix(tmp_path: Path, text: str, words: str) -> None:
    file, module = project(tmp_path, json.dumps(text))
    with pytest.raises(ConfigError) as refused:
        load_pipeline(file, [module])
    (problem,) = refused.value.problems
    line = line_of(file.read_text(), "total_distance: ")
    assert problem.startswith(f"{file}:{line}: windows.hourly.aggregates.total_distance: {text!r}")
    assert words.format(module=module) in problem


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("x = 1\ny = (", "{module}, line 2: is not Python: '(' was never closed; correct it"),
        ("x = 1\nx.y()", "{module}, line 2: AttributeError("),
        ("import nothing_of_this_name", "{module}, line 1: ModuleNotFoundError("),
        ("import nothing_of_this_name", "install the package that has it (pip install), or corr"),
        ("import helper", "{module}, line 1: imports 'helper', another file of the project; put"),
        ("def f():\n    from helper import x", "{module}, line 2: imports 'helper', another file"),
        ("spread = 1", "'spread' is no UserAggregate in {module}; write one, as in spread = Use"),
        ("", "there is no 'spread' in {module}; write one, as in spread = UserAggregate(create"),
    ],
)
def test_a_mistake_in_the_code_has_its_line(tmp_path: Path, code: str, words: str) -> None:
    (tmp_path / "helper.py").write_text("x = 1\n")
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, "my_module:spread(dep_delay)", code)
    assert words.format(module=tmp_path / "my_module.py") in str(refused.value)


def test_a_module_lies_in_the_projects_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text(CODE)
    folder = tmp_path / "project"
    folder.mkdir()
    link = folder / "my_module.py"
    link.symlink_to(outside)
    with pytest.raises(ValueError, match=r"leads to .*outside\.py, outside the project's folder"):
        UserModules((link,)).aggregate("my_module:spread")
    link.unlink()
    with pytest.raises(ValueError, match=r"there is no file .*my_module\.py; write it, or take"):
        UserModules((link,)).aggregate("my_module:spread")


def test_without_settings_no_code_runs() -> None:
    with pytest.raises(
        ValueError, match=r"'my_module' is not one of the modules of settings\.yaml;"
    ):
        parse_aggregate("x", "my_module:spread(a)")


def settings_with(folder: Path, modules: object) -> Path:
    fields = {"warehouse": "w", "pipelines": "p", "landing": ".", "spark": {}, "modules": modules}
    file = folder / "settings.yaml"
    file.write_text("\n".join(f"{name}: {json.dumps(value)}" for name, value in fields.items()))
    return file


def test_the_settings_name_modules_of_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WINDOWS_PIPELINE_SETTINGS", raising=False)
    settings_with(tmp_path, ["my_module", "other_2"])
    assert load_settings(tmp_path).modules == (tmp_path / "my_module.py", tmp_path / "other_2.py")


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        (["../evil"], "'../evil' is not the name of a module; write a file's name without .py"),
        (["/etc/evil"], "is not the name of a module"),
        (["my_module.py"], "is not the name of a module; write a file's name without .py"),
        (["os"], "'os' is a module of Python; rename your file"),
        (["numpy"], "'numpy' is the name of an installed package ("),
        ("my_module", "must be a list of names, such as [my_module]"),
        (None, "has no value; it must be a list of names, such as [my_module]"),
    ],
)
def test_another_name_in_the_settings_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modules: object, words: str
) -> None:
    monkeypatch.delenv("WINDOWS_PIPELINE_SETTINGS", raising=False)
    file = settings_with(tmp_path, modules)
    with pytest.raises(SettingsError) as refused:
        load_settings(tmp_path)
    assert str(refused.value).startswith(f"{file}:5: modules")
    assert words in str(refused.value)
