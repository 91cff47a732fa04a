"""`windows-pipeline new`: from a sample to a pipeline that loads.

The reader of a run accepts each sample here, so that no test starts Spark; what it says of samples
is in tests/pipeline/test_new_runs.py.
"""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.command_line import call
from tests.support.samples import (
    FIRST_DAY,
    PAYMENT_COLUMNS,
    csv_text,
    heartbeats,
    iso,
    make_project,
    payments,
)
from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.config.columns.long_form import SourceColumn
from windows_pipeline.starter import acceptance
from windows_pipeline.windows import SlidingWindows

ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    """Answers that somebody types."""

    def isatty(self) -> bool:
        return True


class NewProject:
    """A project without pipelines, in which `new` runs."""

    def __init__(
        self, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.folder = make_project(folder)
        self._capfd = capfd
        self._monkeypatch = monkeypatch
        monkeypatch.chdir(folder)
        monkeypatch.setattr("sys.stdin", io.StringIO())
        monkeypatch.setattr("windows_pipeline.cli.new.session", lambda *_: None)
        monkeypatch.setattr(acceptance, "judge", lambda *_: {None: (1, "")})

    def new(self, sample: str, *options: str, name: str = "p") -> tuple[int, str]:
        args = ("new", name, "--from", sample, *options)
        return call(self._capfd, self._monkeypatch, *args)

    def validate(self) -> tuple[int, str]:
        return call(self._capfd, self._monkeypatch, "validate")

    def answer(self, *answers: str) -> None:
        """Types the answers on a terminal."""
        self._monkeypatch.setattr("sys.stdin", Terminal("".join(f"{one}\n" for one in answers)))

    def write(self, name: str, text: str, encoding: str = "utf-8") -> str:
        (self.folder / name).write_bytes(text.encode(encoding))
        return name

    def pipeline(self, name: str = "p") -> Pipeline:
        return load_pipeline(self.folder / "pipelines" / f"{name}.yaml")

    def landed(self, name: str = "p") -> list[str]:
        folder = self.folder / "data" / name
        return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.fixture
def project(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> NewProject:
    return NewProject(tmp_path / "project", capfd, monkeypatch)


def test_payments_become_a_pipeline(project: NewProject) -> None:
    status, said = project.new(project.write("payments.csv", csv_text(payments())))
    assert status == 0, said
    made = project.pipeline()
    assert made.source.columns == {
        "order_id": "string",
        "card": "string",
        "amount": "decimal(18,2)",
        "paid_at": "timestamp",
        "received_at": "timestamp",
    }
    assert made.source.roles == {"key": "card", "event_time": "paid_at", "arrival": "received_at"}
    (windows,) = made.windows.values()
    assert windows.kind == "sliding"
    assert windows.grace == 600_000
    assert windows.aggregates == {"avg_amount": "avg(amount)", "max_amount": "max(amount)"}
    assert list(windows.alerts) == ["high_amount"]
    # The sample is old: its last day is the only one.
    assert made.partitions.start == made.partitions.end == date(2026, 3, 11)
    for part in (
        "2,000 records looked at",
        "card its name, and 20 values in 2,000 records",
        "in order",
        "up to 10 minutes 40 ",
        "a grace of 10 minutes is enough for 99 % of the records",
        "the sample copied into data/p: ",
        "wrote pipelines/p.yaml; ",
        "windows-pipeline run p windows-pipeline alerts p DAGSTER_HOME",
        'DAGSTER_HOME="$PWD/.dagster_home" dagster dev',
    ):
        assert part in said
    assert project.validate()[0] == 0


def test_prices_with_a_decimal_comma_are_exact(project: NewProject) -> None:
    """A decimal in the long form: its type has a comma, which YAML's braces would split at."""
    days = [datetime(2026, 3, 10, 12, number % 60, tzinfo=UTC) for number in range(40)]
    rows = [
        f"till {number % 2};{day:%d.%m.%Y %H:%M};{number},99" for number, day in enumerate(days)
    ]
    sample = project.write("sales.csv", "\n".join(["till;sold_at;price", *rows, ""]))
    status, said = project.new(sample)
    assert status == 0, said
    price = project.pipeline().source.columns["price"]
    assert price == SourceColumn(type="decimal(18,2)", decimal=",")
    assert project.validate()[0] == 0


def test_in_a_clone_the_ui_is_a_target_of_make(project: NewProject) -> None:
    """Only this project's own folder has the module that it runs."""
    sample = project.write("beats.jsonl", heartbeats())
    ui = project.folder / "tools" / "ui.py"
    ui.parent.mkdir()
    ui.touch()
    status, said = project.new(sample)
    assert status == 0, said
    assert said.split()[-2:] == ["make", "ui"]


def test_heartbeats_become_a_pipeline_that_sees_silence(project: NewProject) -> None:
    status, said = project.new(project.write("beats.jsonl", heartbeats()))
    assert status == 0, said
    made = project.pipeline()
    assert made.source.columns == {"device": "string", "ts": "timestamp_ms"}
    (windows,) = made.windows.values()
    assert isinstance(windows.spec, SlidingWindows)
    assert windows.spec.emit_empty
    assert {name: rule.when for name, rule in windows.alerts.items()} == {
        "silent": "record_count = 0"
    }
    assert "record_count = 0; it fires for about 1 of 17,213 windows of the sample" in said
    assert project.landed() == ["2026-03-09", "2026-03-09/beats.jsonl"]


def test_recent_data_has_no_last_day(project: NewProject) -> None:
    """Without `end` each new day is read; with one it would be passed over."""
    now = datetime.now(UTC) - timedelta(days=1)
    rows = [("a", str(n % 3), iso(now + timedelta(seconds=n))) for n in range(100)]
    project.new(project.write("a.csv", csv_text(rows, ("user", "value", "ts"))))
    assert project.pipeline().partitions.end is None


def test_parquet_with_timestamps(project: NewProject) -> None:
    count = 400
    times = [FIRST_DAY + timedelta(minutes=10 * n) for n in range(count)]
    table = pa.table(
        {
            "sensor_id": pa.array([n % 4 for n in range(count)], pa.int32()),
            "at": pa.array(times, pa.timestamp("ns", "UTC")),
            "celsius": pa.array([20 + n % 7 / 2 for n in range(count)], pa.float32()),
            "tags": pa.array([["a", "b"]] * count),
        }
    )
    pq.write_table(table, project.folder / "a.parquet")
    status, said = project.new("a.parquet")
    assert status == 0, said
    made = project.pipeline()
    assert made.source.columns == {
        "sensor_id": "bigint",
        "at": "timestamp",
        "celsius": "double",
        "tags": "string",
    }
    assert made.source.key == "sensor_id"
    assert project.landed() == ["2026-03-10", "2026-03-10/a.parquet"]


def numbers(project: NewProject, kind: str, values: list[object]) -> str:
    """A sample whose column `v` has these values again and again."""
    times = [iso(FIRST_DAY + timedelta(minutes=n)) for n in range(120)]
    rows = [
        {"k": f"k{n % 3}", "ts": time, "v": values[n % len(values)]} for n, time in enumerate(times)
    ]
    if kind == "parquet":
        table = pa.table({name: [row[name] for row in rows] for name in ("k", "ts")})
        table = table.append_column("v", pa.array([row["v"] for row in rows], pa.uint64()))
        pq.write_table(table, project.folder / "a.parquet")
        return "a.parquet"
    if kind == "jsonl":
        return project.write("a.jsonl", "\n".join(map(json.dumps, rows)))
    texts = [[str(value) for value in row.values()] for row in rows]
    return project.write("a.csv", csv_text(texts, [*rows[0]]))


UNSIGNED: list[tuple[list[object], str]] = [
    ([2**63], "decimal(38,0)"),
    ([10**19 - 1, 3], "decimal(38,0)"),
    ([2**64 - 1, 2**63, 5], "decimal(38,0)"),
    ([1, 2], "bigint"),
]
SIGNED: list[tuple[list[object], str]] = [
    ([-(2**63) - 1, -1], "decimal(38,0)"),
    ([10**38, 7], "double"),
    ([1e300, -1e300, 1.5], "double"),
    ([1e-300, 2e-300], "double"),
]


@pytest.mark.parametrize(
    ("kind", "values", "declared"),
    [
        *((kind, *case) for kind in ("csv", "jsonl") for case in UNSIGNED + SIGNED),
        *(("parquet", *case) for case in UNSIGNED),
    ],
)
def test_numbers_of_any_size_become_a_pipeline(
    project: NewProject, kind: str, values: list[object], declared: str
) -> None:
    """The type fits them, and the rule's threshold is one that a rule takes."""
    status, said = project.new(numbers(project, kind, values))
    assert status == 0, said
    assert project.pipeline().source.columns["v"] == declared
    assert project.validate()[0] == 0


LOCAL = csv_text(
    [
        (f"s{n % 3}", f"2026-10-{24 + n // 96} {n // 4 % 24:02}:{n % 4 * 15:02}:00", f"{n % 7}.5")
        for n in range(192)
    ],
    ("sensor", "measured_at", "celsius"),
)


def test_times_without_an_offset_are_said_to_be_utc(project: NewProject) -> None:
    status, said = project.new(project.write("a.csv", LOCAL))
    assert status == 0, said
    assert "measured_at timestamp, as UTC" in said
    assert "times without an offset are read as UTC: measured_at; if they are local times" in said
    text = (project.folder / "pipelines" / "p.yaml").read_text()
    assert "read as UTC; if local: {type: timestamp, zone: Europe/Berlin}" in text
    assert project.landed() == ["2026-10-25", "2026-10-25/a.csv"]
    times = pa.array([FIRST_DAY + timedelta(minutes=n) for n in range(60)])
    for name, zone in (("instant", "UTC"), ("local", None)):
        at = times.cast(pa.timestamp("us", zone))
        file = project.folder / f"{name}.parquet"
        pq.write_table(pa.table({"device": ["a", "b"] * 30, "at": at}), file)
        said = project.new(file.name, name=name)[1]
        assert ("as UTC" in said) == (zone is None), said


@pytest.mark.parametrize("asks", [True, False])
def test_the_zone_of_local_times_is_asked_or_given(project: NewProject, *, asks: bool) -> None:
    """The doubled hour is said to be the first."""
    sample = project.write("a.csv", LOCAL)
    if asks:
        project.answer("Europe/Berln", "Europe/Berlin", "", "", "", "")
    status, said = project.new(sample, *(() if asks else ("--zone", "Europe/Berlin")))
    assert status == 0, said
    assert ("did you mean 'Europe/Berlin'?" in said) == asks
    column = project.pipeline().source.long_forms["measured_at"]
    assert (column.type, column.zone, column.ambiguous) == ("timestamp", "Europe/Berlin", None)
    text = (project.folder / "pipelines" / "p.yaml").read_text()
    assert "a time that occurs twice is the first; or ambiguous: later, reject" in text


def test_day_folders_are_read_where_they_are(project: NewProject) -> None:
    rows = payments()
    for row in rows:
        day = row[4][:10]
        if day == "2026-03-09":
            continue
        file = project.folder / "landed" / "pay" / day / "a.csv"
        if not file.exists():
            file.parent.mkdir(parents=True)
            file.write_text(csv_text([]))
        with file.open("a") as stream:
            stream.write(",".join(row) + "\n")
    status, said = project.new("landed/pay")
    assert status == 0, said
    assert "the sample is in" in said
    assert "1 day between them without a folder (2026-03-09), which would block" in said
    assert "make its folder: mkdir landed/pay/2026-03-09" in said
    assert project.pipeline().source.path == "landed/pay"
    assert not (project.folder / "data").exists()
    elsewhere = project.folder.parent / "pay"
    (project.folder / "landed" / "pay").rename(elsewhere)
    (elsewhere / "notes").mkdir()
    status, said = project.new(str(elsewhere), name="q")
    assert (status, "skipped: notes" in said) == (0, True), said
    assert project.pipeline("q").source.path == str(elsewhere)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("empty.csv", "", "must hold at least one record"),
        ("header.csv", "a,b\n", "must hold at least one record"),
        ("broken.jsonl", "[1]\nx\n", "no line can be read as jsonl"),
        ("no_time.csv", "k,v\n" + "a,1\nb,2\n" * 20, "--event-time: some column must"),
        (
            "no_key.csv",
            "id,ts\n" + "".join(f"{n},2026-03-08T10:00:{n:02}Z\n" for n in range(60)),
            "--key:",
        ),
        ("values.csv", "1,2026-03-08\n2,2026-03-08\n", "the first line must name the columns"),
        ("a.txt", "x", "It holds a.txt (unknown); name the file or folder to read"),
        (
            "a.csv.gz",
            "k,ts\n",
            "must be readable as csv, but is not (IO Error: Input is not a GZIP",
        ),
        ("a.parquet", "k,ts\n", "must be readable as parquet, but is not"),
        (
            "ahead.csv",
            "k,ts\n" + "a,2999-03-08\n" * 9,
            "must have a time in 'ts' that is not to come",
        ),
    ],
)
def test_what_cannot_be_a_sample_is_one_line(
    project: NewProject, name: str, text: str, words: str
) -> None:
    status, said = project.new(project.write(name, text))
    assert status == 2
    assert words in said
    assert "Traceback" not in said
    assert [path.name for path in project.folder.rglob("*")].count("p.yaml") == 0
    assert not (project.folder / "data" / "p").exists()


