"""The pages of the Dagster UI: what a user clicks there, and what must be shown."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.support.pipelines import ROOT

_ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
]
_PAGE_MS = 60_000
_RUN_MS = 600_000


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
            viewport={"width": 1500, "height": 1000}, locale="en-US", timezone_id="UTC"
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
        title = self._page.get_by_text(name, exact=True)
        expect(title).to_be_visible()
        if checks:
            node = self._page.locator("foreignObject").filter(has=title)
            expect(node).to_contain_text(checks)

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
        expect(self._page.get_by_text("Success", exact=True)).to_be_visible(timeout=_RUN_MS)
        # The page was open all the time: it has followed the run's steps.
        expect(self._page.get_by_text(re.compile(r"^Succeeded \([1-9]"))).to_be_visible()

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
        page = f"{self._address}/assets/flights/{asset}?view=checks&checkDetail={check}"
        self._page.goto(page)
        self._page.get_by_text("Execution history", exact=True).click()
        of_day = self._page.get_by_role("cell", name=str(day), exact=True)
        row = self._page.locator("tr").filter(has=of_day)
        expect(row.first).to_contain_text("Passed")

    def open_day(self, asset: str, day: date) -> None:
        """Opens what an asset's page says of one day."""
        self._page.goto(f"{self._address}/assets/flights/{asset}?view=partitions&partition={day}")

    def shows_storage(self, asset: str, location: str) -> None:
        """The asset's page says where the table lies."""
        self._page.goto(f"{self._address}/assets/flights/{asset}?view=overview")
        expect(self._page.get_by_text(location, exact=True).first).to_be_visible()

    def shows_metadata(self, name: str, value: str) -> None:
        """The table of metadata has a name with this value."""
        row = self._page.locator("tr").filter(has=self._page.get_by_text(name, exact=True))
        expect(row.locator("td").nth(1)).to_have_text(value)

    def shows_plot(self, name: str) -> None:
        """The metadata of the page opens a picture of this name that the browser could draw."""
        self._page.get_by_text("[Show Markdown]").click()
        picture = self._page.get_by_role("dialog").get_by_role("img", name=name)
        expect(picture).to_be_visible()
        expect(picture).to_have_js_property("complete", value=True)
        assert picture.evaluate("image => image.naturalWidth") > 0


def instant_text(instant: datetime) -> str:
    """As the UI writes it: `Jan 2, 2013, 5:10:00 PM UTC`."""
    return f"{instant:%b %-d, %Y, %-I:%M:%S %p} UTC"
