"""Minari datasets as logs. The package is not one of ours: install it yourself."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradient_dd.errors import MissingExtraError, Words, must
from gradient_dd.evaluation.log.columns import USUAL
from gradient_dd.evaluation.log.sources import Chunk, Source

NAMES = ("observation", "next_observation", "action", "reward", "terminated", "truncated", "episode")


def load_minari(name: str) -> Source:
    """Return the source of a dataset that Minari has on this machine."""
    try:
        import minari
    except ModuleNotFoundError:
        raise MissingExtraError(
            "A Minari dataset needs minari, which is not installed. Try: pip install minari."
        ) from None
    try:
        return minari_source(minari.load_dataset(name))
    except (FileNotFoundError, ValueError) as error:
        raise must(f"The Minari dataset {name!r}", "be on this machine", Words(error)) from None


def minari_source(dataset: Any) -> Source:
    """Return the source of a Minari dataset: its episodes, and propensities from the infos that each step returned."""
    first = next(iter(dataset.iterate_episodes()), None)
    if first is None:
        raise must("A Minari dataset", "have at least one episode", Words("none"))
    infos = first.infos if isinstance(first.infos, dict) else {}
    usual = [name for role in ("rho", "target_probability", "behaviour_probability") for name in USUAL[role]]
    extras = [name for name in infos if name in usual]

    def chunks(columns: list[str]) -> Iterator[Chunk]:
        for number, episode in enumerate(dataset.iterate_episodes()):
            n = len(episode.rewards)
            observations = np.asarray(episode.observations, dtype=float).reshape(n + 1, -1)
            found = {
                "observation": observations[:-1],
                "next_observation": observations[1:],
                "action": np.asarray(episode.actions),
                "reward": np.asarray(episode.rewards, dtype=float),
                "terminated": np.asarray(episode.terminations),
                "truncated": np.asarray(episode.truncations),
                "episode": np.full(n, number),
            } | {name: np.asarray(episode.infos[name])[-n:] for name in extras}
            yield {column: found[column] for column in columns}

    return Source("the Minari dataset", [*NAMES, *extras], chunks)
