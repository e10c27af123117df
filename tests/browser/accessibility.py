"""What axe-core finds wrong on a page, for people who use a keyboard, a screen reader or larger text."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

SERIOUS = ("serious", "critical")
"""The impacts of violations that keep people from using a page."""
# Without these, axe-core also describes each element that passes, which takes it as long again on a large page.
OPTIONS = {"resultTypes": ["violations"]}


def violations(
    page: Page, inside: str | None = None, excluded: str | None = None, impacts: tuple[str, ...] = ()
) -> list[tuple[str, str, str]]:
    """The violations that axe-core finds: in the whole page or ``inside`` an element, with these impacts or with any.

    Each is given as the id of its rule, what the rule asks for, and the start of the first element that violates it.
    """
    context = {"include": [[inside]] if inside else [["html"]], "exclude": [[excluded]] if excluded else []}
    return [
        (rule["id"], rule["help"], rule["nodes"][0]["html"][:200])
        for rule in Axe().run(page, context=context, options=OPTIONS).response["violations"]
        if not impacts or rule["impact"] in impacts
    ]
