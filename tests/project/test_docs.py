"""What README and docs name exists: files, modules, tests, commands, targets, settings, links.

test_doc_blocks checks blocks of code.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer
from pydantic import BaseModel

from tests.support.doc_blocks import FENCE, name_of
from tests.support.doc_blocks import PAGES as EVERY_PAGE
from windows_pipeline.cli.main import app
from windows_pipeline.config import Pipeline
from windows_pipeline.config.strict import Strict
from windows_pipeline.settings import Settings
from windows_pipeline.storage.catalog import OF_SOURCE, OF_WINDOWS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# The changelog names what is gone.
PAGES = [page for page in EVERY_PAGE if page.name != "CHANGELOG.md"]
BASES = (ROOT, ROOT / "windows_pipeline", ROOT / "tests")
PACKAGES = ("windows_pipeline", "benchmarks", "demo", "assets", "resources", "tests")
MADE_BY_RUNS = (".venv", ".cache", ".dagster_home", "data", "warehouse", "docs", "dist")
"""Folders in which a page may name what is not in the repository; the test of links checks docs."""
SUFFIXES = (".py", ".md", ".yaml", ".toml", ".sh", ".lock", ".jsonl", ".xml")


def inline_code(text: str) -> list[str]:
    """What stands between backticks, outside of blocks of code."""
    found = re.findall(r"`([^`]+)`", FENCE.sub("", text))
    return [re.sub(r"\s+", " ", one) for one in found]


@cache
def files() -> frozenset[str]:
    """The paths of all files of the repository, and of their folders."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    paths = [Path(line) for line in listed.stdout.splitlines() if (ROOT / line).exists()]
    return frozenset(str(one) for path in paths for one in (path, *path.parents))


@cache
def tests_there() -> frozenset[str]:
    text = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    return frozenset(re.findall(r"^ *def (test_\w+)\(", text, re.MULTILINE))


def is_there(path: str) -> bool:
    """Whether a file or folder is, of the repository, the package or the tests."""
    plain = path.rstrip("/")
    if "/" not in plain and not path.endswith("/"):
        return any(one == plain or one.endswith(f"/{plain}") for one in files())
    return any(str((base / plain).relative_to(ROOT)) in files() for base in BASES)


def wrong_paths(text: str) -> list[str]:
    found = []
    # NAME stands for any name, as in the commands' help.
    names_made = ["NAME", *re.findall(r"windows-pipeline new (\w+)", text)]
    made = {f"pipelines/{name}.yaml" for name in names_made}
    for code in inline_code(text):
        path = code.split("::")[0]
        if not re.fullmatch(r"[\w.-]+(/[\w.-]+)*/?", path) or path.startswith(("--", "..")):
            continue
        if path.split("/")[0] in MADE_BY_RUNS or path in made:
            continue
        first = path.split("/")[0]
        below_known = "/" in path and any((base / first).is_dir() for base in BASES)
        is_path = below_known or path.endswith(("/", *SUFFIXES))
        if is_path and not is_there(path):
            found.append(path)
    return found


def wrong_tests(text: str) -> list[str]:
    named = [code.split("[")[0] for code in inline_code(text)]
    return [
        one
        for one in named
        if re.fullmatch(r"test_\w+", one)
        and one not in tests_there()
        and f"{one}.py" not in names()
    ]


@cache
def names() -> frozenset[str]:
    return frozenset(Path(path).name for path in files())


@cache
def texts_in_code() -> frozenset[str]:
    """Every string of the package that may be a key."""
    found = set()
    for path in (ROOT / "windows_pipeline").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return frozenset(found)


