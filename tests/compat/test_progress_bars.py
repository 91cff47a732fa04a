"""Great Expectations prints progress bars unless a context's variable turns them off."""

from __future__ import annotations

import os

import pandas as pd
import pytest

from windows_pipeline.compat.progress_bars import without_progress_bars

# Great Expectations reads this variable when it is imported.
os.environ["GX_ANALYTICS_ENABLED"] = "false"


@pytest.mark.parametrize("is_off", [True, False])
def test_a_validation_prints_no_progress_once_it_is_off(
    capfd: pytest.CaptureFixture[str], *, is_off: bool
) -> None:
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    if is_off:
        without_progress_bars(context)
    asset = context.data_sources.add_pandas("pandas").add_dataframe_asset("rows")
    batch = asset.get_batch(asset.build_batch_request({"dataframe": pd.DataFrame({"x": [1]})}))
    capfd.readouterr()
    assert batch.validate(gx.expectations.ExpectColumnValuesToNotBeNull(column="x")).success
    assert ("Calculating Metrics" in capfd.readouterr().err) is not is_off
