"""Minari datasets as logs. The package is not one of ours: install it yourself."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gradient_dd.errors import GradientDDError, MissingExtraError, Unquoted, bad_request
from gradient_dd.stream.log.columns import USUAL
from gradient_dd.stream.log.sources import Chunk, Source


def minari_source(given: Any) -> Source:
    """Return the source of a Minari dataset, or of "minari:NAME": its episodes, and propensities from their infos.

    Infos may have one entry more than there are transitions: the first is then that of the reset.
    """
    dataset = load_minari(given.removeprefix("minari:")) if isinstance(given, str) else given
    usual = [name for role in ("rho", "target_probability", "behaviour_probability") for name in USUAL[role]]
    first = next(minari_episodes(dataset), None)
    if first is None:
        raise bad_request("A Minari dataset", "have at least one episode", Unquoted("none"))
    infos = getattr(first, "infos", None)
    extras = [name for name in infos if name in usual] if isinstance(infos, Mapping) else []

    def columns_of(number: int, episode: Any) -> Chunk:
        rewards = np.asarray(episode.rewards)
        n, seen = len(rewards), np.asarray(episode.observations)
        width = int(np.prod(seen.shape[1:]))
        found = {
            "observation": seen[:-1].reshape(-1, width),
            "next_observation": seen[1:].reshape(-1, width),
            "action": np.asarray(episode.actions),
            "reward": rewards,
            "terminated": np.asarray(episode.terminations),
            "truncated": np.asarray(episode.truncations),
            "episode": np.full(n, number),
        } | {name: np.asarray(episode.infos[name]) for name in extras}
        found |= {name: found[name][1:] for name in extras if len(found[name]) == n + 1}
        if len(seen) != n + 1 or any(len(column) != n for column in found.values()):
            raise ValueError("columns of several lengths")
        return found

    def chunks(columns: list[str], names: str | None) -> Iterator[Chunk]:
        for number, episode in enumerate(minari_episodes(dataset)):
            try:
                found = columns_of(number, episode)
            except Exception as error:  # whatever the dataset lacks
                what = f"Episode {number:,} of the Minari dataset"
                rule = "have arrays of observations, actions, rewards, terminations and truncations"
                raise bad_request(what, rule, Unquoted(f"{type(error).__name__}: {error}")) from None
            if len(found["reward"]):
                yield {column: found[column] for column in columns}

    names = ["observation", "next_observation", "action", "reward", "terminated", "truncated", "episode", *extras]
    return Source("the Minari dataset", names, chunks)


def minari_episodes(dataset: Any) -> Iterator[Any]:
    """Yield the episodes of a Minari dataset; an error of the dataset's own becomes one sentence."""
    try:
        yield from dataset.iterate_episodes()
    except GradientDDError:
        raise
    except Exception as error:
        raise bad_request(
            "A Minari dataset", "yield its episodes", Unquoted(f"{type(error).__name__}: {error}")
        ) from None


def load_minari(name: str) -> Any:
    """Return a dataset that Minari has on this machine."""
    try:
        import minari
    except ModuleNotFoundError:
        sentence = "A Minari dataset needs minari, which is not installed. Try: pip install minari."
        raise MissingExtraError(sentence) from None
    try:
        return minari.load_dataset(name)
    except Exception as error:  # the package is not ours, and may raise anything
        raise bad_request(f"The Minari dataset {name!r}", "be on this machine", Unquoted(error)) from None
