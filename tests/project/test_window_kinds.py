"""A window kind answers for itself: hardly any other module asks which kind windows are."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import get_args

import pytest

from windows_pipeline.config.windows.kinds import KINDS
from windows_pipeline.windows import (
    CountWindows,
    FiringWindows,
    PipelineWindows,
    RowWindow,
    SessionWindows,
    SeveralRows,
    TimeWindows,
    WindowSpec,
)
from windows_pipeline.windows import __all__ as names_of_specs

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "windows_pipeline"
MODELS = {each.__name__ for each in KINDS.values()}
SPECS = {name for name in names_of_specs if re.search("(Windows|Rows|Window|Spec)$", name)}
CLASSES = {*SPECS, *MODELS, "Graced", "FixedLength", "RowKind"} - {"TimeWindow", "ResultRows"}
FLAG = re.compile(f"(is|are|has|have)_(a_)?({'|'.join(KINDS)})(s|_windows)?")
QUESTIONS = {
    "dataframe/builder.py": (3, "a user's argument has verbs of its own by kind"),
    "dataframe/rows.py": (1, "a user's argument"),
    "dataframe/windows.py": (1, "slices are of TimeWindows alone"),
    "engine/spark_frames.py": (1, "Spark has frames of its own for SlideRows"),
    "windows/group_window.py": (1, "a verb of count windows alone"),
}
"""How often a module asks which kind windows are, and why."""
TABLES = {
    "checks/recounts/rows.py": {*get_args(RowWindow), SeveralRows, CountWindows},
    "checks/window_rules.py": {*get_args(PipelineWindows)},
    "dataframe/groups.py": {TimeWindows, SessionWindows, CountWindows},
    "incremental/windows.py": {*get_args(PipelineWindows)},
    "kernels/firings/find.py": {*get_args(FiringWindows)},
    "kernels/windows/find.py": {*get_args(WindowSpec)},
    "kernels/windows/row_frames.py": {*get_args(RowWindow)},
    "query/records/row_records.py": {*get_args(RowWindow)},
    "query/records/window_records.py": {*get_args(PipelineWindows)},
}
"""The tables that find a layer's own code for a kind, and the kinds that each must have."""


def names_in(node: ast.AST, own: Collection[str] = ()) -> set[str]:
    """The classes that an expression names, other than a module's own."""
    found = (getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node))
    return CLASSES.intersection(found).difference(own)


def texts_in(node: ast.AST) -> set[object]:
    return {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}


def is_kind(node: ast.AST) -> bool:
    return getattr(node, "attr", getattr(node, "id", None)) == "kind"


def asks(node: ast.AST, own: Collection[str] = ()) -> bool:
    """Whether a node asks, in any form, which kind windows are; not of kinds of its own module."""
    match node:
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]):
            return bool(names_in(kinds, own))
        case ast.Compare(left=left, comparators=others):
            by_name = any(is_kind(each) for each in (left, *others))
            return bool(names_in(node, own)) or (by_name and bool(texts_in(node) & KINDS.keys()))
        case ast.MatchClass(cls=kind):
            return bool(names_in(kind, own))
        case ast.Match(subject=subject, cases=cases):
            return is_kind(subject) and any(texts_in(case.pattern) & KINDS.keys() for case in cases)
        case ast.Attribute(attr=name) | ast.FunctionDef(name=name):
            return FLAG.fullmatch(name) is not None
    return False


def kinds_of(node: ast.AST) -> set[str]:
    """The kinds of windows that are keys of a dict; none of any other node."""
    match node:
        case ast.Dict(keys=keys):
            return {name for key in keys if key is not None for name in names_in(key)}
        case ast.Call(func=ast.Attribute(attr="fromkeys"), args=[kinds, *_]):
            return names_in(kinds)
    return set()


def modules() -> Iterator[tuple[str, ast.Module]]:
    """All modules."""
    for folder in (LIBRARY, ROOT / "assets", ROOT / "resources"):
        for path in sorted(folder.rglob("*.py")):
            yield str(path.relative_to(folder)), ast.parse(path.read_text())


def test_hardly_any_module_asks_for_the_kind_of_windows() -> None:
    found: Counter[str] = Counter()
    for name, tree in modules():
        nodes = list(ast.walk(tree))
        own = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
        found[name] = sum(asks(node, own) for node in nodes)
    assert +found == {name: number for name, (number, _) in QUESTIONS.items()}, (
        "let the kind's spec answer, or add a row to one of TABLES"
    )
    assert found.total() <= 12


def test_a_kind_is_looked_up_in_a_table_of_its_layer() -> None:
    found = [
        (name, kinds)
        for name, tree in modules()
        for kinds in map(kinds_of, ast.walk(tree))
        if kinds
    ]
    assert sorted(found) == [
        (name, {of.__name__ for of in kinds}) for name, kinds in TABLES.items()
    ]


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(spec, (SessionWindows, GracedRows))",
        "type(spec) is windows.TimeWindows",
        "type(spec) in (SlideRows, TumbleRows)",
        "definition.kind == 'session'",
        "kind in ('hopping', 'tumbling')",
        "spec.is_session",
        "match spec:\n    case SlidingWindows(emit_empty=True): ...",
        "match windows.kind:\n    case 'count': ...",
    ],
)
def test_every_form_of_the_question_is_found(text: str) -> None:
    assert sum(map(asks, ast.walk(ast.parse(text)))) == 1
    assert not any(asks(node, SPECS) for node in ast.walk(ast.parse("isinstance(a, SlideRows)")))
    assert not any(map(asks, ast.walk(ast.parse("column.kind == 'bigint' or spec.excludes_end"))))
