"""Pages by keyboard alone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page

MAX_PRESSES = 80


def focus(page: Page, wanted: Locator) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(MAX_PRESSES):
        if wanted.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"the keyboard does not reach {wanted}")


def fill(page: Page, label: str, text: str) -> None:
    """Move to a field, and replace its text."""
    focus(page, page.locator("main input, main textarea").and_(page.get_by_label(label)).first)
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(text)


def press(page: Page, name: str, role: str = "button") -> None:
    """Move to a button or link of the content, and press Enter."""
    focus(page, page.get_by_role("main").get_by_role(role, name=name, exact=True))
    page.keyboard.press("Enter")
