"""What the file of a saved NetworkLearner holds, and how it is read."""

from typing import Any

import numpy as np

from gradient_dd.errors import BadRequestError, extra
from gradient_dd.files import DamagedFileError, FileKind, open_saved, write_file
from gradient_dd.networks.network import Network
from gradient_dd.stream.learner_file import saved_rule

with extra("neural"):
    import jax
    import jax.numpy as jnp

NETWORK_FILE = FileKind("network learner", "a network learner saved by gradient-dd", 1)


def write_learner(agent: Any, path: Any) -> None:
    """Write the file of a network learner: a header, and every array of its state by number."""
    header = {
        "rule": agent.rule.name,
        "values": dict(agent.setting.values),
        "rho_mode": agent.setting.rho_mode,
        "network": agent.network.as_data(),
        "optimiser": agent.kind.optimiser.name,
        "correction": agent.kind.correction,
        "target": agent.kind.target,
        "options": agent.options,
        "seed": agent.seed,
    }
    arrays = {f"state_{place}": np.asarray(part) for place, part in enumerate(jax.tree.leaves(agent.state))}
    write_file(path, NETWORK_FILE, header, arrays)


def read_learner(cls: Any, path: Any, rule: Any, optimiser: Any) -> Any:
    """Return the network learner that a file holds, all of it checked."""
    with open_saved(path, NETWORK_FILE) as (header, arrays):
        if header["optimiser"] == "own" and optimiser is None:
            raise BadRequestError(
                f"{str(path)!r} was saved with an optimiser of your own: give it again, optimiser=..."
            )
        own, options, values = header["optimiser"] == "own", header["options"], dict(header["values"])
        if options["second_alpha"] is not None:
            del values["zeta"]
        alpha = values.pop("alpha")
        agent = cls(
            saved_rule(path, header["rule"], rule),
            Network(**header["network"]),
            alpha=None if own else alpha,
            optimiser=optimiser if own else header["optimiser"],
            second_alpha=options["second_alpha"],
            seed=header["seed"],
            rho_mode=header["rho_mode"],
            period=options["period"],
            target_period=options["target_period"] if header["target"] else None,
            pull=options["pull"],
            correction=header["correction"],
            **values,
        )
        with agent.network.working():
            leaves, form = jax.tree.flatten(agent.state)
            if set(arrays) != {f"state_{place}" for place in range(len(leaves))}:
                raise DamagedFileError("other arrays")
            saved = [arrays[f"state_{place}"] for place in range(len(leaves))]
            for old, new in zip(leaves, saved, strict=True):
                if old.shape != new.shape or old.dtype != new.dtype or not np.isfinite(new).all():
                    raise DamagedFileError("arrays that are not those of its network")
            agent.state = jax.tree.unflatten(form, [jnp.asarray(one) for one in saved])
        return agent