def test_a_missing_sample_is_named(project: NewProject) -> None:
    status, said = project.new("nowhere.csv")
    assert (status, "--from nowhere.csv: must be a file or a folder" in said) == (2, True)


def test_an_existing_file_is_never_overwritten(project: NewProject) -> None:
    sample = project.write("a.csv", csv_text(payments(100)))
    (project.folder / "pipelines").mkdir()
    file = project.folder / "pipelines" / "p.yaml"
    file.write_text("mine")
    status, said = project.new(sample)
    assert (status, f"{file}: the file exists" in said) == (2, True), said
    assert file.read_text() == "mine"
    file.unlink()
    assert project.new(sample)[0] == 0
    file.rename(file.with_name("other.yml"))
    status, said = project.new(sample)
    assert (status, "is the name of the pipeline in" in said) == (2, True), said
    file.with_name("other.yml").unlink()
    status, said = project.new(sample)
    assert (status, f"{project.folder / 'data' / 'p'}: the folder exists" in said) == (2, True), (
        said
    )


@pytest.mark.parametrize("name", ["P", "1a", "../p", "", "a-b", "x" * 101])
def test_the_name_is_one_of_a_pipeline(project: NewProject, name: str) -> None:
    status, said = project.new(project.write("a.csv", csv_text(payments(100))), name=name)
    assert (status, "NAME: " in said) == (2, True), said
    assert not (project.folder / "data").exists()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_line_breaks_in_fields_byte_order_marks_and_windows_line_ends(
    project: NewProject, end: str, encoding: str
) -> None:
    rows = [
        (row[0], row[1], row[2], row[3], f'a "b",{end}c' if n == 7 else "x")
        for n, row in enumerate(payments(300))
    ]
    text = csv_text(rows, (*PAYMENT_COLUMNS[:4], "note"), end)
    status, said = project.new(project.write("a.csv", text, encoding))
    assert status == 0, said
    assert "300 records looked at" in said
    assert list(project.pipeline().source.columns) == [*PAYMENT_COLUMNS[:4], "note"]
    (file,) = (project.folder / "data" / "p").rglob("a.csv")
    assert file.read_bytes() == text.encode(encoding)


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_the_delimiter_is_the_one_that_gives_most_columns(
    project: NewProject, delimiter: str
) -> None:
    """A comma in a value, as in '1,5', separates nothing."""
    lines = csv_text(payments(300)).splitlines()
    text = "".join(f"{line.replace(',', delimiter)}{delimiter}1,5\n" for line in lines[1:])
    header = delimiter.join([*PAYMENT_COLUMNS, "a,b"])
    status, said = project.new(project.write("a.csv", f"{header}\n{text}"))
    assert status == 0, said
    assert "300 records looked at" in said
    source = project.pipeline().source
    assert source.delimiter == delimiter
    assert [*source.columns] == [*PAYMENT_COLUMNS]


