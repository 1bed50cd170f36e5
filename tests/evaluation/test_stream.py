"""How a stream is taken in: what is kept, replayed and noted, with learners that learn nothing; shadows; averages."""

from types import SimpleNamespace

import numpy as np
import pytest

from gradient_dd.errors import BadRequestError
from gradient_dd.evaluation import portfolio as rooms
from gradient_dd.evaluation import stream, transitions_of
from gradient_dd.evaluation.choice import Candidate
from gradient_dd.evaluation.episodes import Blocks, EpisodeSample
from gradient_dd.evaluation.portfolio import Portfolio, TdShadows, TdStability, settings_to_try
from gradient_dd.learners import LEARNERS


class Silent:
    """A portfolio that learns nothing, and remembers what it was given."""

    autos = ()

    def __init__(self, settings, initial_w, unit, seed, with_auto):
        self.settings, self.initial_w, self.unit, self.seed = settings, initial_w, unit, seed
        self.with_auto = with_auto
        self.batches, self.steps, self.copies, self.older = [], 0, 2, []
        self.weights = np.ones((200, 2))
        self.weights[::2, 0] = self.weights[1::2, 1] = 0.0
        self.shadows = SimpleNamespace(verdict=lambda: TdStability("stable", 1.0, 0.0))

    def learn(self, batch, group):
        """Remember a batch."""
        self.batches.append((batch.reward.tolist(), group.tolist()))
        self.steps += len(batch)

    def averages(self):
        """Return zeros."""
        return np.zeros((len(self.settings), 3, len(self.initial_w)))

    def diverged(self):
        """Return that nothing diverged."""
        return [0] * len(self.settings)

    def moved(self, setting):
        """Return that there are no windows."""


@pytest.fixture
def silent(monkeypatch):
    """Let portfolios learn nothing, and return those that were made."""
    made = []

    def portfolio(*given):
        made.append(Silent(*given))
        return made[-1]

    monkeypatch.setattr(stream, "Portfolio", portfolio)
    return made


