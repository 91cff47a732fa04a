"""The `process` field of a pipeline's windows: a user's function of each firing (rule E3)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.pipeline_texts import FLIGHTS, line_of, table_definition
from windows_pipeline.config import (
    ConfigError,
    Pipeline,
    definition_changes,
    load_pipeline,
)
from windows_pipeline.engine.firings.process import FunctionKernel
from windows_pipeline.incremental.processed import FiringFunction
from windows_pipeline.storage.catalog import specs_of
from windows_pipeline.windows.firing.window_function import WindowFunction

CODE = '''"""Functions of a project."""


def warn(key, window, content, context):
    yield key, content["record_count"]


limit = 3
'''
TUMBLING = re.sub(r"    emit_empty: true.*\n", "", FLIGHTS).replace(
    "kind: sliding\n    time_difference: 60 minutes", "kind: tumbling\n    size: 1 hour"
)
FUNCTION = "function: 'my_module:warn'"
PROCESS = f"{{{FUNCTION}, columns: {{airport: string, n: bigint}}}}"


def text_of(process: str, trigger: str = "{}") -> str:
    fields = f"    trigger: {trigger}\n" if trigger else ""
    new = f"{fields}    process: {process}\n    aggregates:\n"
    return TUMBLING.replace("    aggregates:\n", new)


def loaded(folder: Path, process: str, code: str = CODE, trigger: str = "{}") -> Pipeline:
    file, module = folder / "flights.yaml", folder / "my_module.py"
    file.write_text(text_of(process, trigger))
    module.write_text(code)
    return load_pipeline(file, [module])


def test_its_rows_are_a_table_with_its_columns(tmp_path: Path) -> None:
    """Rule E3: named by window, firing and number."""
    columns = "{level: string, seen: 'array<decimal(5, 1)>'}"
    pipeline = loaded(tmp_path, f"{{{FUNCTION}, columns: {columns}, records: [dep_delay]}}")
    names = [table.name for table in specs_of(pipeline, "warehouse").written]
    assert names[-3:] == [
        f"flights/hourly/{name}" for name in ("firings", "early_warnings", "processed")
    ]
    processed = specs_of(pipeline, "warehouse").written[-1]
    assert [(column.name, column.type) for column in processed.columns] == [
        ("arrival_unit", "date"),
        ("key", "string"),
        ("window_start", "timestamp"),
        ("window_end", "timestamp"),
        ("firing_id", "bigint"),
        ("reason", "string"),
        ("row_number", "bigint"),
        ("level", "string"),
        ("seen", "array<decimal(5,1)>"),
    ]


def test_without_a_function_there_are_no_rows_of_one(tmp_path: Path) -> None:
    """Rule E3."""
    (tmp_path / "flights.yaml").write_text(TUMBLING)
    pipeline = load_pipeline(tmp_path / "flights.yaml")
    firings: Any = None
    with pytest.raises(ValueError, match="must have a function, and have none; declare process"):
        FiringFunction(pipeline.windows["hourly"], pipeline.source).rows_of(firings)


def test_the_table_follows_the_text_of_the_module(tmp_path: Path) -> None:
    """Rule H1: and the order of its columns, and no other table does."""
    tables = ("final_windows", "alerts", "firings", "early_warnings")
    pipeline = loaded(tmp_path, PROCESS)
    plain = loaded(tmp_path, PROCESS, CODE, "{}").model_copy()
    before = table_definition(pipeline, "hourly", "processed")
    assert before == table_definition(plain, "hourly", "processed")
    assert before["windows.hourly.process.columns"] == "airport string, n bigint"
    edited = loaded(tmp_path, PROCESS, CODE.replace('["record_count"]', '["record_count"] + 1'))
    (change,) = definition_changes(before, table_definition(edited, "hourly", "processed"))
    assert change.startswith("windows.hourly.modules.my_module: was 'SHA-256 ")
    turned = PROCESS.replace("airport: string, n: bigint", "n: bigint, airport: string")
    other = loaded(tmp_path, turned)
    (change,) = definition_changes(before, table_definition(other, "hourly", "processed"))
    assert change.startswith("windows.hourly.process.columns: was 'airport string, n bigint', is")
    without = tmp_path / "without.yaml"
    text = text_of(PROCESS)
    without.write_text(text.replace(f"    process: {PROCESS}\n", ""))
    for table in tables:
        fields = table_definition(load_pipeline(without), "hourly", table)
        assert table_definition(pipeline, "hourly", table) == fields
        assert table_definition(edited, "hourly", table) == fields


@pytest.mark.parametrize(
    ("process", "field", "words"),
    [
        (
            "my_module:warn",
            "",
            (
                "'my_module:warn' does not say which columns the function's rows have; write "
                "{function: my_module:warn, columns: {name: type}}"
            ),
        ),
        ("", "", "is empty; write {function: my_module:warn, columns: {name: type}}, or leave it"),
        (
            "{columns: {n: bigint}}",
            ".function",
            "is missing; write 'function: my_module:warn' in windows.hourly.proc",
        ),
        (f"{{{FUNCTION}}}", ".columns", "is missing; write 'columns:' with 'name: type' lines"),
        (f"{{{FUNCTION}, columns: {{}}}}", ".columns", "names no columns; write a line 'name: ty"),
        (
            f"{{{FUNCTION}, columns: {{n: int}}}}",
            ".columns.n",
            (
                "'int' is not a type of a result; use string, bigint, double, boolean, date, "
                "timestamp, decimal(p,s) of at most 38 digits, or array<...> of one of these"
            ),
        ),
        (f"{{{FUNCTION}, columns: {{n: }}}}", ".columns.n", "has no value; write 'n: string'"),
        (
            f"{{{FUNCTION}, columns: {{N: string}}}}",
            ".columns.N",
            "'N' is not a name; use a-z, 0-9 and _, beginning with a letter",
        ),
        (
            f"{{{FUNCTION}, columns: {{reason: string}}}}",
            ".columns.reason",
            (
                "'reason' is the name of a column that every row of processed has (arrival_unit, "
                "key, window_start, window_end, firing_id, reason, row_number); rename it"
            ),
        ),
        (
            "{function: 'my_module:wran', columns: {n: bigint}}",
            ".function",
            "'my_module:wran': there is no 'wran' in {module}; did you mean 'warn'?",
        ),
        (
            "{function: 'my_module:limit', columns: {n: bigint}}",
            ".function",
            "'limit' is no function in {module}; use one of warn",
        ),
        (
            f"{{{FUNCTION}, columns: {{n: bigint}}, records: [dep_dely]}}",
            ".records.0",
            "'dep_dely' is not a value column of the source; did you mean 'dep_delay'?",
        ),
        (
            f"{{{FUNCTION}, columns: {{n: bigint}}, records: [dest, dest]}}",
            ".records.1",
            "'dest' is named twice; name it once",
        ),
        (
            f"{{{FUNCTION}, columns: {{n: bigint}}, records: []}}",
            ".records",
            "names no columns; name those that the function needs, or leave records out",
        ),
        (
            f"{{{FUNCTION}, columns: {{n: bigint}}, record: [dest]}}",
            ".record",
            "'record' is not a field here; did you mean 'records'?",
        ),
    ],
)
def test_a_mistake_has_file_line_value_and_fix(
    tmp_path: Path, process: str, field: str, words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, process)
    (problem,) = refused.value.problems
    file = tmp_path / "flights.yaml"
    line = line_of(file.read_text(), "process: ")
    assert problem.startswith(f"{file}:{line}: windows.hourly.process{field}: "), problem
    assert words.replace("{module}", str(tmp_path / "my_module.py")) in problem


@pytest.mark.parametrize("kind", ["tumbling", "forward"])
def test_it_needs_firings(tmp_path: Path, kind: str) -> None:
    """Rule E3: a function is called once a firing."""
    text = text_of(PROCESS, "").replace("kind: tumbling", f"kind: {kind}")
    file, module = tmp_path / "flights.yaml", tmp_path / "my_module.py"
    file.write_text(text)
    module.write_text(CODE)
    with pytest.raises(ConfigError) as refused:
        load_pipeline(file, [module])
    (problem,) = refused.value.problems
    assert problem == (
        f"{file}:{line_of(text, 'process: ')}: windows.hourly.process.function: 'my_module:warn' "
        "is called at each firing, and windows without a trigger have none; write 'trigger: "
        "{final: true}' beside it, for a firing of each final result, or 'trigger: {}', for "
        "firings on time and late"
    )


def firings(keys: list[str | None]) -> pa.RecordBatch:
    count = len(keys)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array(keys, pa.string()),
            "firing_id": list(range(count)),
            "reason": ["EARLY"] * count,
            "cause": ["RECORD"] * count,
            "_stream_time_ms": [5] * count,
            "is_final": [False] * count,
            "_window_start_ms": [0] * count,
            "_window_end_ms": [10] * count,
            "record_count": [len(key or "") for key in keys],
        }
    )


def kernel_of(process: Any, schema: str) -> FunctionKernel:
    function = WindowFunction(process, schema)
    kept, content = ("key", "firing_id"), {"record_count": "record_count"}
    return FunctionKernel(
        function, ["key"], content, kept=kept, name="my_module:warn", file=__file__
    )


def repeated(key: str | None, window: object, content: dict[str, int], context: object) -> Any:
    del window, context
    if key == "bad":
        raise KeyError(key)
    return [(f"{key}{number}",) for number in range(content["record_count"])]


def test_each_row_has_its_firing_and_its_number() -> None:
    """Rule E3: a firing gives none, one or many rows."""
    (made,) = kernel_of(repeated, "word string")(iter([firings(["xx", "", None, "y", "zzz"])]))
    assert made.schema.names == ["key", "firing_id", "row_number", "word"]
    assert [tuple(row.values()) for row in made.to_pylist()] == [
        ("xx", 0, 0, "xx0"),
        ("xx", 0, 1, "xx1"),
        ("y", 3, 0, "y0"),
        ("zzz", 4, 0, "zzz0"),
        ("zzz", 4, 1, "zzz1"),
        ("zzz", 4, 2, "zzz2"),
    ]
    (made,) = kernel_of(repeated, "word string")(iter([firings([""])]))
    assert made.num_rows == 0


def test_tuples_and_dicts_may_be_mixed() -> None:
    """Rule E3: within a firing, too."""

    def both(*_: object) -> Any:
        return [("a", 1), {"n": 2, "word": "b"}, ["c", 3]]

    (made,) = kernel_of(both, "word string, n bigint")(iter([firings(["x"])]))
    assert [tuple(row.values())[2:] for row in made.to_pylist()] == [
        (0, "a", 1),
        (1, "b", 2),
        (2, "c", 3),
    ]


def test_an_error_names_key_window_firing_and_line() -> None:
    """Rule E3."""
    line = repeated.__code__.co_firstlineno + 3
    with pytest.raises(RuntimeError) as raised:
        list(kernel_of(repeated, "word string")(iter([firings(["a", "bad"])])))
    assert str(raised.value) == (
        "my_module:warn failed in firing 1 of the window of key 'bad' from 1970-01-01 00:00:00 "
        "to 1970-01-01 00:00:00.010: "
        f"KeyError('bad') ({__file__}, line {line}, in repeated)"
    )
    with pytest.raises(TypeError) as raised_type:
        list(kernel_of(repeated, "word date")(iter([firings(["a"])])))
    assert str(raised_type.value).startswith(
        "my_module:warn returned ('a0',), which is no row of 'word date', in firing 0 of the "
        "window of key 'a' from 1970-01-01 00:00:00 to 1970-01-01 00:00:00.010: "
    )