def test_columns_that_cannot_be_declared_are_left_out(project: NewProject) -> None:
    header = ("card", "ts", "yes", "Paid By", "reason", "x\ty # {", "V", "v", "twice", "twice")
    rows = [
        (
            f"c{n % 5}",
            iso(FIRST_DAY + timedelta(minutes=n)),
            *("1.5" if n % 2 else "2" for _ in range(8)),
        )
        for n in range(100)
    ]
    status, said = project.new(project.write("a.csv", csv_text(rows, header)))
    assert status == 0, said
    assert list(project.pipeline().source.columns) == ["card", "ts", "yes", "V"]
    text = (project.folder / "pipelines" / "p.yaml").read_text()
    assert '"yes": double' in text
    assert "# left out: Paid By is not a column name" in text
    assert "left out: 'Paid By' is not a column name" in said
    assert "rename it in the files to use it" in said
    assert "# left out: reason is the name of a column that the tables add" in text
    assert r"# left out: x\ty # {" in text


def test_a_sample_with_30000_columns_is_one_line(project: NewProject) -> None:
    header = ",".join(["card", "ts", *(f"c{number}" for number in range(30_000))])
    record = ",".join(["1"] * 30_002)
    status, said = project.new(project.write("wide.csv", f"{header}\n{record}\n"))
    assert (status, "must have at most 1,000 columns, but has 30,002" in said) == (2, True), said
    assert len(said) < 500