def defined_in(module: Path) -> set[str]:
    """The names that a module has."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name)
    return found


def is_module_or_name(dotted: str) -> bool:
    """Whether a dotted name is a module, a name in one, or a key that the package reads."""
    path = ROOT.joinpath(*dotted.split("."))
    if path.is_dir() or path.with_suffix(".py").exists():
        return True
    above = path.parent
    module = above / "__init__.py" if above.is_dir() else above.with_suffix(".py")
    if module.exists() and path.name in defined_in(module):
        return True
    return dotted in texts_in_code()


def wrong_modules(text: str) -> list[str]:
    named = [
        dotted
        for code in inline_code(text)
        for dotted in re.findall(rf"(?<![\w./-])(?:{'|'.join(PACKAGES)})(?:\.\w+)+", code)
        if not dotted.endswith(SUFFIXES)
    ]
    return [one for one in dict.fromkeys(named) if not is_module_or_name(one)]


def wrong_targets(text: str) -> list[str]:
    targets = re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    asked = [
        target
        for code in inline_code(text)
        for target in re.findall(r"^(?:\w+=\S+ )?make ([a-z-]+)", code)
    ]
    return [target for target in asked if target not in targets]


def wrong_commands(text: str) -> list[str]:
    """What is no command of `windows-pipeline`, and no option of the command that it follows."""
    group = typer.main.get_command(app)
    known: dict[str, set[str]] = {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in group.commands.items()  # type: ignore[attr-defined]
    }
    found = []
    for code in inline_code(text):
        for name, rest in re.findall(r"(?:^|/)windows-pipeline ([a-z]\S*)(.*)", code):
            if name not in known:
                found.append(name)
                continue
            options = re.findall(r" (--[a-z-]+)", rest)
            found += [f"{name} {one}" for one in options if one not in {*known[name], "--help"}]
    return found


def all_models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for one in model.__subclasses__():
        yield one
        yield from all_models(one)


_OF_COMPONENTS = ("type", "attributes")
"""Dagster's own fields of a component's file."""


@cache
def known_fields() -> frozenset[str]:
    """The fields of a pipeline's file, of the settings, and of the run config of assets."""
    assert Pipeline in all_models(Strict)
    models: list[type[BaseModel]] = [*all_models(Strict), Settings]
    fields = {field.alias or name for model in models for name, field in model.model_fields.items()}
    for path in (ROOT / "windows_pipeline" / "dagster").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                fields.add(node.target.id)
    return frozenset({*fields, *_OF_COMPONENTS})


def wrong_fields(text: str) -> list[str]:
    """Inline lines of YAML whose key no file of a pipeline and no settings take."""
    lines = (re.fullmatch(r"([a-z_]+): [^ ].*", code) for code in inline_code(text))
    return [line[1] for line in lines if line and line[1] not in known_fields()]


@cache
def schemas() -> tuple[frozenset[str], frozenset[str]]:
    """The tables, and the texts that their columns are named by."""
    modules = (ROOT / "windows_pipeline" / "storage" / "catalog").glob("*.py")
    nodes = (node for module in modules for node in ast.walk(ast.parse(module.read_text())))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant))
    tables = frozenset(kind.name for kind in (*OF_SOURCE, *OF_WINDOWS))
    return tables, frozenset(text for text in texts if isinstance(text, str))


def wrong_columns(text: str) -> list[str]:
    """Columns, as in `arrival_log.watermark`, that their table does not have."""
    tables, texts = schemas()
    found = []
    for code in inline_code(text):
        table, _, column = code.partition(".")
        if table in tables and re.fullmatch(r"\w+", column) and code not in names():
            found += [code] if column not in texts else []
    return found


def slugs(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them, and those that it sets itself."""
    plain = FENCE.sub("", text)
    heads = [
        re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", head).strip().lower()
        for head in re.findall(r"^#+ (.*)$", plain, re.MULTILINE)
    ]
    found = set(re.findall(r"""<\w+ [^>]*\b(?:id|name)=["']([^"']+)""", plain))
    seen: Counter[str] = Counter()
    for head in heads:
        slug = re.sub(r"[^\w -]", "", head).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def links_of(text: str) -> list[str]:
    """The targets of all links and images, those in HTML and those that are named apart too."""
    plain = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))
    return [
        *re.findall(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)", plain),
        *re.findall(r"^ *\[[^]]+\]: *<?(\S+?)>?$", plain, re.MULTILINE),
        *re.findall(r"""\b(?:href|src)=["']([^"']+)""", plain),
    ]


def wrong_links(page: Path, text: str) -> list[str]:
    """Links to files that the repository does not have, or to anchors that no page has."""
    found = []
    for link in links_of(text):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        known = target.is_relative_to(ROOT) and str(target.relative_to(ROOT)) in files()
        if path and not known:
            found.append(link)
        elif anchor:
            anchors = slugs(target.read_text() if path else text)
            found += [link] if anchor not in anchors else []
    return found


