"""Questions: each has the bits of a `Learner` of its own, with traces and interest; what they share changes nothing."""

import numpy as np
import pytest
import scipy.sparse as sp

from gradient_dd import LEARNERS, BadRequestError, DivergedError, Learner, Question, Questions
from gradient_dd.engine import questions as engine
from tests.rules import with_kernels

STATES, ACTIONS, N = 8, 3, 120
POLICY = np.random.default_rng(5).dirichlet(np.ones(ACTIONS), size=STATES)
CUT = lambda batch: np.where(batch.next_observations == 2, 0.0, 0.8)  # noqa: E731
ENTERED = lambda batch: (batch.next_observations == 3).astype(float)  # noqa: E731
LOW_STATES = lambda batch: batch.observations < 6  # noqa: E731
SIGNAL = np.random.default_rng(6).normal(size=N)
TRACED = {"td": {"lam": 0.9}, "tdrc": {"lam": 0.6}, "etd": {"lam": 0.5}}  # one rule of each kind, and each with a trace
ALL = {
    **{name: {"lam": 0.7} for name in LEARNERS if "lam" in LEARNERS[name].defaults},
    "abtd": {"bootstrap": 0.7},
    "residual_gradient": {},
}
REFUSED = {"pgtd2", "pgtd2_dd", "true_online_td", "gtd2_momentum", "tdc_momentum", "natural_gtd2", "natural_tdc"}
ASKED = [
    Question("on-policy", "signal", 0.9),
    Question("other policy", SIGNAL, 0.5, target=POLICY),
    Question("entering 3", ENTERED, CUT, target=lambda states: POLICY[states], interest=LOW_STATES),
    Question("entering 3, again", ENTERED, CUT, interest=LOW_STATES),
    Question("ones", 1.0, "horizon", target=lambda states, actions: POLICY[states, actions]),
]


def walk(n=N, seed=0):
    """Return what `update_many` takes: a random stream over states, its features being one-hot and a constant."""
    rng = np.random.default_rng(seed)
    states = rng.integers(STATES, size=n + 1)
    rows = np.column_stack([np.eye(STATES)[states], np.ones(n + 1)])
    return {
        "x": rows[:-1],
        "actions": rng.integers(ACTIONS, size=n),
        "x_next": rows[1:],
        "behaviour_probability": rng.uniform(0.3, 0.9, n),
        "observations": states[:-1],
        "next_observations": states[1:],
        "columns": {"signal": SIGNAL[:n], "horizon": np.where(rng.random(n) < 0.1, 0.0, 0.7)},
    }


def part_of(given, part):
    """Return some rows of what `update_many` takes."""
    return {
        name: {key: one[part] for key, one in value.items()} if name == "columns" else value[part]
        for name, value in given.items()
    }


def own_numbers(given, name):
    """Return cumulant, discount, probability under the target and interest of a question of ASKED, written out."""
    states, after, n = given["observations"], given["next_observations"], len(given["observations"])
    pi, mu = POLICY[states, given["actions"]], given["behaviour_probability"]
    ending, entered, low = np.where(after == 2, 0.0, 0.8), (after == 3).astype(float), states < 6
    everywhere = np.ones(n, bool)
    return {
        "on-policy": (SIGNAL[:n], np.full(n, 0.9), mu, everywhere),
        "other policy": (SIGNAL[:n], np.full(n, 0.5), pi, everywhere),
        "entering 3": (entered, ending, pi, low),
        "entering 3, again": (entered, ending, mu, low),
        "ones": (np.ones(n), given["columns"]["horizon"], pi, everywhere),
    }[name]


def alone(given, name, agent, form):
    """Let a learner learn one question of ASKED, transition by transition."""
    cumulant, discount, pi, interest = own_numbers(given, name)
    mu, rows = given["behaviour_probability"], (form(given["x"]), form(given["x_next"]))
    for t in np.flatnonzero(interest):
        x, x_next = ((one[t].indices, one[t].data) if sp.issparse(one) else one[t] for one in rows)
        agent.update(x, cumulant[t], discount[t], x_next, pi[t] / mu[t], pi=pi[t], mu=mu[t])