def test_flags_stand_above_guesses(project: NewProject) -> None:
    sample = project.write("a.csv", csv_text(payments()))
    options = ("--key", "order_id", "--event-time", "received_at", "--arrival", "lines")
    windows = ("--size", "1 hour", "--grace", "2 hours")
    status, said = project.new(sample, *options, *windows)
    assert status == 0, said
    made = project.pipeline()
    assert (made.source.key, made.source.event_time, made.source.arrival) == (
        *("order_id", "received_at", "lines"),
    )
    (found,) = made.windows.values()
    assert (found.spec.length_ms, found.grace) == (3_600_000, 7_200_000)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--key", "crad"), "--key: 'crad' is not a column of the sample; did you mean 'card'?"),
        (("--event-time", "card"), "--event-time: 'card' must hold times"),
        (("--arrival", "amount"), "--arrival: 'amount' must hold times"),
        (("--key", "paid_at"), "--key paid_at: must be another column"),
        (("--zone", "Mars"), "--zone: 'Mars' is not a known time zone"),
        (("--size", "soon"), "--size: 'soon' is not a duration"),
        (("--size", "0 s"), "--size: must be at least 1 millisecond, but is '0 s'"),
        (("--grace", "-1 h"), "--grace: must be at least 0 seconds"),
    ],
)
def test_wrong_flags_are_one_line(
    project: NewProject, options: tuple[str, ...], words: str
) -> None:
    status, said = project.new(project.write("a.csv", csv_text(payments(100))), *options)
    assert (status, words in said) == (2, True), said
    assert not (project.folder / "pipelines").exists()


