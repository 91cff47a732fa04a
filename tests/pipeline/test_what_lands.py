"""Whatever lands is taken as it is, or refused by name: by days and as a stream (A1, A6, A7)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.small_project import HEADER, TUMBLING, SmallProject

WAYS = ["run", "stream"]
SLIDING = {"kind": "sliding", "time_difference": "10 ms", "aggregates": TUMBLING["aggregates"]}
TIMES = {"k": "string", "t": "timestamp", "v": "double"}
TEXTS = {"k": "string", "t": "bigint", "v": "double", "x": "string"}
HEADER_OF_TEXTS = "k,t,v,x\n"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def as_json(**record: object) -> str:
    return json.dumps(record) + "\n"


@pytest.fixture(params=WAYS)
def of_csv(
    request: pytest.FixtureRequest, project: SmallProject, shared: Path
) -> tuple[SmallProject, str]:
    """Many CSV files, ingested; and what was said."""
    return project.ingested_once(shared / f"of_csv_{request.param}", request.param, land_csv)


NAMES = ["{z}.csv", "b.csv", "a[1].csv", "a1.csv", "a*.csv", "a?.csv", "a\\b.csv", "ab.csv"]
"""Names that look like patterns."""


def land_csv(project: SmallProject) -> None:
    """Each file has keys of its own. The folder's name looks like a pattern, too.

    The long header has a day of its own, as files of one day need the same header.
    """
    project.declare(TUMBLING | {"grace": "100 s"}, TEXTS, path="we[i]rd {x}")
    for number, name in enumerate(NAMES):
        project.land(1, f"{HEADER_OF_TEXTS}name,{number},{2**number},\n", name)
    lines = ["k,t,v,x", 'a,0,1,"first', "b,1000,100,middle", 'last"', 'c,1,2,"say ""hi"""']
    project.land(1, "\r\n".join(lines), "breaks.csv")
    project.land(1, f'{HEADER_OF_TEXTS}quotes,0,"",""\nnothing,1,,\n', "empty.csv")
    no_text = b'\xe9,0,1,\n"\xe8\n",1,2,\n' + b"text,2,3,\n" * 3
    project.land(1, HEADER_OF_TEXTS.encode() + no_text, "no_text.csv")
    project.land(1, HEADER_OF_TEXTS, "no_records.csv")
    before, after = (",".join(f"{side}_{n}" for n in range(8_000)) for side in ("left", "right"))
    of_long = f"{before},k,t,v,x,{after}\n{',' * 8_000}long,4,1,{',' * 8_000}\n"
    project.land(2, of_long, "long.csv")
    land_skipped(project)
    (project.folder / "data").rename(project.folder / "we[i]rd {x}")


def land_skipped(project: SmallProject) -> None:
    """Lands what no ingest may take."""
    project.land(1, f"{HEADER_OF_TEXTS}HIDDEN,1,1,\n", "_x.csv")
    secret = project.folder / "secret.csv"
    secret.write_text(f"{HEADER_OF_TEXTS}SECRET,1,1,\n")
    data = project.folder / "data"
    (data / "2026-11-01" / "link.csv").symlink_to(secret)
    (data / "2026-11-01" / "within").mkdir()
    (project.folder / "elsewhere").mkdir()
    (project.folder / "elsewhere" / "b.csv").write_text(f"{HEADER_OF_TEXTS}SECRET,1,1,\n")
    (data / "2026-11-03").symlink_to(project.folder / "elsewhere")
    (data / "loose.csv").write_text(HEADER_OF_TEXTS)
    far = data / "9999-12-31"
    far.mkdir()
    (far / "a.csv").write_text(f"{HEADER_OF_TEXTS}FAR,1,1,\n")


def test_names_that_look_like_patterns_are_names(of_csv: tuple[SmallProject, str]) -> None:
    project, _ = of_csv
    assert [sums[1:] for sums in project.sums("key", "c", "s") if sums[0] == "name"] == [(8, 255.0)]