def numbered(first, n, length=10):
    """Return rows whose reward is their number, in episodes of some rows."""
    row = np.arange(first, first + n)
    x = np.column_stack([np.ones(n), row % length]) * 1.0
    x_next = np.column_stack([np.ones(n), row % length + 1]) * 1.0
    return transitions_of(x, row * 1.0, np.where(row % length == length - 1, 0.0, 0.5), x_next, episode=row // length)


def fed(sizes, **options):
    """Return an evaluator that was given batches of these sizes."""
    evaluator, first = stream.Evaluator(2, **options), 0
    for n in sizes:
        evaluator.observe(numbered(first, n))
        first += n
    return evaluator


def rewards_of(portfolio):
    """Return the rewards that a portfolio was given, in order."""
    return [reward for rewards, _ in portfolio.batches for reward in rewards]


@pytest.mark.parametrize(("rows", "passes"), [(2000, 50), (4000, 50), (5000, 40), (6000, 34), (20_000, 10)])
def test_a_short_stream_is_replayed(silent, rows, passes):
    found = fed([rows]).result()
    assert found.passes == passes
    assert silent[0].steps == passes * rows
    sizes = [len(rewards) for rewards, _ in silent[0].batches[: -(-rows // 4096)]]
    assert sizes == [min(4096, rows - begin) for begin in range(0, rows, 4096)]


def test_a_replay_is_in_the_order_of_the_log_or_shuffled(silent):
    fed([50], passes=2).result()
    assert rewards_of(silent[0]) == [*range(50), *range(50)]
    fed([50], passes=2, order="shuffled").result()
    first, second = (rewards_of(silent[1])[part] for part in (slice(50), slice(50, 100)))
    assert sorted(first) == sorted(second) == [*range(50)]
    assert first != second
    assert first != [*range(50)]


def test_a_long_stream_is_learnt_as_it_passes(silent, monkeypatch):
    monkeypatch.setattr(stream, "KEPT", 100)
    evaluator = fed([60, 40])
    assert evaluator.portfolio is None
    evaluator.learn_again(numbered(0, 100), True)  # nothing to do yet
    for first, n in ((100, 1), (101, 30)):
        evaluator.observe(numbered(first, n))
    (portfolio,) = silent
    assert [len(rewards) for rewards, _ in portfolio.batches] == [101, 30]
    assert rewards_of(portfolio) == [*range(131)]
    assert len(evaluator.first[0]) == 101
    evaluator.learn_again(numbered(0, 131), True)
    assert portfolio.batches[-1][1] == [group for _, groups in portfolio.batches[:2] for group in groups]
    found = evaluator.result()
    assert (found.rows, found.passes) == (131, 2)


def test_step_sizes_are_in_units_of_the_mean_square(silent):
    fed([10], passes=1, initial_w=[1.0, 2.0], seed=7).result()
    (portfolio,) = silent
    assert portfolio.unit == pytest.approx(1 / (1 + np.mean(np.arange(10.0) ** 2)))
    assert portfolio.initial_w.tolist() == [1.0, 2.0]
    assert portfolio.seed == 7
    assert len(portfolio.settings) == 24
    fed([10], passes=1, learner="gradient_dd", kappa=3.0).result()
    assert len(silent[1].settings) == 6
    assert {one.values["kappa"] for one in silent[1].settings} == {3.0}
    fed([10], passes=1, learner="td", alpha=0.25).result()
    assert [str(one) for one in silent[2].settings] == ["td(alpha=0.25)"]


@pytest.mark.parametrize(
    ("n_features", "learner", "wanted"),
    [(2000, "auto", False), (2001, "auto", True), (2001, "td", False), (2001, "lstd", False), (100_000, "auto", False)],
)
def test_auto_has_an_auto_learner_beyond_lstd(n_features, learner, wanted, silent):
    stream.Evaluator(n_features, learner=learner).begin(1.0)
    assert silent[0].with_auto == wanted


def test_a_stream_is_looked_at_whenever_its_rows_have_doubled(silent, monkeypatch):
    monkeypatch.setattr(stream, "KEPT", 100)
    words = iter("aabbc")
    looks = []

    def choose(self, portfolio, solver):
        chosen = Candidate("td", next(words), np.zeros(2), np.zeros((2, 2)), np.zeros(2))
        looks.append(self.rows)
        return [chosen, Candidate("initial weights", "", np.zeros(2), np.zeros((2, 2)), np.ones(2))], chosen, False

    monkeypatch.setattr(stream.Evaluator, "_choose", choose)
    found = fed([50] * 20).result()
    assert looks == [200, 400, 800, 1000]
    assert found.switches == ((200, "a"), (800, "b"))
    looks.clear()
    assert fed([50] * 20, learner="td").ahead == []
    assert looks == []


def test_values_are_reported_for_the_first_states_of_episodes(silent):
    x = np.arange(1.0, 151.0)[:, None]
    evaluator = stream.Evaluator(1, passes=1)
    for part in (slice(0, 90), slice(90, 95), slice(95, 150)):
        evaluator.observe(transitions_of(x[part], 1.0, 0.0, x[part], episode=np.arange(150)[part]))
    assert evaluator.result().points.values[:, 0].tolist() == [*range(1, 101)]


def test_what_may_be_chosen(silent):
    """LSTD is best on these data; a learner that was asked for is taken all the same."""
    assert fed([500], passes=1).result().chosen.startswith("lstd")
    assert fed([500], passes=1, learner="lstd").result().chosen.startswith("lstd")
    assert fed([500], passes=1, learner="tdrc").result().chosen.startswith("tdrc")
    evaluator = fed([500], passes=1)
    portfolio, _ = evaluator._replayed()
    assert evaluator._choose(portfolio, None)[1].name == "td"  # of equal errors the first
    portfolio.shadows.verdict = lambda: TdStability("unstable", 0.0, 1.0)
    assert evaluator._choose(portfolio, None)[1].name == "tdrc"
    wide = stream.Evaluator(2001, passes=1, learner="lstd")
    place = np.zeros((30, 1), int)
    wide.observe(transitions_of((place, np.ones((30, 1))), 1.0, 0.5, (place, np.ones((30, 1)))))
    with pytest.raises(BadRequestError, match="'learner' must be 'auto' or linear in time for so many features"):
        wide.result()


def test_episodes_go_on_where_they_stopped():
    evaluator = fed([25])
    evaluator.observe(numbered(25, 5))
    assert evaluator.diagnosis.episodes == 3
    with pytest.raises(BadRequestError, match="The episode of a batch must be 2 or more, as before"):
        evaluator.observe(numbered(0, 5))


def test_blocks_grow_with_the_stream():
    blocks = Blocks()
    short = blocks.number(np.arange(300))
    assert short.tolist() == [*range(300)]  # a block for each episode
    assert blocks.groups(np.arange(300, 302)).tolist() == [100, 101]
    long = Blocks()
    long.number(np.arange(4000))
    assert (np.bincount(long.number(np.arange(4000, 4100)) - long.block + 10)[-5:-1] >= 20).all()
    endless = Blocks().number(np.zeros(250, int))
    assert np.bincount(endless).tolist() == [100, 100, 50]
    begins = Blocks()
    begins.number(np.array([0, 0, 1]))
    assert begins.begins(np.array([1, 2, 2])).tolist() == [False, True, False]


def test_a_sample_doubles_its_stride_when_it_is_full():
    sample = EpisodeSample(most_numbers=12)
    for begin in (0, 10):
        log = transitions_of(np.ones((10, 2)), 1.0, 0.0, np.ones((10, 2)), episode=np.arange(begin, begin + 10))
        sample.add(log.part(slice(6)), np.arange(6))
        assert sample.whole == (begin == 0)
    assert sample.joined()[0].episode.tolist() == [0, 2, 4, 10, 12, 14]
    assert sample.joined()[1].tolist() == [0, 2, 4, 0, 2, 4]
    sample.add(log.part(slice(7, 10)), np.arange(3))
    assert sample.joined()[0].episode.tolist() == [0, 4, 12]


def shadows(first, last, stopped=()):
    """Return what shadows say whose sizes were these; two for each of four step sizes, the largest first."""
    one = TdShadows.__new__(TdShadows)
    at = np.full(8, -1)
    at[list(stopped)] = 5
    one.lanes = SimpleNamespace(stopped=at, count=8)
    one.sizes = [np.array(first, float), np.array(last, float)]
    return one.verdict()


def test_the_smallest_step_size_that_tells_is_believed():
    same = [1.0] * 8
    assert shadows(same, [0.01] * 8) == ("stable", 1.0, 0.0)
    assert shadows(same, [30.0] * 8) == ("unstable", 0.0, 1.0)
    assert shadows(same, same) == ("unclear", 0.0, 0.0)
    assert shadows(same, [0.01] * 6 + [30.0] * 2) == ("unstable", 0.75, 0.25)
    assert shadows(same, [30.0] * 6 + [0.01] * 2) == ("stable", 0.25, 0.75)
    assert shadows(same, [30.0] * 2 + [1.0, 0.01] * 3) == ("unstable", 0.375, 0.25)  # half of two does not tell
    assert shadows(same, [0.05, 20.0] * 4) == ("unclear", 0.0, 0.0)
    assert shadows([2.0] * 8, [0.09] * 8).verdict == "stable"
    assert shadows([2.0] * 8, [39.0] * 8) == ("unclear", 0.0, 0.0)
    assert shadows(same, [np.nan] * 8).verdict == "unstable"
    assert shadows(same, [0.01] * 8, stopped=range(8)) == ("unstable", 0.0, 1.0)
    silent = TdShadows.__new__(TdShadows)
    silent.sizes = []
    assert silent.verdict() == ("unclear", 0.0, 0.0)


def test_settings_are_fewer_where_memory_is_short():
    every = settings_to_try(2.0, 100, None, {})
    assert [one.rule.name for one in every[:4]] == ["td", "tdrc", "gradient_dd", "gtd2"]
    assert [one.values["alpha"] for one in every[::4]] == [0.8, 0.3, 0.1, 0.04, 0.012, 0.004]
    own = settings_to_try(1.0, 100, LEARNERS["tdc"], {})
    assert [one.rule.name for one in own] == ["tdc"] * 6
    few = settings_to_try(1.0, 1_000_000, None, {})
    names = "td", "tdrc", "gradient_dd"
    wanted = [(name, alpha) for alpha in (0.4, 0.05, 0.006) for name in names]
    assert [(one.rule.name, one.values["alpha"]) for one in few] == wanted
    assert len(settings_to_try(1.0, 10_000_000, None, {})) == 3
    assert (rooms.copies_of(99_999), rooms.copies_of(100_000)) == (8, 3)
    assert (rooms.precision(99_999), rooms.precision(100_000)) == (np.float64, np.float32)


def a_portfolio():
    """Return a portfolio of three settings of two rules, whose lanes are stand-ins with known weights and sums."""
    settings = [
        LEARNERS["td"].setting(alpha=0.1),
        LEARNERS["tdc"].setting(alpha=0.1),
        LEARNERS["td"].setting(alpha=0.2),
    ]
    made = Portfolio(settings, np.zeros(1), 1.0, 3)
    made.lanes = []
    for places in made.places:
        lanes = 9 * len(places)
        w = np.array([[100.0 * k + r for k in places for r in range(9)]])
        spare = np.zeros((1, 2))
        made.lanes.append(
            SimpleNamespace(w=w, count=lanes, sums=np.hstack([4 * w, spare]), counted=0, stopped=np.full(lanes + 2, -1))
        )
    return made


def test_averages_are_over_both_windows():
    one = a_portfolio()
    assert one.places == [[0, 2], [1]]
    assert one.weights.shape == (200, 8)
    present = np.array([[100.0 * k + r for r in range(9)] for k in range(3)])[..., None]
    assert np.array_equal(one.averages(), present)  # nothing was added yet
    for lanes in one.lanes:
        lanes.counted = 2
    assert np.array_equal(one.averages(), 2 * present)
    assert one.moved(one.settings[2]) is None
    one.older = [(lanes.sums + 8.0, 6) for lanes in one.lanes]
    assert np.allclose(one.averages(), (8 * present + 8.0) / 8)
    older, newer = one.moved(one.settings[2])
    assert (older.tolist(), newer.tolist()) == ([(800.0 + 8.0) / 6], [400.0])
    assert one.moved(None) is None


def test_the_first_divergence_of_a_setting_or_its_copies_is_reported():
    one = a_portfolio()
    one.lanes[0].stopped[[9, 12]] = 50, 20
    one.lanes[1].stopped[-1] = 3  # no lane of a setting
    assert one.diverged() == [0, 0, 21]
