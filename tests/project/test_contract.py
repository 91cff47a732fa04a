"""Each rule of the contract is cited by a test that `make test` runs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_RULE = re.compile(r"\b([A-H])([1-9])(?: to \1([1-9])|-\1?([1-9]))?\b")


def rules_in(text: str) -> set[str]:
    """The rules that a text names, of spans each."""
    return {
        f"{letter}{number}"
        for letter, first, *last in _RULE.findall(text)
        for number in range(int(first), int(next(filter(None, last), first)) + 1)
    }


def is_long(test: ast.FunctionDef) -> bool:
    return any("mark.long" in ast.unparse(decorator) for decorator in test.decorator_list)


def quick_citations(file: Path) -> set[str]:
    """What a file's quick tests cite; and the file itself, where it has no long ones."""
    module = ast.parse(file.read_text())
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    tests = [one for one in functions if one.name.startswith("test_")]
    quick: list[ast.FunctionDef | ast.Module] = [one for one in tests if not is_long(one)]
    cited = [*quick, module] if len(quick) == len(tests) else quick
    return rules_in(" ".join(ast.get_docstring(one) or "" for one in cited))


def test_spans_of_rules_are_read() -> None:
    assert rules_in("Rules A1 to A3, B2-B4, C1-2 and E5: B alone is none") == {
        *("A1", "A2", "A3", "B2", "B3", "B4", "C1", "C2", "E5")
    }


def test_each_rule_is_cited_by_a_test_that_is_not_long() -> None:
    contract = (ROOT / "docs" / "contract.md").read_text()
    rules = set(re.findall(r"^- \*\*([A-H]\d)\*\*", contract, re.MULTILINE))
    assert len(rules) > 30
    cited = set().union(*map(quick_citations, (ROOT / "tests").glob("*/test_*.py")))
    assert rules - cited == set()
