"""`gdd.evaluate`: values of one policy from an environment in which another one acts."""

from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from gradient_dd.errors import Unquoted, bad_request, file_path, number, whole_number
from gradient_dd.evaluation.checkpoint import Asked, digest_of, fingerprint_of, read_checkpoint, write_checkpoint
from gradient_dd.evaluation.collect import Place, Steps, batch_of, one_round, place_of
from gradient_dd.evaluation.result import Evaluation
from gradient_dd.evaluation.stream import Evaluator
from gradient_dd.evaluation.transitions import Transitions, transitions_of
from gradient_dd.fingerprint import code_of
from gradient_dd.learners import Rule
from gradient_dd.stream.features import Features, Own, Rows, Structured, features_of_space
from gradient_dd.stream.features.named import OVER_A_RANGE, Named, map_of
from gradient_dd.stream.features.structured import batched, bounds_of, flattened, layout_of
from gradient_dd.stream.policies import Policy, policy_of

UNBOUNDED = 1e6  # a bound of a space beyond this is none


def evaluate(
    env: Any,
    *,
    target: Any,
    behaviour: Any = None,
    features: Any = None,
    learner: str | Rule = "auto",
    steps: int = 100_000,
    discount: float = 0.99,
    seed: int = 0,
    round_steps: int = 10_000,
    checkpoint: str | PathLike[str] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Evaluation:
    """Return the values of `target`, learnt while `behaviour` acts in an environment with whole-number actions.

    env          a Gymnasium environment, single or vector, or the name of one
    target       the policy whose values are wanted: a table (states, actions) of probabilities, or a function of a
                 batch of observations that returns (n, actions) probabilities, such as a network
    behaviour    the policy that acts, likewise; default `target` itself
    features     a feature map, a function of one observation, or a word, as `evaluate_log` takes it: "table", "raw",
                 "standard", "tiles", … Bounds that a space lacks are those of the first round. Default tiles over the
                 space of observations
    learner      "auto", "lstd", a name in LEARNERS or a Rule
    steps        how many transitions
    discount     into every state that does not end the episode
    round_steps  a round has at most so many transitions, and begins with a reset from a seed of its own. What goes on
                 at the end of a round is cut, as by a time limit
    checkpoint   a file that is written after every round. If it exists, the evaluation goes on from it, and gives the
                 bits of one that never stopped if the environment obeys the seed of its reset and the policies draw
                 no random numbers
    on_progress  is called after every round with the transitions done and wanted
    options      of `Evaluator`: alpha and other parameters of the learner, confidence, initial_w, ...

    >>> import gymnasium, numpy as np
    >>> right = np.tile([0.1, 0.1, 0.7, 0.1], (16, 1))
    >>> found = evaluate(gymnasium.make("FrozenLake-v1"), target=right, discount=0.9, steps=2_000)
    >>> found.values.shape
    (1,)
    """
    place = place_of(env)
    space = place.observation_space
    actions, first = int(place.action_space.n), int(getattr(space, "start", 0)) if hasattr(space, "n") else 0
    wanted = policy_of("target", target, actions, first)
    acting = wanted if behaviour is None else policy_of("behaviour", behaviour, actions, first)
    asked = whole_number("'steps'", steps)
    gamma = number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)
    seed, full = whole_number("'seed'", seed, at_least=0), whole_number("'round_steps'", round_steps)
    if on_progress is not None and not callable(on_progress):
        raise bad_request("'on_progress'", "be a function of two numbers", on_progress)
    first_round = partial(round_of, place, acting, wanted, seed, 0, full)
    basis = features_in(features, place, first_round)
    given = {"learner": learner, "features": basis, "seed": seed, **options}
    rounds = rows = episodes = 0
    evaluator = None
    request: dict[str, Any] = {}
    if checkpoint is not None:
        if not file_path("'checkpoint'", checkpoint).absolute().parent.is_dir():
            raise bad_request("'checkpoint'", "be a file in a folder that exists", checkpoint)
        rule = digest_of((learner.name, code_of(learner.step))) if isinstance(learner, Rule) else learner
        request = {"seed": seed, "round_steps": full, "copies": place.copies, "discount": gamma}
        request |= {"learner": rule, "options": digest_of(options)}
        request |= fingerprint_of(Asked(place, target, behaviour, wanted, acting, basis), seed)
        held = read_checkpoint(checkpoint, request, **given)
        if held is not None:
            (rounds, rows, episodes), evaluator = held
    if evaluator is None and basis.n_features:  # a function of the user's own tells how many when it is first called
        evaluator = Evaluator(basis.n_features, **given)
    while rows < asked:
        most = min(full, asked - rows)
        made = round_of(place, acting, wanted, seed, rounds, most)
        batch = as_transitions(made, basis, gamma, episodes)
        evaluator = evaluator or Evaluator(basis.n_features, **given)
        evaluator.observe(batch)
        rounds, rows, episodes = rounds + 1, rows + len(batch), int(batch.episode[-1]) + 1
        if checkpoint is not None and most == full:  # a shorter round is not one of a longer run
            write_checkpoint(checkpoint, request, (rounds, rows, episodes), evaluator)
        if on_progress is not None:
            on_progress(rows, asked)
    if evaluator is None or rows > asked:
        raise bad_request("'steps'", f"be {rows} or more, which the checkpoint has", asked, "Remove it to begin anew.")
    return evaluator.result()


