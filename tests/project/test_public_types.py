"""The library's names have the types that its pages say, in a user's editor."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from pathlib import Path

import pytest

import windows_pipeline as wp

PROGRAM = Path(__file__).with_name("user_program.py")


def test_a_users_program_is_right_in_strict_mode(tmp_path: Path) -> None:
    """No error, no unknown type, and each `assert_type` holds; one wrong line is found."""
    wrong = tmp_path / "wrong.py"
    lines = ["import windows_pipeline as wp", "x: int = wp.count()", ""]
    wrong.write_text("\n".join(lines))
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "include": [str(PROGRAM), str(wrong)],
        "extraPaths": [str(PROGRAM.parents[2])],
    }
    config = tmp_path / "pyrightconfig.json"
    config.write_text(json.dumps(settings))
    checker = [sys.executable, "-m", "basedpyright", "--project", str(config), "--outputjson"]
    checker += ["--pythonpath", sys.executable]
    checked = subprocess.run(checker, capture_output=True, text=True, check=False)
    found = json.loads(checked.stdout)
    assert found["summary"]["filesAnalyzed"] == 2, checked.stderr
    reports = [(Path(each["file"]).name, each["message"]) for each in found["generalDiagnostics"]]
    assert [message for name, message in reports if name == PROGRAM.name] == []
    ((_, message),) = reports
    assert '"Aggregation" is not assignable to declared type "int"' in message


def test_no_name_hides_one_of_pythons() -> None:
    """Nor does a star import of it or of FLIP-11's names."""
    assert not {*wp.__all__, *wp.flip11.__all__} & set(dir(builtins))


def test_every_name_is_there() -> None:
    for module in (wp, wp.flip11):
        for name in module.__all__:
            assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'aggregate'"):
        _ = wp.aggregate  # type: ignore[attr-defined]


def test_the_package_lists_its_public_names_alone() -> None:
    """Those too that it imports when they are asked for, and none of its packages."""
    assert dir(wp) == sorted(wp.__all__)
    assert {"sql", "windowed", "windows"} <= set(dir(wp))


def test_specifications_need_no_spark() -> None:
    """Nor what runs on it; what takes a DataFrame imports both when it is asked for."""
    code = (
        "import sys, windows_pipeline as wp;"
        "wp.TimeWindows.of_size_with_no_grace('1 hour'); wp.flip11.Tumble.over('1 hour');"
        "assert not {'numba', 'numpy', 'pandas', 'pyarrow', 'pyspark'} & set(sys.modules);"
        "wp.windows; assert 'pyspark' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=PROGRAM.parents[2])


def test_the_function_leaves_the_package_of_its_name_to_imports() -> None:
    """`windows` is both: the function of the library, and where specifications live."""
    from windows_pipeline.windows import TimeWindows

    assert TimeWindows is wp.TimeWindows
    assert callable(wp.windows)
