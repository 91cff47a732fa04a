"""Private names of dependencies stand in windows_pipeline/compat/, and nowhere else."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = (
    *("windows_pipeline", "assets", "resources", "demo", "benchmarks", "tests", "tools"),
    "definitions.py",
)
EXEMPT = {
    "windows_pipeline/compat": "what reaches into dependencies, one module a dependency",
    "tests/compat": "contract tests of these modules",
    "tests/support/spark.py": "one JVM for all processes of a run: PySpark starts one for each",
}
"""Folders and files that may use private names, with the reason."""
LIBRARIES = {
    *("dagster", "dagster_pyspark", "delta", "deltalake", "great_expectations", "kafka"),
    *("numba", "numpy", "pandas", "py4j", "pyarrow", "pyspark"),
}
PRIVATE_MODULES = {
    *("great_expectations.data_context.types", "great_expectations.expectations.core"),
    *("numba.core", "numba.np", "pyspark.daemon", "pyspark.java_gateway", "pyspark.serializers"),
    *("pyspark.sql.classic", "pyspark.sql.pandas", "pyspark.worker"),
}
"""Modules that a library documents nowhere, though their names begin with no underscore."""
PRIVATE_ATTRIBUTES = {
    *("_cache", "_create", "_gateway", "_jc", "_jcols", "_jconf", "_jdf", "_jrdd", "_jreader"),
    *("_jsc", "_jseq", "_jsparkSession", "_jsq", "_jssql", "_jvm", "_jwrite", "_plan", "_sc"),
    *("_session", "_unique_ids"),
}
"""Private attributes of PySpark and Numba, refused on any object: the search sees no types."""


def files() -> Iterator[Path]:
    """Every Python file but those that may use private names."""
    for name in CODE:
        path = ROOT / name
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            relative = file.relative_to(ROOT)
            if not any(relative.is_relative_to(exempt) for exempt in EXEMPT):
                yield file


def private_names(text: str) -> Iterator[tuple[int, str]]:
    """The lines, with what is private there: modules, names out of modules, attributes."""
    tree = ast.parse(text)
    libraries = {
        (one.asname or one.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for one in node.names
        if one.name.split(".")[0] in LIBRARIES
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, one.name) for one in node.names if is_private(one.name))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = (f"{node.module}.{one.name}" for one in node.names)
            yield from ((node.lineno, name) for name in names if is_private(name))
        elif isinstance(node, ast.Attribute):
            of_library = isinstance(root := root_of(node), ast.Name) and root.id in libraries
            is_hidden = node.attr.startswith("_") and not node.attr.startswith("__")
            if (node.attr in PRIVATE_ATTRIBUTES and not is_own(node)) or (of_library and is_hidden):
                yield node.lineno, node.attr
        elif isinstance(node, ast.Constant) and node.value in PRIVATE_ATTRIBUTES:
            yield node.lineno, str(node.value)  # as getattr takes it


def is_private(module: str) -> bool:
    """Whether a library's module, or a name in it, is private by its name or by the list."""
    parts = module.split(".")
    if parts[0] not in LIBRARIES:
        return False
    prefixes = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
    return bool(prefixes & PRIVATE_MODULES) or any(
        part.startswith("_") and not part.startswith("__") for part in parts
    )


def root_of(node: ast.expr) -> ast.expr:
    """What an expression of attributes begins with."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def is_own(node: ast.Attribute) -> bool:
    """Whether the attribute is read from `self` or `cls`."""
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def test_private_names_stand_in_compat_only() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file in files()
        for line, name in private_names(file.read_text())
    ]
    assert found == [], "move it to windows_pipeline/compat/, or use a public name"


def test_every_folder_and_file_of_code_is_searched() -> None:
    modules = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.splitlines()
    assert {Path(module).parts[0] for module in modules} == set(CODE)


def test_what_may_use_private_names_is_there_and_does() -> None:
    for name in EXEMPT:
        path = ROOT / name
        texts = [file.read_text() for file in ([path] if path.is_file() else path.rglob("*.py"))]
        assert any(found for text in texts for found in private_names(text)), name


@pytest.mark.parametrize(
    "line",
    [
        "spark._jvm.java",
        "x = context._jsc.sc().conf()",
        "self._spark._jsparkSession",
        "getattr(spark, '_jvm')",
        "from dagster._core.storage import tags",
        "from great_expectations.data_context.types.base import ProgressBarsConfig",
        "import dagster._core.storage.tags",
        "from numba.core.types import unliteral",
        "from pyspark.java_gateway import launch_gateway",
        "from pyspark.sql.pandas.types import to_arrow_schema",
        "import dagster as dg\ndg._core",
        "import pyarrow as pa\npa.lib._private()",
        "from deltalake import _internal",
    ],
)
def test_private_names_are_seen(line: str) -> None:
    assert [*private_names(line)]


@pytest.mark.parametrize(
    "line",
    [
        "self._session = spark.newSession()",
        "row._replace(a=1)",
        "import dagster as dg\ndg.Definitions.__doc__",
        "from great_expectations.expectations import UnexpectedRowsExpectation",
        "from pyspark.sql import SparkSession",
        "from windows_pipeline._own import name",
        "import numba\nnumba.njit()",
    ],
)
def test_others_are_not(line: str) -> None:
    assert [*private_names(line)] == []
