"""What the file of saved questions holds, how it is checked, and what the caller must give again."""

from typing import Any

import numpy as np

from gradient_dd.errors import BadRequestError, bad_request, whole_number
from gradient_dd.files import DamagedFileError, FileKind, open_saved, write_file
from gradient_dd.stream.learner_file import described_map, saved_map, saved_rule
from gradient_dd.stream.question import ROLES, Question

QUESTIONS_FILE = FileKind("questions", "questions saved by gradient-dd", 1)
EVIDENCE = ("ratios", "squares", "weights")


def described(question: Question) -> dict[str, Any]:
    """Return what a header says of a question; of functions and arrays, only that there is one."""
    parts: dict[str, Any] = {"name": question.name}
    for role in ROLES:
        value = getattr(question, role)
        plain = value is None or isinstance(value, str)
        given = callable(value) or (not plain and np.ndim(value) > 0)
        parts[role] = {"given": True} if given else value if plain else float(value)
    return parts


def write_questions(horde: Any, path: Any) -> None:
    """Write the file of some `Questions`."""
    shards = [shard.call("read", "state") for shard in horde._shards]
    evidence = horde._evidence
    arrays = {"initial_w": horde._initial_w} | {name: getattr(evidence, name) for name in EVIDENCE}
    for k, state in enumerate(shards):
        arrays |= {f"{name}_{k}": value for name, value in state.items() if isinstance(value, np.ndarray)}
    header = {
        "learner": horde.setting.rule.name,
        "values": dict(horde.setting.values),
        "rho_mode": horde.setting.rho_mode,
        "n_features": horde.n_features,
        "precision": horde.precision,
        "features": described_map(horde.features),
        "questions": [described(one) for one in horde.questions],
        "group": horde.asked.group.tolist(),
        "steps": evidence.steps,
        "widest": evidence.widest,
        "keep_all": [state["keep_all"] for state in shards],
    }
    write_file(path, QUESTIONS_FILE, header, arrays)


def saved_questions(path: Any, saved: list[dict[str, Any]], given: Any) -> Any:
    """Return the questions given, if they have the names of those saved, or the saved ones."""
    names = [one["name"] for one in saved]
    if given is not None:
        if [getattr(one, "name", None) for one in given] != names:
            raise bad_request(f"The questions of {str(path)!r}", "have the names they were saved with, in order", names)
        return given
    for one in saved:
        if any(isinstance(one[role], dict) for role in ROLES):
            what = f"{str(path)!r} was saved with a function or an array in question {one['name']!r}"
            raise BadRequestError(f"{what}: give the questions again, questions=...")
    return [Question(**one) for one in saved]


def read_questions(kind: Any, path: Any, questions: Any, learner: Any, features: Any, client: Any) -> Any:
    """Return the `Questions` that a file holds, all of it checked."""
    with open_saved(path, QUESTIONS_FILE) as (header, arrays):
        p = whole_number("'n_features'", header["n_features"])
        if arrays["initial_w"].shape != (p,):  # before as many features are looked at
            raise DamagedFileError("another number of features")
        horde = kind(
            saved_questions(path, header["questions"], questions),
            p,
            features=saved_map(path, header["features"], features),
            learner=saved_rule(path, header["learner"], learner),
            initial_w=arrays["initial_w"],
            precision=header["precision"],
            client=client,
            rho_mode=header["rho_mode"],
            **header["values"],
        )
        if horde.asked.group.tolist() != header["group"]:
            rule = "share discounts, targets and interests as when they were saved"
            raise bad_request(f"The questions of {str(path)!r}", rule, horde.asked.group.tolist())
        if len(horde._shards) != len(header["keep_all"]):
            rule = f"be loaded on {len(header['keep_all'])} workers, as they were saved"
            raise bad_request(f"The questions of {str(path)!r}", rule, len(horde._shards))
        steps = whole_number("'steps'", header["steps"], at_least=0)
        for k, shard in enumerate(horde._shards):
            state = shard.call("read", "state")
            for name, value in state.items():
                if isinstance(value, np.ndarray):
                    state[name] = checked(arrays.pop(f"{name}_{k}"), value)
            shard.call("restore", state | {"steps": steps, "keep_all": bool(header["keep_all"][k])})
        evidence = horde._evidence
        for name in EVIDENCE:
            setattr(evidence, name, checked(arrays.pop(name), getattr(evidence, name)))
        evidence.steps, evidence.widest = steps, whole_number("'widest'", header["widest"])
        if set(arrays) != {"initial_w"}:
            raise DamagedFileError("other arrays")
        return horde


def checked(found: Any, like: Any) -> Any:
    """Return an array of a file if it has the shape and kind of another, all finite."""
    if found.shape != like.shape or found.dtype != like.dtype or not np.isfinite(found).all():
        raise DamagedFileError("other arrays, or numbers that are not finite")
    return found
