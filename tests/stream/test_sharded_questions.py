"""Questions on Dask workers have the bits of those in one process."""

import numpy as np
import pytest

from gradient_dd import Question, Questions
from tests.stream.test_questions import STATES, part_of, walk

ASKED = [Question(f"{name} {g}", name, g) for g in (0.5, 0.9) for name in ("signal", "horizon")]


@pytest.mark.xdist_group("dask")
def test_workers_give_the_same_bits(tmp_path):
    distributed = pytest.importorskip("distributed")
    options = {"n_features": STATES + 1, "learner": "td", "alpha": 0.05, "lam": 0.9}
    given = walk()
    one = Questions(ASKED, **options)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        many = Questions(ASKED, **options, client=client)
        for horde in (one, many):
            horde.update_many(**part_of(given, slice(0, 50)))
        many.save(tmp_path / "many.npz")
        back = Questions.load(tmp_path / "many.npz", client=client)
        for horde in (one, many, back):
            horde.update_many(**part_of(given, slice(50, None)))
        assert len(many._shards) == 2
        for horde in (many, back):
            assert np.array_equal(horde.w, one.w)
            assert np.array_equal(horde.predict(given["x"][:3]), one.predict(given["x"][:3]))
            assert horde.summary() == one.summary()
            assert horde.diverged == one.diverged == {}