def test_on_a_terminal_it_asks_and_enter_takes_the_guess(project: NewProject) -> None:
    sample = project.write("a.csv", csv_text(payments()))
    project.answer("", "", "crad", "order_id", "90 minutes")
    status, said = project.new(sample)
    assert status == 0, said
    for part in ("Event time [paid_at]", "[received_at]", "[card]", "did you mean 'card'?"):
        assert part in said
    made = project.pipeline()
    assert (made.source.key, made.source.event_time) == ("order_id", "paid_at")
    (found,) = made.windows.values()
    assert found.spec.length_ms == 5_400_000
    project.answer()
    assert project.new(sample, "--yes", name="q")[0] == 0
    assert project.pipeline("q").source.key == "card"


def test_an_export_in_another_order_is_ordered_by_time(project: NewProject) -> None:
    rows = sorted((row[1], row[2], row[3]) for row in payments())
    status, said = project.new(
        project.write("a.csv", csv_text(rows, ("card", "amount", "paid_at")))
    )
    assert status == 0, said
    assert project.pipeline().source.arrival == "event_time"


def test_a_column_of_days_can_be_the_event_time(project: NewProject) -> None:
    rows = [(f"s{n % 3}", str(n), f"2026-03-{n // 3 + 1:02}") for n in range(60)]
    status, said = project.new(project.write("a.csv", csv_text(rows, ("store", "sales", "day"))))
    assert status == 0, said
    assert project.pipeline().source.columns["day"] == "timestamp"


