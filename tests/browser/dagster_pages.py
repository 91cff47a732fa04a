"""The pages of the Dagster UI: what a user clicks there, and what must be shown."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path

from playwright.sync_api import Locator, Page, ViewportSize, expect, sync_playwright

from tests.support.pipelines import ROOT

_ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
]
_PAGE_MS = 60_000
_RUN_MS = 600_000
_WHOLE_GRAPH: ViewportSize = {"width": 4_200, "height": 1_400}


@contextmanager
def browser_page(last_seen: Path) -> Iterator[Page]:
    """A page of the machine's Chromium; at the end its picture is in the file."""
    found = subprocess.run(
        [ROOT / "tools" / "require.sh", "browser"], stdout=subprocess.PIPE, text=True, check=True
    )
    expect.set_options(timeout=_PAGE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found.stdout.strip(), args=_ARGUMENTS)
        page = browser.new_page(
            viewport={"width": 1920, "height": 1200}, locale="en-US", timezone_id="UTC"
        )
        page.set_default_timeout(_PAGE_MS)
        try:
            yield page
        finally:
            page.screenshot(path=last_seen)
            browser.close()


class DagsterPages:
    """The pages of the pipeline `flights` at an address."""

    def __init__(self, page: Page, address: str) -> None:
        self._page = page
        self._address = address

    def open_graph(self) -> None:
        """Opens the graph of the pipeline's assets."""
        group = "locations/windows_pipeline/asset-groups/flights"
        self._page.goto(f"{self._address}/{group}/lineage")

    def shows_asset(self, name: str, checks: str = "") -> None:
        """The graph has an asset; with checks, it shows how many passed, as `3 / 3 Passed`."""
        node = self._node(name)
        expect(node).to_be_visible()
        if checks:
            expect(node).to_contain_text(checks)

    def shows_no_asset(self, name: str) -> None:
        """The graph has no such asset."""
        expect(self._node(name)).to_have_count(0)

    def _node(self, name: str) -> Locator:
        title = self._page.get_by_text(name, exact=True)
        return self._page.locator("foreignObject").filter(has=title)

    def open_lineage(self, asset: str) -> None:
        """Opens the tab Lineage of an asset's page: the assets next to it."""
        # The page has only the nodes that are in sight.
        self._page.set_viewport_size(_WHOLE_GRAPH)
        self._page.goto(f"{self._address}/assets/flights/{asset}?view=lineage")

    def look(self, way: str) -> None:
        """Shows all that is `Upstream` or `Downstream` of the asset."""
        self._page.get_by_text(way, exact=True).click()
        self._page.get_by_text("All", exact=True).click()

    def shows_column(self, asset: str, column: str, description: str) -> None:
        """The columns of an asset's page have one with this description."""
        self._page.goto(f"{self._address}/assets/flights/{asset}?view=overview")
        row = self._page.locator("tr").filter(has=self._page.get_by_text(column, exact=True))
        expect(row.locator("td").nth(2)).to_have_text(description)

    def backfill_all(self, first: date, last: date) -> None:
        """Materializes all assets of a range of days, and waits until the backfill succeeded."""
        days = (last - first).days + 1
        self._launch(f"[{first}...{last}]", f"{days} partitions", "Launch backfill")
        # The page follows by itself; a column is named so, too.
        status = self._page.locator("div").filter(has_text=re.compile(r"^Status"))
        expect(status.get_by_text("Succeeded", exact=True).last).to_be_visible(timeout=_RUN_MS)

    def materialize_all(self, day: date) -> None:
        """Materializes all assets of one day, and waits until the run succeeded."""
        self._launch(str(day), "1 partition", "Launch 1 run")
        self._ends("Success")
        # The page was open all the time: it has followed the run's steps.
        expect(self._page.get_by_text(re.compile(r"^Succeeded \([1-9]"))).to_be_visible()

    def materialize_in_vain(self, day: date, step: str) -> None:
        """Materializes all assets of one day, and waits until the run failed in a step."""
        self._launch(str(day), "1 partition", "Launch 1 run")
        self._ends("Failure")
        expect(self._page.get_by_text("Errored (1)", exact=True)).to_be_visible()
        expect(self._page.get_by_text(step, exact=True).first).to_be_visible()

    def _ends(self, how: str) -> None:
        """Waits until the run of the page has ended so."""
        expect(self._page.get_by_text(how, exact=True)).to_be_visible(timeout=_RUN_MS)

    def _launch(self, days: str, shown: str, button: str) -> None:
        """Chooses days in the dialog, launches, and follows the link to what was launched."""
        self.open_graph()
        self._page.get_by_role("button", name="Materialize all").click()
        dialog = self._page.get_by_role("dialog")
        box = dialog.get_by_role("textbox").first
        box.fill(days)
        box.press("Tab")
        expect(dialog.get_by_text(shown, exact=True)).to_be_visible()
        dialog.get_by_role("button", name=button, exact=True).click()
        self._page.get_by_text("View", exact=True).click()
        expect(self._page).to_have_url(re.compile(r"/runs/"))

    def shows_passed(self, asset: str, checks: list[str]) -> None:
        """The asset's page lists these checks, each as succeeded."""
        self._page.goto(f"{self._address}/assets/flights/{asset}?view=checks")
        expect(self._page.get_by_text(f"Checks ({len(checks)})")).to_be_visible()
        for name in checks:
            entry = self._page.get_by_title(name, exact=True).locator("..")
            expect(entry).to_contain_text(re.compile("succeeded", re.IGNORECASE))

    def shows_passed_day(self, asset: str, check: str, day: date) -> None:
        """The history of a check says that it passed on a day."""
        expect(self._evaluation(asset, check, day)).to_contain_text("Passed")

    def open_failed_day(self, asset: str, check: str, day: date, mark: str) -> None:
        """Opens what the history of a check says of a day on which it failed.

        Args:
            asset: The asset.
            check: Its check.
            day: The day.
            mark: The sign beside it: `warning_outline` where it only warns, else `cancel`.
        """
        row = self._evaluation(asset, check, day)
        expect(row).to_contain_text("Failed")
        expect(row.get_by_role("img", name=mark)).to_be_visible()
        row.get_by_role("button").click()
        expect(self._page.get_by_role("dialog")).to_be_visible()

    def _evaluation(self, asset: str, check: str, day: date) -> Locator:
        """The newest evaluation of a check for a day, in the history of the check's page."""
        self.open_check(asset, check)
        self._page.get_by_text("Execution history", exact=True).click()
        of_day = self._page.get_by_text(re.compile(f"^{day}: "))
        return self._page.locator("tr").filter(has=of_day).first

    def open_check(self, asset: str, check: str) -> None:
        """Opens the page of a check, with its newest evaluation."""
        self._page.goto(f"{self._address}/assets/flights/{asset}?view=checks&checkDetail={check}")
        expect(self._page.get_by_text("About", exact=True)).to_be_visible()

    def shows_text(self, text: str) -> None:
        """The page has a text, as a whole or as a part of one."""
        expect(self._page.get_by_text(text).first).to_be_visible()

    def value(self, name: str) -> str:
        """The value of a name in the metadata of the page."""
        cell = self._entry(name).locator("td").nth(1)
        expect(cell).to_be_visible()
        return str(cell.inner_text())

    def rows(self, name: str) -> list[dict[str, str]]:
        """The rows of a table in the metadata of the page, by column."""
        table = self._entry(name).locator("table")
        expect(table).to_be_visible()
        columns, *rows = table.evaluate(
            "table => [...table.rows].map(row => [...row.cells].map(cell => cell.textContent))"
        )
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def markdown(self, name: str) -> list[str]:
        """The lines of a text in the metadata of the page, which a click opens."""
        self._entry(name).get_by_text("[Show Markdown]").click()
        dialog = self._page.get_by_role("dialog")
        expect(dialog.get_by_role("table")).to_be_visible()
        lines: list[str] = dialog.inner_text().splitlines()
        dialog.get_by_role("button", name="Close").click()
        return lines

    def _entry(self, name: str) -> Locator:
        return self._page.locator("tr").filter(has=self._page.get_by_text(name, exact=True))

    def open_day(self, asset: str, day: date) -> None:
        """Opens what an asset's page says of one day."""
        self._page.goto(f"{self._address}/assets/flights/{asset}?view=partitions&partition={day}")

    def shows_storage(self, asset: str, location: str) -> None:
        """The asset's page says where the table lies."""
        self._page.goto(f"{self._address}/assets/flights/{asset}?view=overview")
        expect(self._page.get_by_text(location, exact=True).first).to_be_visible()

    def shows_metadata(self, name: str, value: str) -> None:
        """The table of metadata has a name with this value."""
        expect(self._entry(name).locator("td").nth(1)).to_have_text(value)

    def shows_plot(self, name: str) -> None:
        """The metadata of the page opens a picture of this name that the browser could draw."""
        self._page.get_by_text("[Show Markdown]").click()
        picture = self._page.get_by_role("dialog").get_by_role("img", name=name)
        expect(picture).to_be_visible()
        expect(picture).to_have_js_property("complete", value=True)
        assert picture.evaluate("image => image.naturalWidth") > 0

    def reload_definitions(self) -> None:
        """Has Dagster read the pipelines' files again."""
        self.open_graph()
        self._page.get_by_role("button", name="Reload definitions").click()
        expect(self._page.get_by_text("reloaded!")).to_be_visible()

    def shows_request(self, asset: str, days: int) -> None:
        """The asset's tab Automation has an evaluation that requested so many days."""
        self._page.goto(f"{self._address}/assets/flights/{asset}?view=automation")
        expect(self._page.get_by_text(f"{days} requested", exact=True)).to_be_visible()

    def open_sensor(self, name: str) -> None:
        """Opens the page of a sensor."""
        self._page.goto(f"{self._address}/locations/windows_pipeline/sensors/{name}")

    def switch(self, *, on: bool) -> None:
        """Switches the sensor of the page on or off."""
        row = self._page.locator("tr").filter(has=self._page.get_by_text("Running", exact=True))
        switch = row.locator("input[type=checkbox]")
        expect(switch).to_be_checked(checked=not on)
        row.locator("label").click()
        expect(switch).to_be_checked(checked=on)

    def follow_tick(self) -> None:
        """Waits until a tick of the sensor has requested a run, and the run succeeded."""
        tick = self._page.locator("tr").filter(has=self._page.get_by_text("View logs"))
        requested = tick.filter(has_text="1 run requested").first
        expect(requested).to_be_visible()
        with self._page.expect_popup() as opened:
            requested.locator("a[href*='/runs/']").last.click()
        ended = opened.value.get_by_text("Success", exact=True)
        expect(ended).to_be_visible(timeout=_RUN_MS)

    def preview_tick(self, cursor: str) -> Locator:
        """Asks what a tick of the sensor would do, from a cursor on; the answer."""
        self._page.get_by_role("button", name="Preview tick result").click()
        dialog = self._page.get_by_role("dialog")
        dialog.get_by_role("textbox").fill(cursor)
        dialog.get_by_role("button", name="Continue").click()
        expect(dialog.get_by_text("Result", exact=True)).to_be_visible()
        return dialog


def instant_text(instant: datetime) -> str:
    """As the UI writes it: `Jan 2, 2013, 5:10:00 PM UTC`."""
    return f"{instant:%b %-d, %Y, %-I:%M:%S %p} UTC"