def test_what_is_skipped_is_named_and_links_are_not_followed(
    of_csv: tuple[SmallProject, str],
) -> None:
    project, said = of_csv
    for named in (
        "2026-11-01/_x.csv: its name begins with _ or .",
        "2026-11-01/link.csv: a link, which is not followed",
        "2026-11-01/within: a folder within a day's folder",
        "2026-11-03: a link, which is not followed",
        "loose.csv: not a day's folder",
        "9999-12-31: after tomorrow",
    ):
        assert named in said
    keys = {"name", "a", "c", "quotes", "nothing", "long", "text"}
    assert {row["key"] for row in project.raw("key")} == keys


def test_a_quoted_field_may_hold_line_breaks(of_csv: tuple[SmallProject, str]) -> None:
    """No line of a text is a record of its own, and lines order the records (A1)."""
    project, _ = of_csv
    assert project.raw("key", "event_time", "v", "x", keys={"a", "b", "c"}) == [
        {"key": "a", "event_time": EPOCH, "v": 1.0, "x": "first\r\nb,1000,100,middle\r\nlast"},
        {"key": "c", "event_time": EPOCH + MILLISECOND, "v": 2.0, "x": 'say "hi"'},
    ]


def test_quotes_around_nothing_are_the_empty_text(of_csv: tuple[SmallProject, str]) -> None:
    """Nothing between delimiters is null, and so are quotes around nothing in another column."""
    project, _ = of_csv
    assert project.raw("key", "v", "x", keys={"quotes", "nothing"}) == [
        {"key": "quotes", "v": None, "x": ""},
        {"key": "nothing", "v": None, "x": None},
    ]


def test_a_header_of_more_than_64_kb_is_read(of_csv: tuple[SmallProject, str]) -> None:
    project, _ = of_csv
    assert project.raw("key", "v", keys={"long"}) == [{"key": "long", "v": 1.0}]


def test_bytes_that_are_no_text_reject_their_record(of_csv: tuple[SmallProject, str]) -> None:
    """Rule A6: two keys stay out of the windows, and do not become one; no other is rejected."""
    project, said = of_csv
    assert "2 rejected" in said
    assert len(project.raw("key", keys={"text"})) == 3
    assert project.rejected() == [("malformed", '"\ufffd\n",1,2,'), ("malformed", "\ufffd,0,1,")]


def test_lines_arrive_as_they_stand(project: SmallProject) -> None:
    """Rule A1. By event time no record would be late, and 103 would be with 100."""
    project.declare({**SLIDING, "grace": "5 ms"})
    project.land(1, f"{HEADER}a,100,1\na,116,2\na,103,4\na,60,8\na,300,0\n")
    status, said = project.call("run", "p")
    assert (status, "1 late" in said) == (0, True), said
    rows = project.sums("window_start", "window_end", "s", "closed")
    closed = [(ms(start), ms(end), total) for start, end, total, done in rows if done]
    assert closed == [(90, 100, 1.0), (101, 111, 4.0), (106, 116, 2.0)]


def ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


@pytest.mark.parametrize(
    ("way", "arrival"),
    [
        ("run", "event_time"),
        ("stream", "t"),
        pytest.param("run", "t", marks=pytest.mark.long),
        pytest.param("stream", "event_time", marks=pytest.mark.long),
    ],
)
def test_arrival_may_be_by_event_time(project: SmallProject, way: str, arrival: str) -> None:
    """Rule A1: all records of the day by time, whatever their files."""
    project.declare(arrival=arrival)
    project.land(1, f"{HEADER}a,300,1\n", "a.csv")
    project.land(1, f"{HEADER}a,100,2\na,50,4\n", "b.csv")
    assert project.ingest(way)[0] == 0
    assert [ms(row["event_time"]) for row in project.raw("event_time")] == [50, 100, 300]


def test_a_check_fails_if_half_of_a_day_is_late(project: SmallProject) -> None:
    """Rule A1: the message offers what may be meant; a limit may be set, and the least records."""
    project.declare()
    project.land(1, f"{HEADER}a,300,1\na,100,2\na,50,4\n")
    status, said = project.call("run", "p")
    unjudged = "late_within_limit: passed not judged on 1 day, 2026-11-01, of too few records"
    assert (status, unjudged in said, "2 late" in said) == (0, True, True), said
    project.declare(top={"limits": {"least_records": 3}})
    status, said = project.call("check", "p")
    assert (status, "late_within_limit: FAILED" in said) == (1, True), said
    assert "arrival: event_time" in said
    project.declare(top={"limits": {"least_records": 3, "late": "70 %"}})
    status, said = project.call("check", "p")
    assert (status, "late_within_limit: passed" in said) == (0, True), said