def round_of(place: Place, acting: Policy, wanted: Policy, seed: int, number: int, most: int) -> Steps:
    """Return the transitions of the round with this number."""
    seeds = np.random.SeedSequence([seed, number])
    reset = int(seeds.generate_state(1)[0] % 2**31)
    return one_round(place, acting, wanted, reset, np.random.default_rng(seeds), most)


def features_in(features: Any, place: Place, first_round: Callable[[], Steps]) -> Features:
    """Return a feature map: the one given, that of a function or of a word, or tiles over the space."""
    space = place.observation_space
    if features is None:
        return features_of_space(space)
    if not isinstance(features, str):
        return features if isinstance(features, Features) else Own(features)
    layout = layout_of(space)
    if layout[0] == "whole" and features in ("table", *OVER_A_RANGE):
        return features_of_space(space)
    if features in OVER_A_RANGE and (np.abs(bounds_of(space)) < UNBOUNDED).all():
        return features_of_space(space, features)
    if features == "table":
        rule = "have whole numbers as observations for features='table'"
        raise bad_request("The environment", rule, Unquoted(type(space).__name__))
    seen = first_round().observation
    first = (
        np.reshape(seen, (len(seen), -1))
        if layout[0] == "whole"
        else flattened(layout, batched(layout, seen), len(seen))
    )
    flat, _ = map_of(features, Named(first, lambda: first))
    return flat if layout[0] in ("box", "whole") else Structured(layout, flat)


def as_transitions(made: Steps, basis: Features, discount: float, episodes: int) -> Transitions:
    """Return the transitions of a round as a batch, its episodes numbered from `episodes` on."""
    after = [  # what stands after an end is not looked at, and may be outside of what the map takes
        here if ended else there
        for here, there, ended in zip(made.observation, made.next_observation, made.terminated, strict=True)
    ]
    here, there = (rows_of(basis, seen) for seen in (made.observation, after))
    over = made.terminated | made.cut
    episode = episodes + np.cumsum(over) - over
    into = np.where(made.terminated, 0.0, discount)
    return transitions_of(here, made.reward, into, there, made.rho, episode, made.cut)


def rows_of(basis: Features, observations: list[Any]) -> Rows:
    """Return the feature rows of single observations."""
    if isinstance(basis, Own) or isinstance(observations[0], dict | tuple):
        return basis.rows(observations)
    return basis.rows(batch_of(observations))
