"""Micro-batches, kills and backfills in any order give what the oracle says (rule H1)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.support.firing_cases import merged_in
from tests.support.oracle.windows import (
    Record,
    RecordId,
    SlidingDefinition,
    final_windows,
    late_records,
)
from tests.support.spark_cases import PROPERTY, texts
from tests.support.strategies import sliding_definitions
from tests.support.stream_model import AGGREGATES, TABLES, KilledError, Results, Stored, StreamModel

Event = tuple[int, str | None, int, int, dict[str, int | float | None]]
# A source partition, a key, how much later it is by then, how far behind the record is, values.
EVENT: st.SearchStrategy[Event] = st.tuples(
    st.integers(0, 2),
    st.sampled_from(("a", "b", None)),
    st.integers(0, 5),
    st.integers(0, 12),
    st.fixed_dictionaries(
        {
            "whole": st.none() | st.integers(-9, 9) | st.sampled_from((2**62, 2**63 - 1, -(2**63))),
            "real": st.none() | st.sampled_from((1e16, -1e16, 1.0, 0.1)),
        }
    ),
)


class StreamSteps(RuleBasedStateMachine):
    """Records arrive, day after day; the stream takes them, stops, is killed; days are rerun."""

    @initialize(definition=sliding_definitions(0, 1), partitions=st.sampled_from((1, 2, 3)))
    def begin(self, definition: SlidingDefinition, partitions: int) -> None:
        self.partitions = partitions
        self.stream = StreamModel(definition)
        self.day = 0
        self.now = 0
        self.batch = 0
        self.waiting: list[Record] = []
        self.taken: list[Stored] = []

    @rule(events=st.lists(EVENT, min_size=1, max_size=9))
    def arrive(self, events: list[Event], alone: int | None = None) -> None:
        for partition, key, later, behind, values in events:
            self.now += later
            own = partition if alone is None else alone
            position = (self.day, own % self.partitions, 0)
            self.waiting.append(Record(*position, key, self.now - behind, values))

    @rule(days=st.integers(1, 2))
    def days_pass(self, days: int) -> None:
        self.day += days

    @rule(
        events=st.lists(EVENT, max_size=9),
        alone=st.none() | st.integers(0, 2),
        rejected=st.integers(0, 1),
        kills=st.lists(st.sampled_from(TABLES), max_size=2),
    )
    def cut(self, events: list[Event], alone: int | None, rejected: int, kills: list[str]) -> None:
        """A micro-batch of all that waits and some more, again after each kill."""
        self.arrive(events, alone)
        for table in kills:
            try:
                self.stream.run(self.batch, self.waiting, rejected, killed_after=table)
            except KilledError:
                continue
            raise AssertionError(table)
        self.taken += self.stream.run(self.batch, self.waiting, rejected)
        self.batch += 1
        self.waiting = []

    @rule()
    def stop(self) -> None:
        self.stream.standing = None

    @precondition(lambda self: self.taken)
    @rule()
    def backfill(self) -> None:
        """Rules E1, E4: whole days give the same rows, in the same arrival units."""
        streamed, again = self.stream.results(), self.stream.backfill()
        assert texts(again.final_windows) == texts(streamed.final_windows)
        assert sorted(again.late_records) == sorted(streamed.late_records)
        assert again.merged == streamed.merged

    @invariant()
    def the_log_says_where_the_stream_stands(self) -> None:
        """Rules A2, A4: what is read back is what the process knew."""
        known = self.stream.standing
        if known is not None:
            read = self.stream.read_back(self.batch)
            assert replace(read, log=()) == replace(known, log=())
            assert set(read.log) == set(known.log)

    def teardown(self) -> None:
        if hasattr(self, "stream"):
            self.backfill()
            assert _outcome(self.stream.results()) == self._of_the_oracle()

    def _of_the_oracle(self) -> tuple[list[str], list[tuple[RecordId, str]], list[RecordId]]:
        """Rules A, B: a micro-batch's part of a day is an arrival unit."""
        arrival_units = sorted({(one.batch, one.record.arrival_unit) for one in self.taken})
        if self.partitions == 1:
            arrival_units = []
        records = [
            replace(
                one.record,
                arrival_unit=arrival_units.index((one.batch, one.record.arrival_unit))
                if arrival_units
                else 0,
                offset=number,
            )
            for number, one in enumerate(self.taken)
        ]
        names = {new.id: one.record.id for new, one in zip(records, self.taken, strict=True)}
        asked = (records, max(len(arrival_units), 1), self.stream.definition)
        late = [row._replace(record=names[row.record]) for row in late_records(*asked)]
        merged = [names[record.id] for _, record in merged_in(*asked)]
        return _outcome(Results(final_windows(*asked, AGGREGATES), late, merged))


def _outcome(results: Results) -> tuple[list[str], list[tuple[RecordId, str]], list[RecordId]]:
    """Without the columns that name the arrival unit."""
    late = sorted((row.record, row.reason) for row in results.late_records)
    return texts(row[1:] for row in results.final_windows), late, results.merged


def test_any_steps_end_in_the_oracles_results() -> None:
    """Rules A1 to A5, B2 to B8, E1, E4, G3, H1."""
    some = settings(PROPERTY, max_examples=60, stateful_step_count=24)
    run_state_machine_as_test(StreamSteps, settings=some)