def images_without_words(text: str) -> list[str]:
    """Images that say nothing to a reader who cannot see them."""
    return re.findall(r"!\[\s*\]\(([^)\s]+)\)", FENCE.sub("", text))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text()
    assert wrong_paths(text) == []
    assert wrong_tests(text) == []
    assert wrong_modules(text) == []
    assert wrong_targets(text) == []
    assert wrong_commands(text) == []
    assert wrong_fields(text) == []
    assert wrong_columns(text) == []


@pytest.mark.parametrize("page", EVERY_PAGE, ids=name_of)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    """Files, anchors of this page and of others, and images, each of which is one."""
    text = page.read_text()
    assert wrong_links(page, text) == []
    assert images_without_words(text) == []


@pytest.mark.parametrize("image", sorted((DOCS / "images").iterdir()), ids=lambda path: path.name)
def test_an_image_can_be_read(image: Path) -> None:
    assert image.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert image.read_bytes().rstrip().endswith(b"IEND\xaeB`\x82")


WRONG = """
See `windows_pipeline/quality/none.py`, `engine/gone.py`, `quality/checks.py`, `nowhere.py` and
`kernels/none/`; `settings.yaml`, `kernels/windows/` and `README.md` are there, and so is
`test_what_a_page_names_is_there`.
`test_nothing` and `windows_pipeline.driver_writes` are not, `windows_pipeline.definition` is;
`python -m benchmarks.nothing`, `make nothing`, `make check`, `streams: true`, `stream: true`,
`raw_events.nothing`, `raw_events.batch`, `windows-pipeline compute flights`,
`windows-pipeline run flights --until 2013-03-01`, `windows-pipeline check flights`.

[gone](gone.md), [there](README.md#two-commands), [not there](README.md#not-there)
"""
LINKS = """
# A page of `code` and [links](README.md)
## Twice
## Twice

[here](#twice), [again](#twice-1), [thrice](#twice-2), [code](#a-page-of-code-and-links),
[set](#own), [nowhere](#nowhere), ![an image](docs/images/gone.png), ![](README.md), [two
lines](gone.md "title"), [a name][name], [ignored](.venv/bin/python), [outside](../x.md)
<a id="own"></a> <img src="gone.png"> `[code](code.md)`

[name]: named.md#x

```
[in code](in_code.md)
```
"""


def test_what_is_not_there_is_found() -> None:
    assert wrong_paths(WRONG) == [
        "windows_pipeline/quality/none.py",
        *("engine/gone.py", "quality/checks.py", "nowhere.py", "kernels/none/"),
    ]
    assert wrong_tests(WRONG) == ["test_nothing"]
    assert wrong_modules(WRONG) == ["windows_pipeline.driver_writes", "benchmarks.nothing"]
    assert wrong_targets(WRONG) == ["nothing"]
    assert wrong_commands(WRONG) == ["compute", "run --until"]
    assert wrong_fields(WRONG) == ["streams"]
    assert wrong_columns(WRONG) == ["raw_events.nothing"]
    assert wrong_links(ROOT / "page.md", WRONG) == ["gone.md", "README.md#not-there"]
    assert wrong_links(ROOT / "page.md", LINKS) == [
        *("#twice-2", "#nowhere", "docs/images/gone.png", "gone.md"),
        *(".venv/bin/python", "../x.md", "named.md#x", "gone.png"),
    ]
    assert images_without_words(LINKS) == ["README.md"]


def test_a_pipeline_that_a_page_makes_need_not_be_there() -> None:
    made = "`windows-pipeline new mine --from mine.csv` writes `pipelines/mine.yaml`"
    assert wrong_paths(f"{made}, and not `pipelines/yours.yaml`") == ["pipelines/yours.yaml"]
    assert wrong_paths("`pipelines/NAME.yaml`") == []


def test_the_design_follows_a_record_through_functions_that_are_there() -> None:
    """Each row of the two tables names modules, and what stands in one of them."""
    walk = (DOCS / "design.md").read_text().partition("## Follow one record")[2]
    rows = [line for line in walk.partition("\n## ")[0].splitlines() if ".py`" in line]
    tables = [row.split("|") for row in rows if row.startswith("|")]
    assert len(tables) > 15
    for _, _, modules, functions, *_ in tables:
        paths = [ROOT / "windows_pipeline" / name for name in inline_code(modules)]
        there = {name for path in paths for name in defined_in(path)}
        assert set(inline_code(functions)) <= there, functions