def assert_same_as_alone(learner, parameters, form, asked=ASKED):
    """Compare every question with a learner of its own; the stream comes in pieces."""
    given = walk()
    horde = Questions(asked, n_features=STATES + 1, learner=learner, alpha=0.05, **parameters)
    for part in (slice(0, 1), slice(1, 50), slice(50, N)):
        piece = part_of(given, part)
        fixed = [one if one.cumulant is not SIGNAL else Question(one.name, SIGNAL[part], 0.5, POLICY) for one in asked]
        horde.asked.questions = tuple(fixed)
        horde.update_many(**piece | {"x": form(piece["x"]), "x_next": form(piece["x_next"])})
    for k, question in enumerate(asked):
        agent = Learner(learner, STATES + 1, alpha=0.05, **parameters)
        alone(given, question.name, agent, form)
        assert np.array_equal(horde.w[k], agent.w), question.name
        assert np.array_equal(horde.eta[k], agent.eta), question.name
        assert np.abs(agent.w).max() > 1e-3


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("learner", with_kernels(TRACED, ("td",)))
@pytest.mark.parametrize("sharing", ["own traces", "shared traces"])
def test_each_question_has_the_bits_of_a_learner_alone(learner, form, sharing, monkeypatch):
    monkeypatch.setattr(engine, "FEWEST", 16 if sharing == "own traces" else 0)
    assert_same_as_alone(learner, TRACED[learner], form)


@pytest.mark.slow
@pytest.mark.parametrize("learner", with_kernels(ALL))
def test_each_question_has_the_bits_of_a_learner_alone_for_every_rule(learner):
    if learner in REFUSED:
        pytest.skip("refused by name")
    for parameters in ({}, ALL[learner]):
        assert_same_as_alone(learner, parameters, np.asarray)


@pytest.mark.parametrize("learner", ["gradient_dd"])
def test_without_a_trace_too(learner):
    """Gradient-DD also needs the last change of w: that of the last step which the question saw."""
    assert_same_as_alone(learner, {}, sp.csr_matrix)


def test_every_rule_is_taken_or_refused_by_name():
    for name in LEARNERS:
        if name not in REFUSED:
            Questions(ASKED, n_features=2, learner=name)
            continue
        with pytest.raises(BadRequestError, match=name):
            Questions(ASKED, n_features=2, learner=name)


def test_many_lanes_share_few_traces():
    horizons = (0.5, 0.9)
    asked = [Question(f"{k} {g}", float(k), g) for k in range(40) for g in horizons]
    horde = Questions(asked, n_features=STATES + 1, learner="td", alpha=0.05, lam=0.9)
    memory = horde._memory
    assert memory.shared
    assert memory.traces.shape == (1, STATES + 1, len(horizons))
    given = walk()
    horde.update_many(given["x"], x_next=given["x_next"])
    agent = Learner("td", STATES + 1, alpha=0.05, lam=0.9)
    agent.update_many(given["x"], 7.0, 0.9, given["x_next"])
    assert np.array_equal(horde.w[horde.names.index("7 0.9")], agent.w)


def test_single_precision_is_near_and_half_as_large():
    given = walk()
    single, double = (
        Questions(ASKED[:1], n_features=STATES + 1, learner="td", alpha=0.05, lam=0.9, precision=kind)
        for kind in ("float32", "float64")
    )
    for horde in (single, double):
        horde.update_many(**given)
    assert np.allclose(single.w, double.w, rtol=1e-4, atol=1e-6)
    assert not np.array_equal(single.w, double.w)
    assert np.array_equal(single.predict(given["x"][0]), single.predict(given["x"][:1])[0])


def test_update_is_update_many_row_by_row():
    given, asked = walk(30), [ASKED[0], *ASKED[2:]]
    many, one = (Questions(asked, n_features=STATES + 1, learner="td", alpha=0.05, lam=0.9) for _ in range(2))
    many.update_many(**given)
    names = {"actions": "action", "observations": "observation", "next_observations": "next_observation"}
    for t in range(30):
        row = {names.get(name, name): value[t] for name, value in given.items() if name != "columns"}
        one.update(**row, columns={name: value[t] for name, value in given["columns"].items()})
    assert np.array_equal(many.w, one.w)
    assert many.summary().equals(one.summary())


def test_terminated_ends_every_question():
    given, end = walk(), np.arange(N) % 10 == 9
    horde = Questions([Question("all", 1.0, 1.0)], n_features=STATES + 1, learner="td", alpha=0.05, lam=0.9)
    horde.update_many(given["x"], x_next=given["x_next"], terminated=end)
    agent = Learner("td", STATES + 1, alpha=0.05, lam=0.9)
    agent.update_many(given["x"], 1.0, np.where(end, 0.0, 1.0), given["x_next"])
    assert np.array_equal(horde.w[0], agent.w)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_question_that_diverges_stops_alone_and_is_named(precision):
    given = walk()
    calm = Question("calm", 1.0, 0.5)
    wild = Question("wild", 1.0, 0.99, target=lambda states, actions: np.ones(len(states)))
    options = {"n_features": STATES + 1, "learner": "td", "alpha": 0.9, "lam": 0.9, "precision": precision}
    both, one = Questions([calm, wild], **options), Questions([calm], **options)
    for _ in range(5):
        for horde in (both, one):
            horde.update_many(**given)
    assert list(both.diverged) == ["wild"]
    assert np.array_equal(both.w[0], one.w[0])
    assert np.isfinite(both.w).all()
    assert both.summary()["name"].iloc[-1] == "wild"
    assert both.summary()["diverged"].iloc[-1] == both.diverged["wild"]
    if precision == "float64":
        agent = Learner("td", STATES + 1, alpha=0.9, lam=0.9)
        x, x_next = (np.tile(given[name], (5, 1)) for name in ("x", "x_next"))
        with pytest.raises(DivergedError, match=f"at update {both.diverged['wild']}:"):
            agent.update_many(x, 1.0, 0.99, x_next, np.tile(1 / given["behaviour_probability"], 5))
        assert np.array_equal(both.w[1], agent.w)


