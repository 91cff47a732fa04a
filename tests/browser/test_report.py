"""The page of `report` in a real browser: readable at any width, and it loads nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import ConsoleMessage, Request, expect

from tests.browser.dagster_pages import browser_page
from tests.support.reported import SHOWN, reported_project
from windows_pipeline.report.gather import read_report
from windows_pipeline.report.page import report_page


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The page of a project whose key is hostile."""
    read = read_report(reported_project(tmp_path), str(tmp_path / "warehouse"))
    written = tmp_path / "report.html"
    written.write_text(report_page(read, datetime.now(UTC)))
    return written


def test_the_page_is_readable_and_loads_nothing(file: Path, tmp_path: Path) -> None:
    said: list[str] = []
    requested: list[str] = []
    with browser_page(tmp_path / "last_seen.png") as page:

        def hear(message: ConsoleMessage) -> None:
            said.append(message.text)

        def note(request: Request) -> None:
            requested.append(request.url)

        page.on("console", hear)
        page.on("request", note)
        page.goto(file.as_uri())
        # The policy lets the page's own style through: cards stand side by side.
        expect(page.locator(".cards")).to_have_css("display", "grid")
        expect(page.get_by_role("heading", name="Episodes: 2")).to_be_visible()
        cell = page.locator("td").get_by_text(SHOWN, exact=True).first
        expect(cell).to_be_visible()
        strip = page.locator("figure svg path.line").first
        assert strip.evaluate("line => getComputedStyle(line).fill") == "none"
        paper = {}
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            paper[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper["light"] != paper["dark"]
        for width in (360, 1500):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.emulate_media(media="print")
        expect(page.locator("nav")).to_be_hidden()
        assert page.pdf()
    assert (said, requested) == ([], [file.as_uri()])