@pytest.fixture(params=WAYS)
def of_json(
    request: pytest.FixtureRequest, project: SmallProject, shared: Path
) -> tuple[SmallProject, str, str]:
    """Bytes that are no text, in JSON without one of the columns; what was said, and the way."""
    way = request.param
    return *project.ingested_once(shared / f"of_json_{way}", way, land_json), way


def land_json(project: SmallProject) -> None:
    columns = {"k": "string", "t": "bigint", "v": "double", "w": "double"}
    project.declare(columns=columns, format="jsonl")
    good, bad = as_json(k="é", t=1, v=1).encode(), as_json(k="X", t=1, v=1).encode()
    lone = b'{"k": "\\ud800", "t": 1, "v": 1}\n{"k": "\\uDC01x", "t": 1, "v": 1}\n'
    pair = b'{"k": "\\ud83d\\ude00 \\\\ud800", "t": 1, "v": 2}\n'
    lines = good + bad.replace(b"X", b"\xe9") + bad.replace(b"X", b"\xe8") + lone + pair
    project.land(1, lines, "a.jsonl")
    project.land(1, as_json(k="b", t=1, v=1) * 2, "b.jsonl")


def test_text_that_is_no_utf8_is_rejected_and_can_be_read(
    of_json: tuple[SmallProject, str, str],
) -> None:
    """Two keys that a reader would make one stay out of the windows."""
    project, _, _ = of_json
    keys = [row["key"] for row in project.raw("key")]
    assert keys == ["é", "\U0001f600 \\ud800", "b", "b"]
    found = project.rejected()
    assert [reason for reason, _ in found] == ["malformed"] * 4
    assert sum("\ufffd" in str(text) for _, text in found) == 2


def test_a_column_that_no_record_has_is_named(of_json: tuple[SmallProject, str, str]) -> None:
    _, said, way = of_json
    named = "'without_value': '[w]'" if way == "run" else "a value in column 'w'"
    assert ("warning" in said, named in said) == (True, True), said


@pytest.fixture(params=WAYS)
def of_times(
    request: pytest.FixtureRequest, project: SmallProject, shared: Path
) -> tuple[SmallProject, str]:
    """Records with an arrival column, one of which lies far ahead; and what was said."""
    return project.ingested_once(shared / f"of_times_{request.param}", request.param, land_times)


def land_times(project: SmallProject) -> None:
    project.declare(columns=TIMES | {"at": "timestamp"}, arrival="at", keep_rejected_text=False)
    far, day = "9999-01-01T00:00:00Z", "2026-11-01"
    lines = [f"a,{day}T01:00:00Z,1,{day}T01:00:00Z", f"x,{far},1,{far}"]
    lines += [f"a,{day}T02:00:00Z,1,{day}T02:00:00Z", f"a,SECRET,1,{day}T02:00:00Z"]
    project.land(1, "k,t,v,at\n" + "\n".join(lines) + "\n")


def test_an_instant_beyond_the_day_moves_nothing(of_times: tuple[SmallProject, str]) -> None:
    """Rule A7: the arrival time is the record's own word; the day's end is not."""
    project, said = of_times
    assert "0 late" in said
    reasons = [reason for reason, _ in project.rejected()]
    assert reasons == ["too_far_ahead", "unreadable_event_time"]


def test_rejected_texts_may_be_left_out(of_times: tuple[SmallProject, str]) -> None:
    project, _ = of_times
    assert {text for _, text in project.rejected()} == {None}


