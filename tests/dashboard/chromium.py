"""Finds the Chromium that opens the dashboard."""

import shutil

CHROMIUM = (
    "chromium-headless-shell",  # the same engine without windows: a third less processor time
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
MISSING = f"no browser is installed: none of {', '.join(CHROMIUM)} is on the path"


def found_chromium() -> str | None:
    """Return the path of the first one that is installed, or None."""
    return next(filter(None, map(shutil.which, CHROMIUM)), None)
