"""Lines of progress: done, total, rate and time left, on stderr or in the log."""

import logging

import pytest

from pegboard.formatting import progress_text
from tasks.runtime import progress


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0, 400, 9.0), "0 of 400"),
        ((100, 400, 0.5), "100 of 400"),
        ((100, 400, 10.0), "100 of 400, 10/s, 30 s left"),
        ((100, 400, 1000.0), "100 of 400, 6/min, 50 min left"),
        ((100, 40_000, 100.0), "100 of 40000, 1/s, 11.1 h left"),
        ((400, 400, 10.0), "400 of 400"),
    ],
)
def test_a_line_has_rate_and_time_left_of_a_running_step(arguments, text):
    assert progress_text(*arguments) == text


def test_steps_are_printed_or_logged_without_terminal_escapes(capsys, caplog):
    caplog.set_level(logging.INFO)
    with progress.showing():
        progress.start("embed", 4)
        progress.advance("embed", 4, "kit\x1b[2J")
    progress.start("stage", 1)
    progress.advance("stage")
    with progress.showing(False):
        progress.advance("unknown")

    assert capsys.readouterr().err == "embed: 4 to do\nembed: 4 of 4, kit [2J\n"
    assert caplog.messages == ["stage: 1 to do", "stage: 1 of 1"]
