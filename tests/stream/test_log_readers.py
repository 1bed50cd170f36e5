"""Every form of a log gives the same transitions, or is refused; `python -m trials.readers` does the full number."""

import pytest

from trials.readers import compare


@pytest.mark.parametrize("seed", range(0, 60, 15))
def test_made_up_logs_are_read_alike_in_every_form_or_refused_in_every_form(seed):
    for one in range(seed, seed + 15):
        _, disagreement = compare(one)
        assert not disagreement