def test_a_docstring_names_the_module_that_a_function_is_in() -> None:
    """As `bad_files.bad_file_in`, where the library has a function of that name."""
    modules: dict[str, set[str]] = {}
    for path in (ROOT / "windows_pipeline").rglob("*.py"):
        for name in re.findall(r"^def (\w+)", path.read_text(), re.MULTILINE):
            modules.setdefault(name, set()).update((path.stem, path.parent.name))
    named = [
        (module, name)
        for path in (ROOT / "windows_pipeline").rglob("*.py")
        for module, name in re.findall(r"`([a-z_]+)\.([a-z_]+)`", path.read_text())
    ]
    known = [one for one in named if one[0] != "pyarrow" and one[1] in modules]
    assert len(known) > 10
    elsewhere = [one for one in known if one[0] not in modules[one[1]]]
    assert [one for one in elsewhere if not is_there(f"{'/'.join(one)}.py")] == []


def test_the_code_has_what_the_guide_for_changes_names() -> None:
    """Functions and constants, such as `_ends`, which are no paths."""
    code = "".join(
        path.read_text()
        for folder in ("windows_pipeline", "tests", "tools")
        for path in (ROOT / folder).rglob("*.py")
    )
    there = set(re.findall(r"\w+", code))
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = {one for one in inline_code(text) if re.fullmatch(r"_?[A-Za-z]+(_[A-Za-z]+)+_?", one)}
    assert len(named) > 10
    assert named - there == set()


@pytest.mark.parametrize(
    ("page", "most_words", "most_lines"), [("design.md", 1480, 168), ("performance.md", 520, 50)]
)
def test_a_page_to_read_at_once_stays_short(page: str, most_words: int, most_lines: int) -> None:
    """Four A4 pages of design, one of performance, printed at 10.5 pt with margins of 20 mm.

    With so many words and lines, tables and diagrams included, the pages are full.
    """
    text = (DOCS / page).read_text()
    assert len(text.split()) <= most_words
    assert len(text.splitlines()) <= most_lines


def test_the_catalogue_of_algorithms_names_every_kernel() -> None:
    kernels = (ROOT / "windows_pipeline" / "kernels").rglob("*.py")
    modules = {str(path.relative_to(ROOT / "windows_pipeline")) for path in kernels}
    named = set(inline_code((DOCS / "algorithms.md").read_text()))
    assert {one for one in modules if not one.endswith("__init__.py")} <= named


def test_the_design_names_every_package() -> None:
    drawn = (DOCS / "design.md").read_text().partition("## Packages")[2].partition("\n## ")[0]
    folders = {
        path.parent for path in (ROOT / "windows_pipeline").rglob("*.py") if path.stem != "__init__"
    }
    packages = {path.name for path in folders} - {"windows_pipeline"}
    assert sorted(name for name in packages if f"{name}/" not in drawn) == []
    assert (
        sorted(
            set(re.findall(r"(\w+)/", drawn))
            - packages
            - {"windows_pipeline", "definitions"}
            - set(top_folders())
        )
        == []
    )


def top_folders() -> list[str]:
    return [path.name for path in ROOT.iterdir() if path.is_dir()]


def test_every_decision_is_in_the_index() -> None:
    index = (DOCS / "decisions" / "README.md").read_text()
    pages = [page.name for page in (DOCS / "decisions").glob("*.md") if page.name != "README.md"]
    assert [name for name in pages if f"]({name})" not in index] == []


def test_every_image_is_shown() -> None:
    text = "".join(page.read_text() for page in PAGES)
    assert [image.name for image in (DOCS / "images").iterdir() if image.name not in text] == []


@pytest.mark.parametrize(
    "record",
    sorted({*(DOCS / "decisions").glob("*.md")} - {DOCS / "decisions/README.md"}),
    ids=name_of,
)
def test_a_record_says_question_what_was_tried_and_decision(record: Path) -> None:
    """As `docs/decisions/README.md` says of all records."""
    parts = re.findall(r"^\*\*(\w+)\.\*\*", record.read_text(), re.MULTILINE)
    wanted = ["Question", "Tried", "Decision"]
    assert [part for part in parts if part in wanted] == wanted
    assert set(parts) <= {*wanted, "Figures", "Why", "Limits"}
