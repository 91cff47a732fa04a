"""The kernel of late records, without Spark, against the oracle (rule A5)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernels import reasons_of, whole_input
from tests.support.oracle.windows import Definition, RecordId, late_records, lateness
from tests.support.spark_cases import PROPERTY
from tests.support.strategies import ArrivalsOf, any_definitions, whole_inputs

CUTS = st.lists(st.integers(0, 200), max_size=6)
ANY = whole_inputs(any_definitions, source_partitions=3)


def reasons_of_the_oracle(case: ArrivalsOf[Definition]) -> dict[RecordId, str]:
    """Known on arrival, or once all windows that could have held the record are closed."""
    decided = {row.record: row.reason for row in late_records(*case)}
    return decided | lateness(case.records, case.definition)


@PROPERTY
@given(ANY, CUTS)
def test_records_and_reasons_are_those_of_the_oracle(
    case: ArrivalsOf[Definition], cuts: list[int]
) -> None:
    found = reasons_of({0: whole_input(case.records, case.definition)}, cuts=cuts)
    assert found == {0: reasons_of_the_oracle(case)}


@PROPERTY
@given(st.lists(ANY, max_size=4), CUTS)
def test_one_input_has_computed_days_of_several_windows(
    cases: list[ArrivalsOf[Definition]], cuts: list[int]
) -> None:
    asked = {n: whole_input(case.records, case.definition) for n, case in enumerate(cases)}
    wanted = {n: reasons_of_the_oracle(case) for n, case in enumerate(cases)}
    assert reasons_of(asked, cuts=cuts) == wanted