def test_saved_questions_learn_on_as_if_never_saved(tmp_path):
    given, plain = walk(), [Question("a", "signal", 0.9), Question("b", 1.0, "horizon")]
    for asked, again in ((plain, None), ([ASKED[0], ASKED[2]], [ASKED[0], ASKED[2]])):
        horde = Questions(asked, n_features=STATES + 1, learner="tdrc", alpha=0.05, lam=0.6)
        horde.update_many(**part_of(given, slice(0, 50)))
        horde.save(tmp_path / "horde.npz")
        back = Questions.load(tmp_path / "horde.npz", questions=again)
        for one in (horde, back):
            one.update_many(**part_of(given, slice(50, N)))
        assert np.array_equal(horde.w, back.w)
        assert horde.summary().equals(back.summary())
    with pytest.raises(BadRequestError, match=r"function or an array in question 'entering 3'.*questions=\.\.\."):
        Questions.load(tmp_path / "horde.npz")
    with pytest.raises(BadRequestError, match="have the saved names in the saved order"):
        Questions.load(tmp_path / "horde.npz", questions=plain)


@pytest.mark.parametrize(
    ("asked", "change", "sentence"),
    [
        (ASKED[0], {"columns": {}}, "The cumulant of question 'on-policy', 'signal', must be a column of 'columns'"),
        (
            ASKED[1],
            {"behaviour_probability": None},
            "'behaviour_probability' must be given for question 'other policy'",
        ),
        (ASKED[1], {"behaviour_probability": 0.0}, "'behaviour_probability' in row 0 must be above 0 and at most 1"),
        (ASKED[2], {"actions": None}, "The target of question 'entering 3' gives probabilities of all actions."),
        (ASKED[0], {"observations": np.ones(3)}, "'observations' must have 120 rows, as 'x' has."),
        (Question("q", 1.0, 1.5), {}, "The discount of question 'q' in row 0 must be in [0, 1]. Got 1.5."),
        (Question("q", 1.0, 0.5, interest=0.5), {}, "The interest of question 'q' in row 0 must be 0 or 1. Got 0.5."),
        (Question("q", np.ones(3), 0.5), {}, "The cumulant of question 'q' must give one number for each of 120 rows."),
        (Question("q", lambda batch: batch.speed, 0.5), {}, "The cumulant of question 'q' must run on a batch."),
        (Question("q", lambda batch: np.nan, 0.5), {}, "The cumulant of question 'q' must be finite. Got nan."),
        (Question("q", 1.0, 0.5, target=2.0), {}, "The target of question 'q' in row 0 must be a probability. Got 2."),
    ],
)
def test_a_bad_batch_gets_one_sentence_and_changes_nothing(asked, change, sentence):
    horde = Questions([asked], n_features=STATES + 1, learner="td", lam=0.9)
    with pytest.raises(BadRequestError) as caught:
        horde.update_many(**walk() | change)
    assert str(caught.value).startswith(sentence)
    assert horde.updates == 0
    assert not horde.w.any()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Question("", 1.0, 0.9), "The name of a question must not be empty."),
        (lambda: Question("q", None, 0.9), "The cumulant of question 'q' must be given. Got None."),
        (lambda: Question("q", np.ones((2, 2)), 0.9), "The cumulant of question 'q' must be a number, an array (n,),"),
        (lambda: Questions([], n_features=2), "'questions' must be one Question or more. Got []."),
        (lambda: Questions([ASKED[0], ASKED[0]], n_features=2), "The names of questions must differ. Got 'on-policy'"),
        (lambda: Questions(ASKED), "'n_features' must be a whole number, 1 or more. Got None."),
        (lambda: Questions(ASKED, 2, precision="half"), "'precision' must be 'float64' or 'float32'. Got 'half'."),
        (lambda: Questions(ASKED[:1], 2).summary(by="name"), "'by' must be 'rupee' or"),
    ],
)
def test_bad_questions_get_one_sentence(make, sentence):
    with pytest.raises(BadRequestError) as caught:
        make()
    assert str(caught.value).startswith(sentence)
