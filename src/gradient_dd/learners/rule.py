"""The scalar rule: the definition of a learner.

Every learner in this folder moves its weight vectors along a few directions, by coefficients that depend on a few
scalars. So a learner is a plain function of scalars that returns coefficients; it does not use vectors, tasks, seeds
or files. The reference engine calls this function for one stream; the lane engine compiles it for many lanes.

The argument names of `step` select its inputs, and `moves` names its outputs:

    def step(alpha, beta, rho, discount, delta, x_eta):        # any SIGNALS, any of its own parameters
        ...
        return w_x, w_next, eta_x                              # in the order of `moves`

`expected` states the mean of the same update with the matrices of the equations, and tests compare both functions:

    def expected(alpha, beta, A, b, C, w, eta):                # any TERMS, any of its own parameters
        return alpha * (A.T @ eta), beta * (b - A @ w - C @ eta)

vocabulary.py lists the names that a rule may use. If a new type of learner needs a new name, add it there, which does
not affect other rules. An engine rejects a rule that uses a name that the engine does not support.

A learner first published without a trace has two forms: `step` for lam = 0 and `along_trace` for lam > 0.
`Rule.setting` chooses between them, so lam = 0 gives exactly the learner without traces. A learner that always uses
traces (trace.py) names them in `traces`.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import cleandoc, signature
from math import inf
from numbers import Real
from pathlib import Path
from sys import modules
from typing import Any

from gradient_dd.cards import card
from gradient_dd.errors import BadRequestError, Unquoted, bad_request, boolean, number, one_of, show, text, unknown
from gradient_dd.fingerprint import code_of, fingerprint
from gradient_dd.learners.trace import AlongTrace, Trace
from gradient_dd.learners.vocabulary import (
    MOVES,
    PLAIN_MOVES,
    PLAIN_SIGNALS,
    RHO_MODES,
    SIGNALS,
    TERMS,
    TRACE_SIGNALS,
)


@dataclass(frozen=True)
class Parameter:
    """A hyper-parameter: its meaning, default and legal range.

    `positive` excludes zero. `high` is the largest legal value. `shared` marks a parameter that has one value for all
    lanes of a call. `grid` lists the values with which a search starts, or is a function of the task that returns them.
    A single value fixes the parameter; for alpha the values are the ends of a range.
    """

    name: str
    meaning: str
    default: float
    positive: bool = False
    shared: bool = False
    high: float = inf
    grid: tuple[float, ...] | Callable[[Any], tuple[float, ...]] = ()

    def __post_init__(self) -> None:
        for name in ("name", "meaning"):
            text(f"{name!r} of a parameter", getattr(self, name))
        for name in ("positive", "shared"):
            object.__setattr__(self, name, boolean(f"{name!r} of a parameter", getattr(self, name)))

    @property
    def legal(self) -> str:
        """The legal range as text."""
        if self.high < inf:
            return f"in {'(' if self.positive else '['}0, {show(self.high)}]"
        return "a positive number" if self.positive else "a number that is zero or more"

    def check(self, value: Any, owner: str) -> float:
        """Return `value` as a float, or raise if it is outside the legal range."""
        what, rule = f"{self.name!r} of {owner}", f"be {self.legal}"
        return number(what, rule, value, low=0.0, high=self.high, positive=self.positive)


LAMBDAS = (0.0, 0.5, 0.9)
ALPHA = Parameter("alpha", "step size of w", default=0.1, positive=True, grid=(2.0**-12, 1.0))
ZETA = Parameter("zeta", "ratio of the step sizes of η and w: beta = zeta × alpha", 1.0, grid=(1 / 64, 1 / 8, 1.0, 8.0))
LAM = Parameter(
    "lam", "λ: how far TD errors reach back, from 0 (one step) to 1 (the whole trace)", 0.0, high=1.0, grid=LAMBDAS
)
KAPPA = Parameter("kappa", "weight of the penalty on the change in values", default=1.0, grid=(1.0, 8.0))
RIDGE = Parameter("ridge", "ε: the initial metric is ε times the identity", 1.0, True, shared=True, grid=(1.0,))


@dataclass(frozen=True, eq=False)
class Rule:
    """A learner: its step, its moves, its guarantees and its reference.

    name, label        the name in commands and files, and the name in figures
    step               the update, as a function of scalars
    moves              the names of the outputs of `step`, in order
    parameters         the hyper-parameters
    reference          the publication
    module             `__name__` of the rule's file, by default the file of the step. The indented lines of the step's
                       docstring, or of the file's docstring if the step has none, are the equation
    natural            whether w moves along M⁻¹x and M⁻¹x' instead of x and x', where M is the running mean of x xᵀ
    expected           the mean update of w, and of η if the rule has η, in the matrices of TERMS; or None. A natural
                       rule states it without M⁻¹, like its step
    affine             whether the moves are affine in delta, x_eta and the other signals that depend on the weights. A
                       rule that clips a signal, such as a Huber rule, is not affine: it has no mean update in A, b, C
    td_fixed_point     whether the rule converges to the TD fixed point, A w = b, with η = 0
    stable_off_policy  whether the mean update over independent draws is stable on every task with regular A and C for
                       a small enough alpha and, if the rule has zeta, a large enough zeta
    traces             the traces that `step` uses
    along_trace        the form for lam > 0; `step` is then the form for lam = 0
    uses_sample_twice  whether the update is not linear in the matrices of a sample; `expected` is then the mean for two
                       independent samples
    rho_mode           the placement of ρ in a form that does not take `rho_x`
    """

    name: str
    label: str
    step: Callable[..., tuple[float, ...]]
    moves: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    reference: str
    module: str = ""
    natural: bool = False
    expected: Callable[..., tuple[Any, ...]] | None = None
    affine: bool = True
    td_fixed_point: bool = True
    stable_off_policy: bool = False
    traces: tuple[Trace, ...] = ()
    along_trace: AlongTrace | None = None
    uses_sample_twice: bool = False
    rho_mode: str = "R"

    def __post_init__(self) -> None:
        for name in ("name", "label", "reference", "module"):
            text(f"{name!r} of a rule", getattr(self, name))
        for name in ("natural", "affine", "td_fixed_point", "stable_off_policy", "uses_sample_twice"):
            object.__setattr__(self, name, boolean(f"{name!r} of the rule {self.name!r}", getattr(self, name)))
        kinds = {"moves": (str, "names of moves"), "parameters": (Parameter, "Parameters"), "traces": (Trace, "Traces")}
        for name, (kind, words) in kinds.items():
            several = getattr(self, name)
            fits = isinstance(several, list | tuple) and all(isinstance(one, kind) for one in several)
            self._require(fits, repr(name), f"be a tuple of {words}", several)
            object.__setattr__(self, name, tuple(several))
        fits = self.expected is None or self.affine
        self._require(fits, "'expected'", "be omitted, because the rule is not affine", self.expected)
        for name, function in (("step", self.step), ("expected", self.expected or self.step)):
            try:
                fits = callable(function) and bool(signature(function))
            except (TypeError, ValueError):  # some built-in functions hide their arguments
                fits = False
            self._require(fits, repr(name), "be a function of scalars", function)
        object.__setattr__(self, "module", self.module or self.step.__module__)
        self._check_names()
        self._try_step()

    def _require(self, holds: Any, what: str, words: str, got: Any) -> None:
        """Raise unless `holds`; the error says that `what` must `words`."""
        if not holds:
            raise bad_request(f"{what} of the rule {self.name!r}", words, got)

    def _check_names(self) -> None:
        """Raise unless all names are known, and parameters, moves and traces are consistent."""
        names, moves, require = list(self.defaults), set(self.moves), self._require
        own = [one.name for one in self.parameters if one.name != "zeta" and not one.shared]
        legal, terms = (
            [*(name for name in known if name != "beta" or "zeta" in names), *own] for known in (SIGNALS, TERMS)
        )
        for kind, used, known in (
            ("argument", self.arguments, legal),
            ("argument of `expected`", self.expected_arguments, terms),
            ("move", self.moves, list(MOVES)),
            *(
                (f"argument of the trace {trace.name!r}", trace.arguments, [*TRACE_SIGNALS, *own, *trace.memory])
                for trace in self.traces
            ),
        ):
            for name in used:
                if name == "beta" and kind in ("argument", "argument of `expected`") and name not in known:
                    words = "declare ZETA, because it uses 'beta', which is zeta × alpha"
                    raise bad_request(f"The rule {self.name!r}", words, names)
                if name not in known:
                    raise unknown(f"{kind} of the rule {self.name!r}:", name, known)
        have = [trace.name for trace in self.traces]
        if self.natural and (have or self.along_trace):
            raise bad_request(f"The rule {self.name!r}", "have no trace, because it is natural", have)
        for word in (*self.arguments, *self.moves):
            for name in {"z", "b"} & set(word.split("_")) - set(have) if word not in names else ():
                require(False, "The traces", f"include {name!r}, because the rule uses {word!r}", have)
        for parameter in self.parameters:
            parameter.check(parameter.default, f"the rule {self.name!r}, by default,")
        taken = sorted(set(names) & {*SIGNALS, *(TERMS if self.expected else ())} - {"alpha"})
        uses_eta = {"x_eta", "z_eta", "b_eta"} & set(self.arguments) or "eta_eta" in moves
        has_lam, moves_eta = "lam" in own or not self.along_trace, {"eta_x", "eta_z"} & moves or not uses_eta
        require(has_lam, "The parameters", "include 'lam', because the rule has a form with a trace", own)
        require("alpha" in names, "The parameters", "include 'alpha'", names)
        require("zeta" in names or not self.has_eta, "The parameters", "include 'zeta', because η moves", names)
        require(not taken, "The parameters", "not have the name of a signal or of a term of `expected`", taken)
        require(moves_eta, "The moves", "include 'eta_x', because the rule uses η", self.moves)
        require({"w_x", "w_next", "w_z"} & moves, "The moves", "include 'w_x' or 'w_next'", self.moves)
        require(len(moves) == len(self.moves), "The moves", "be unique", self.moves)

    def _try_step(self) -> None:
        """Raise unless the step returns a number for each move."""
        try:
            returned = self.step(**dict.fromkeys(self.arguments, 0.5))
        except Exception as error:  # a user's step may raise any error
            got = Unquoted(f"{type(error).__name__}: {error}")
            raise bad_request(f"The step of the rule {self.name!r}", "run with every argument at 0.5", got) from None
        fits = isinstance(returned, tuple) and all(isinstance(one, Real) for one in returned)
        words = f"return a tuple with one number for each of {', '.join(self.moves)}"
        self._require(fits and len(returned) == len(self.moves), "The step", words, returned)

    @cached_property
    def plain(self) -> "Rule":
        """The form without a trace; the rule itself if it has only one form."""
        kept = tuple(parameter for parameter in self.parameters if parameter.name != "lam")
        return replace(self, parameters=kept, along_trace=None) if self.along_trace else self

    @cached_property
    def traced(self) -> "Rule":
        """The form along the trace, for lam > 0; the rule itself if it has only one form."""
        if self.along_trace is None:
            return self
        fields = {**vars(self.along_trace), "along_trace": None, "rho_mode": "T" if self.has_rho_mode else "R"}
        return replace(self, **fields | {"expected": self.along_trace.expected or self.expected})

    @property
    def forms(self) -> tuple["Rule", ...]:
        """All forms: the rule itself, or the forms without and with a trace."""
        return (self.plain, self.traced) if self.along_trace else (self,)

    @cached_property
    def trace_arguments(self) -> set[str]:
        """The argument names of all traces of the rule."""
        return {name for trace in self.traces for name in trace.arguments}

    @cached_property
    def key(self) -> str:
        """A short hash of the rule's definition; a change of the step changes the key, even under the same name.

        The form along the trace has its own key, so stored results of the form without a trace stay valid if a form
        along the trace is added.
        """
        return fingerprint(*self.definition.values())

    @property
    def definition(self) -> dict[str, Any]:
        """The parts of the rule's definition; rules that differ in any part are different rules."""
        parts = {
            "name": self.name,
            "step": code_of(self.step),
            "moves": self.moves,
            "natural": self.natural,
            "parameters": [name for name in self.defaults if not (self.along_trace and name == "lam")],
        }
        return parts | ({"traces": [trace.described for trace in self.traces]} if self.traces else {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"<Rule {self.name}({', '.join(f'{name}={show(value)}' for name, value in self.defaults.items())})>"

    def _repr_html_(self) -> str:
        facts = {one.name: f"{one.meaning} (default {show(one.default)})" for one in self.parameters}
        return card(f"{self.label} ({self.name})", {"update": self.equation or None, **facts, "from": self.reference})

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """The argument names of `step`, in order."""
        return tuple(signature(self.step).parameters)

    @cached_property
    def expected_arguments(self) -> tuple[str, ...]:
        """The argument names of `expected`, in order; empty if the rule states no mean update."""
        return tuple(signature(self.expected).parameters) if self.expected else ()

    @cached_property
    def defaults(self) -> dict[str, float]:
        """The default of each parameter, by the parameter's name."""
        return {parameter.name: parameter.default for parameter in self.parameters}

    @cached_property
    def own_parameters(self) -> tuple[str, ...]:
        """The names of the parameters, except step sizes, that may differ between lanes."""
        return tuple(one.name for one in self.parameters if one.name not in ("alpha", "zeta") and not one.shared)

    @property
    def has_eta(self) -> bool:
        """Whether the rule has secondary weights η."""
        return any(move.startswith("eta_") for move in self.moves)

    @property
    def is_plain(self) -> bool:
        """Whether the rule uses only PLAIN_SIGNALS and PLAIN_MOVES, which every engine supports, and no trace."""
        asked = set(self.arguments) - set(self.defaults)
        return asked <= set(PLAIN_SIGNALS) and set(self.moves) <= set(PLAIN_MOVES) and not self.traces

    @property
    def has_rho_mode(self) -> bool:
        """Whether the placement of ρ changes its update."""
        return "rho_x" in self.arguments

    @property
    def doc(self) -> str:
        """The docstring of the step if it has one, else the docstring of the rule's file, else the label."""
        return cleandoc(self.step.__doc__ or getattr(modules.get(self.module), "__doc__", None) or self.label)

    @property
    def equation(self) -> str:
        """The update equations, from `doc`."""
        lines = self.doc.splitlines()
        indented = [line for line in lines if line.startswith("    ")]
        return "\n".join(line.strip() for line in indented or lines[1:]).strip()

    @property
    def summary(self) -> str:
        """The first line of `doc`."""
        return self.doc.splitlines()[0]

    @property
    def file(self) -> Path:
        """The path of the rule's file."""
        return Path(getattr(modules.get(self.module), "__file__", None) or "")

    def check_known(self, reader: str, signals: Collection[str], moves: Collection[str]) -> None:
        """Raise unless `reader` supplies every signal that the rule takes and applies all its moves."""
        for kind, asked, known in (("signal", self.arguments, signals), ("move", self.moves, moves)):
            for name in asked:
                if name not in known and name not in self.defaults:
                    what = f"{reader} does not know the {kind} {name!r} of the rule {self.name!r}."
                    raise BadRequestError(f"{what} It knows {', '.join(known)}.")

    def setting(self, rho_mode: str = "R", **values: Any) -> "Setting":
        """Return a setting of this rule with these values, checked; other parameters have their defaults."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in values:
            if name not in known:
                hint = " beta is zeta × alpha, so set zeta." if name == "beta" and "zeta" in known else ""
                raise BadRequestError(f"{self.name} has no parameter {show(name)}. It has {', '.join(known)}.{hint}")
        one_of(f"'rho_mode' of {self.name}", rho_mode, RHO_MODES)
        chosen = self.defaults | values
        checked = {name: known[name].check(chosen[name], self.name) for name in known}
        if self.along_trace:
            form = self.traced if checked["lam"] else self.plain
            return form.setting(rho_mode, **{name: checked[name] for name in form.defaults})
        if rho_mode not in ("R", self.rho_mode) and not self.has_rho_mode:
            raise BadRequestError(f"{self.name} has no 'rho_mode': its update is the same in both modes. Omit it.")
        return Setting(self, checked, rho_mode if self.has_rho_mode else self.rho_mode)

    def coefficients(self, signals: Mapping[str, float]) -> dict[str, float]:
        """Return the coefficient of every move in MOVES, 0 for moves that this rule does not make."""
        returned = self.step(*(signals[name] for name in self.arguments))
        return dict.fromkeys(MOVES, 0.0) | dict(zip(self.moves, returned, strict=True))


@dataclass(frozen=True)
class Setting:
    """A rule with a value for each hyper-parameter; one lane runs one setting."""

    rule: Rule
    values: Mapping[str, float]
    rho_mode: str = "R"

    def __str__(self) -> str:
        values = ", ".join(f"{name}={show(value)}" for name, value in self.values.items())
        return f"{self.rule.name}({values}" + (", rho_mode=T)" if self.rho_mode == "T" else ")")

    def __repr__(self) -> str:
        return f"<Setting {self}>"

    def _repr_html_(self) -> str:
        return card(self.rule.label, {**self.values, "rho_mode": self.rho_mode if self.rule.has_rho_mode else None})

    def signals(self, factor: float, rho: float) -> dict[str, float]:
        """Return the signals that do not depend on the weights; the schedule's `factor` scales alpha."""
        alpha = self.values["alpha"] * factor
        rho_x = rho if self.rho_mode == "R" else 1.0
        beta = self.values.get("zeta", 0.0) * alpha
        return {**self.values, "alpha": alpha, "beta": beta, "rho": rho, "rho_x": rho_x}