def test_hostile_values_stay_within_comments(project: NewProject) -> None:
    nasty = "x\u2028\x1b[31m]\nwindows: {}\n# '\"[bold]"
    lines = [
        json.dumps({"device": nasty, nasty: 1, "ts": iso(FIRST_DAY + timedelta(minutes=n))})
        for n in range(50)
    ]
    status, said = project.new(project.write("a.jsonl", "\n".join(lines)))
    assert status == 0, said
    assert "\x1b[31m" not in said
    assert list(project.pipeline().windows) == ["sliding"]


def test_neither_spark_nor_great_expectations_is_needed_to_guess() -> None:
    program = (
        "import sys\n"
        "from windows_pipeline.starter import new_pipeline\n"
        "print(sorted({'pyspark', 'great_expectations', 'dagster', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_folder_that_cannot_be_written_is_one_line_and_leaves_nothing(
    project: NewProject,
) -> None:
    (project.folder / "pipelines").write_text("a file in the folder's place")
    status, said = project.new(project.write("a.csv", csv_text(payments(100))))
    assert (status, f"{project.folder / 'pipelines'}: " in said) == (2, True), said
    assert not (project.folder / "data" / "p").exists()


@pytest.mark.parametrize("size", [12, 3_000])
def test_a_cut_compressed_file_is_called_cut(project: NewProject, size: int) -> None:
    data = gzip.compress(csv_text(payments(1_000)).encode())
    (project.folder / "a.csv.gz").write_bytes(data[:size])
    status, said = project.new("a.csv.gz")
    assert (status, "Unexpected end of GZIP stream: a.csv.gz); copy" in said) == (2, True), said


def test_a_sample_without_a_record_in_utf_8_says_so(project: NewProject) -> None:
    text = "name,ts\n" + "Zo\xeb,2026-03-08\n" * 30
    status, said = project.new(project.write("a.csv", text, "latin-1"))
    assert (status, "name files with records, of text in UTF-8" in said) == (2, True), said


def test_a_header_in_another_encoding_is_refused(project: NewProject) -> None:
    """A run would find the file bad."""
    text = csv_text(payments(50), (*PAYMENT_COLUMNS[:4], "r\xe9gion"))
    status, said = project.new(project.write("a.csv", text, "latin-1"))
    words = "a.csv: the header must be UTF-8, but has the byte 0xe9 after "
    assert (status, words in said, "convert the file to UTF-8" in said) == (2, True, True), said


@pytest.mark.parametrize(
    "fields",
    [
        r'"device": "sur\ud800"',
        r'"device": "pump-0", "\uDfff": 1',
        r'"device": "pump-0", "n": "\ud83d\\ude00"',
    ],
    ids=["value", "name", "halves"],
)
def test_half_a_surrogate_pair_in_json_is_no_text(project: NewProject, fields: str) -> None:
    """A run rejects such a record as malformed; it names no column."""
    line = f'{{"ts": 1772928000000, {fields}}}\n'
    status, said = project.new(project.write("a.jsonl", line + heartbeats()))
    assert status == 0, said
    assert sorted(project.pipeline().source.columns) == ["device", "ts"]


def test_no_answer_ends_it_as_ctrl_c_does(project: NewProject) -> None:
    project.answer()
    status, said = project.new(project.write("payments.csv", csv_text(payments())))
    assert (status, "stopped; to resume" in said) == (130, True), said
    assert project.landed() == []


def test_a_surrogate_pair_and_an_escaped_backslash_are_text(project: NewProject) -> None:
    line = r'{"ts": 1772928000000, "device": "pump-0", "n": "\ud83d\ude00 \\ud800"}' + "\n"
    status, said = project.new(project.write("a.jsonl", line + heartbeats()))
    assert status == 0, said
    assert list(project.pipeline().source.columns) == ["ts", "device", "n"]


def test_enter_takes_the_guess_after_a_wrong_answer(project: NewProject) -> None:
    rows = [(*row[:4], row[1]) for row in payments(300)]
    sample = project.write("a.csv", csv_text(rows, (*PAYMENT_COLUMNS[:4], "Paid By")))
    project.answer("", "", "Paid By", "", "")
    status, said = project.new(sample)
    assert (status, "--key: 'Paid By' is not a column name" in said) == (0, True), said
    assert project.pipeline().source.key == "card"