@pytest.mark.parametrize(("way", "kind"), [("run", "csv"), ("stream", "jsonl")])
def test_a_file_without_a_line_is_named(project: SmallProject, way: str, kind: str) -> None:
    project.declare(format=kind)
    project.land(1, as_json(k="a", t=1, v=1) if kind == "jsonl" else f"{HEADER}a,1,1\n", "a")
    project.land(1, "\n  \n", "blank")
    status, said = project.ingest(way)
    assert (status, "blank: no record in 4 bytes" in said) == (1, True), said
    if way == "run":
        assert project.call("check", "p")[0] == 1


def test_epochs_in_a_timestamp_column_are_rejected(project: SmallProject) -> None:
    project.declare(columns=TIMES)
    project.land(1, HEADER + "".join(f"a,{1_700_000_000_000 + n},1\n" for n in range(3)))
    status, said = project.call("run", "p")
    assert status == 1, said
    assert "rejected_within_limit: FAILED" in said
    reason = "unreadable_event_time: looks like epoch milliseconds: declare timestamp_ms"
    assert {found for found, _ in project.rejected()} == {reason}
    assert reason in said


def test_epoch_types_of_every_unit_are_read_as_times(project: SmallProject) -> None:
    kinds = {"s": "1700000000.5", "ms": "1700000000500", "us": "1700000000500000.0"}
    kinds["ns"] = "1700000000500000999"
    columns = {"k": "string", **{name: f"timestamp_{name}" for name in kinds}}
    project.declare(
        TUMBLING | {"aggregates": {}},
        columns,
        event_time="ms",
    )
    project.land(1, f"k,{','.join(kinds)}\na,{','.join(kinds.values())}\na,x,-1,2,3\n")
    assert project.call("run", "p")[0] == 0
    (row,) = project.raw("event_time", "s", "us", "ns")
    assert {ms(instant) for instant in row.values()} == {1_700_000_000_500}
    assert row["ns"].microsecond == 500_000
    assert project.rejected() == [("wrong_type: s", "a,x,-1,2,3")]


@pytest.mark.parametrize(
    ("way", "texts", "kind"),
    [
        ("run", ["8", "9", "10"], "bigint"),
        ("stream", ["2026-11-01 9:00", "2026-11-01 10:00"], "timestamp"),
    ],
)
def test_an_arrival_column_of_numbers_as_text_is_refused(
    project: SmallProject, way: str, texts: list[str], kind: str
) -> None:
    project.declare(
        columns={"k": "string", "t": "bigint", "v": "double", "n": "string"}, arrival="n"
    )
    lines = [f"a,{number},1,{text}" for number, text in enumerate(texts)]
    project.land(1, "k,t,v,n\n" + "\n".join(lines) + "\n")
    status, said = project.ingest(way)
    assert (status, f"Declare 'n: {kind}'" in said) == (2, True), said


@pytest.mark.parametrize(("way", "encoding"), [("run", "latin-1"), ("stream", "utf-16")])
def test_another_encoding_and_delimiter_may_be_named(
    project: SmallProject, way: str, encoding: str
) -> None:
    project.declare(columns=TEXTS, encoding=encoding, delimiter=";")
    project.land(1, 'k;t;v;x\né;0;1;1,5\nè;1;2;"y;z"\n'.encode(encoding))
    assert project.ingest(way)[0] == 0
    assert [(row["key"], row["x"]) for row in project.raw("key", "x")] == [
        ("é", "1,5"),
        ("è", "y;z"),
    ]


def test_both_ways_end_in_the_same_rows(project: SmallProject, tmp_path: Path) -> None:
    """Rule H1, for the order of lines: several files, late and rejected ones among the records."""
    lines = ["a,100,1\nb,90,2\n", "a,70,4\nx,,8\nb,101,16\n", "a,300,0\n\nb,95,1\n"]
    other = SmallProject(tmp_path / "q", project.base, project.capfd, project.monkeypatch)
    for each, way, files in ((project, "run", None), (other, "stream", 1)):
        each.declare({**SLIDING, "grace": "3 ms"}, max_per_batch=files)
        for turn, text in enumerate(lines):
            each.land(1 + turn // 2, HEADER + text, f"{turn}.csv", turn)
        assert each.ingest(way)[0] in (0, 1)
    assert project.all_rows() == other.all_rows()
