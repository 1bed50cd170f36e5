"""The scalar rule: what a learner is.

Every learner of this family moves its weight vectors along a few directions, by coefficients that depend on a few
scalars. So a learner is a plain function of scalars that returns coefficients. It does not know vectors, tasks, seeds
or files. The reference engine calls it for one stream; the lane engine compiles it for many lanes.

`step` asks for what it needs by the names of its arguments, and `moves` names what it returns:

    def step(alpha, beta, rho, discount, delta, x_eta):        # any SIGNALS, any of its own parameters
        ...
        return w_x, w_next, eta_x                              # in the order of `moves`

`expected` states the same update once more, in the matrices of the equations, and the contracts compare the two:

    def expected(alpha, beta, A, b, C, w, eta):                # any TERMS, any of its own parameters
        return alpha * (A.T @ eta), beta * (b - A @ w - C @ eta)

The words a rule may use stand in vocabulary.py. A new kind of learner adds words there. Rules that do not use a word
never see it, and an engine refuses a rule that uses one it does not know.

A learner with λ has two forms where it was published without a trace first: `step`, and with `along_trace` the one for
lam > 0. `Rule.setting` chooses between them, so with lam = 0 a learner is exactly what it is without traces. Other
learners have a trace whatever λ is, and name it in `traces`. What a trace is stands in trace.py.
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
    """A hyper-parameter: its meaning, its default, and the numbers it may take.

    `positive` excludes zero. `high` is the largest legal number. `shared` marks one that every lane of a call has in
    common. `grid` has the values that a search starts from: one value fixes the parameter, of alpha it is the range.
    Where they depend on the task, it is a function of the task.
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
        """The legal range, in words."""
        if self.high < inf:
            return f"in {'(' if self.positive else '['}0, {show(self.high)}]"
        return "a positive number" if self.positive else "a number that is zero or more"

    def check(self, value: Any, owner: str) -> float:
        """Return `value` as a float, or raise the sentence that says what it must be."""
        what, rule = f"{self.name!r} of {owner}", f"be {self.legal}"
        return number(what, rule, value, low=0.0, high=self.high, positive=self.positive)


LAMBDAS = (0.0, 0.5, 0.9)

ALPHA = Parameter("alpha", "step size of w", default=0.1, positive=True, grid=(2.0**-12, 1.0))
ZETA = Parameter("zeta", "step size of η over that of w: beta = zeta × alpha", 1.0, grid=(1 / 64, 1 / 8, 1.0, 8.0))
LAM = Parameter(
    "lam", "λ: how far TD errors reach back along the trace: 0 one step, 1 to the start", 0.0, high=1.0, grid=LAMBDAS
)
KAPPA = Parameter("kappa", "weight of the change of the values", default=1.0, grid=(1.0, 8.0))
RIDGE = Parameter("ridge", "ε: the metric starts at ε times the identity", 1.0, True, shared=True, grid=(1.0,))


@dataclass(frozen=True, eq=False)
class Rule:
    """A learner: its step, what the step moves, what it promises, and what a reader wants to know about it.

    name, label        its name in commands and files, and in pictures
    step               the update, as a function of scalars
    moves              the names of what `step` returns, in that order
    parameters         its hyper-parameters
    reference          where it was published
    module             `__name__` of its file. The indented lines of that file's docstring are the equation; where the
                       file has no docstring, those of the step's own
    natural            it moves w along M⁻¹x and M⁻¹x' instead of x and x', M being the running mean of x xᵀ
    expected           the mean update of w, and of η where it has one, in the matrices of TERMS; or None. That of a
                       natural rule is stated without M⁻¹, as its step is
    affine             its moves are affine in delta, x_eta and the other signals that depend on the weights. A rule
                       that clips one, as Huber's does, is not: it has no mean update in A, b and C
    td_fixed_point     it rests at the TD fixed point, A w = b, with η = 0
    stable_off_policy  its mean update over independent draws is stable on every task with regular A and C, on-policy or
                       not, if alpha is small enough and zeta, where it has one, large enough
    traces             the traces that `step` uses
    along_trace        its form for lam > 0; `step` is then the one for lam = 0
    uses_sample_twice  its update is not linear in the matrices of a sample, so `expected` is its mean only if the two
                       uses were independent draws
    rho_mode           the placement of ρ that a form stands for which does not ask for `rho_x`
    """

    name: str
    label: str
    step: Callable[..., tuple[float, ...]]
    moves: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    reference: str
    module: str
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
        self._check_fields()
        for name in ("moves", "parameters", "traces"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        own = [parameter.name for parameter in self.parameters if parameter.name != "zeta" and not parameter.shared]
        if self.along_trace and "lam" not in own:
            raise bad_request(
                f"The parameters of the rule {self.name!r}", "include 'lam', for it has a form with it", own
            )
        asked = (("argument", SIGNALS, self.arguments), ("argument of `expected`", TERMS, self.expected_arguments))
        for kind, table, arguments in asked:
            legal = [*(name for name in table if name != "beta" or "zeta" in self.defaults), *own]
            for argument in arguments:
                if argument not in legal:
                    raise unknown(f"{kind} of the rule {self.name!r}:", argument, legal)
        for move in self.moves:
            if move not in MOVES:
                raise unknown(f"move of the rule {self.name!r}:", move, MOVES)
        self._check_traces(own)
        for parameter in self.parameters:
            parameter.check(parameter.default, f"the rule {self.name!r}, by default,")
        what = f"The parameters of the rule {self.name!r}"
        if "alpha" not in self.defaults:
            raise bad_request(what, "include 'alpha'", list(self.defaults))
        if self.has_eta and "zeta" not in self.defaults:
            raise bad_request(what, "include 'zeta', for it moves η", list(self.defaults))
        if taken := set(self.defaults) & {*SIGNALS, *(TERMS if self.expected else ())} - {"alpha"}:
            raise bad_request(what, "not have the name of a signal, or of what `expected` may ask for", sorted(taken))
        uses_eta = {"x_eta", "z_eta", "b_eta"} & set(self.arguments) or "eta_eta" in self.moves
        if uses_eta and not {"eta_x", "eta_z"} & set(self.moves):
            raise bad_request(f"The moves of the rule {self.name!r}", "include 'eta_x', for it uses η", self.moves)
        if not {"w_x", "w_next", "w_z"} & set(self.moves):
            raise bad_request(f"The moves of the rule {self.name!r}", "include 'w_x' or 'w_next'", self.moves)
        if len(set(self.moves)) < len(self.moves):
            raise bad_request(f"The moves of the rule {self.name!r}", "differ", self.moves)
        try:
            returned = self.step(**dict.fromkeys(self.arguments, 0.5))
        except Exception as error:  # the step is the user's, and may raise anything
            got = Unquoted(f"{type(error).__name__}: {error}")
            raise bad_request(f"The step of the rule {self.name!r}", "run where every argument is 0.5", got) from None
        numbers = isinstance(returned, tuple) and all(isinstance(one, Real) for one in returned)
        if not numbers or len(returned) != len(self.moves):
            rule = f"return a tuple with one number for each of {', '.join(self.moves)}"
            raise bad_request(f"The step of the rule {self.name!r}", rule, returned)

    def _check_fields(self) -> None:
        """Raise unless every field is of its kind."""
        for name in ("name", "label", "reference", "module"):
            text(f"{name!r} of a rule", getattr(self, name))
        for name in ("natural", "affine", "td_fixed_point", "stable_off_policy", "uses_sample_twice"):
            object.__setattr__(self, name, boolean(f"{name!r} of the rule {self.name!r}", getattr(self, name)))
        for name, kind, words in (
            ("moves", str, "names of moves"),
            ("parameters", Parameter, "Parameters"),
            ("traces", Trace, "Traces"),
        ):
            several = getattr(self, name)
            if not isinstance(several, list | tuple) or not all(isinstance(one, kind) for one in several):
                raise bad_request(f"{name!r} of the rule {self.name!r}", f"be a tuple of {words}", several)
        if self.expected is not None and not self.affine:
            raise bad_request(
                f"'expected' of the rule {self.name!r}", "be left out, for it is not affine", self.expected
            )
        for name, function in (("step", self.step), ("expected", self.expected)):
            if not has_arguments(function) and not (name == "expected" and function is None):
                raise bad_request(f"{name!r} of the rule {self.name!r}", "be a function of scalars", function)

    def _check_traces(self, own: list[str]) -> None:
        """Raise unless the rule has the traces its words are about, and each asks for what there is."""
        have = [trace.name for trace in self.traces]
        words = [word for word in (*self.arguments, *self.moves) if word not in self.defaults]
        for name in ("z", "b"):
            about = [word for word in words if name in word.split("_")]
            if about and name not in have:
                raise bad_request(
                    f"The traces of the rule {self.name!r}", f"include {name!r}, for it uses {about[0]!r}", have
                )
        for trace in self.traces:
            legal = [*TRACE_SIGNALS, *own, *trace.memory]
            for argument in trace.arguments:
                if argument not in legal:
                    raise unknown(f"argument of the trace {trace.name!r} of the rule {self.name!r}:", argument, legal)
        if self.natural and (self.traces or self.along_trace):
            raise bad_request(f"The rule {self.name!r}", "have no trace, for it is natural", have)

    @cached_property
    def plain(self) -> "Rule":
        """Its form without a trace, where it has two; itself otherwise."""
        kept = tuple(parameter for parameter in self.parameters if parameter.name != "lam")
        return replace(self, parameters=kept, along_trace=None) if self.along_trace else self

    @cached_property
    def traced(self) -> "Rule":
        """Its form along the trace, for lam > 0; itself where it has one form."""
        if self.along_trace is None:
            return self
        form = self.along_trace
        return replace(
            self,
            step=form.step,
            moves=form.moves,
            traces=form.traces,
            expected=form.expected or self.expected,
            along_trace=None,
            rho_mode="T" if self.has_rho_mode else "R",
        )

    @property
    def forms(self) -> tuple["Rule", ...]:
        """The rules that settings of it have: one, or the ones without and with a trace."""
        return (self.plain, self.traced) if self.along_trace else (self,)

    @cached_property
    def trace_arguments(self) -> set[str]:
        """All that its traces ask for."""
        return {name for trace in self.traces for name in trace.arguments}

    @cached_property
    def key(self) -> str:
        """A short name for its definition: with another step it is another rule, whatever it is called.

        The form along the trace has a key of its own. So results of a learner without one are found under the key that
        they were stored with, whether the learner has another form or not.
        """
        names = [name for name in self.defaults if not (self.along_trace and name == "lam")]
        traces = [[trace.described for trace in self.traces]] if self.traces else []
        return fingerprint(self.name, code_of(self.step), self.moves, self.natural, names, *traces)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """The names `step` asks for, in its order."""
        return tuple(signature(self.step).parameters)

    @cached_property
    def expected_arguments(self) -> tuple[str, ...]:
        """The names `expected` asks for, in its order; none if the rule states no mean update."""
        return tuple(signature(self.expected).parameters) if self.expected else ()

    @cached_property
    def defaults(self) -> dict[str, float]:
        """Each parameter's default, by name."""
        return {parameter.name: parameter.default for parameter in self.parameters}

    @property
    def has_eta(self) -> bool:
        """Whether it keeps secondary weights η."""
        return any(move.startswith("eta_") for move in self.moves)

    @property
    def is_plain(self) -> bool:
        """Whether it moves along x and x' alone, by the signals of PLAIN_SIGNALS: most readers know such rules."""
        asked = set(self.arguments) - set(self.defaults)
        return asked <= set(PLAIN_SIGNALS) and set(self.moves) <= set(PLAIN_MOVES) and not self.traces

    @property
    def has_rho_mode(self) -> bool:
        """Whether the placement of ρ makes a difference to it."""
        return "rho_x" in self.arguments

    @property
    def doc(self) -> str:
        """The docstring of its file."""
        written = getattr(modules.get(self.module), "__doc__", None)
        return written.strip() if written else cleandoc(self.step.__doc__ or self.label)

    @property
    def equation(self) -> str:
        """The update, as the docstring of its file writes it."""
        lines = self.doc.splitlines()
        indented = [line for line in lines if line.startswith("    ")]
        return "\n".join(line.strip() for line in indented or lines[1:]).strip()

    @property
    def summary(self) -> str:
        """The first sentence of its file."""
        return self.doc.splitlines()[0]

    @property
    def file(self) -> Path:
        """The path of its file."""
        return Path(getattr(modules.get(self.module), "__file__", None) or "")

    def check_known(self, reader: str, signals: Collection[str], moves: Collection[str]) -> None:
        """Raise unless `reader` supplies every signal this rule asks for and applies every move it makes."""
        for kind, asked, known in (("signal", self.arguments, signals), ("move", self.moves, moves)):
            for name in asked:
                if name not in known and name not in self.defaults:
                    what = f"{reader} does not know the {kind} {name!r} of the rule {self.name!r}."
                    raise BadRequestError(f"{what} It knows {', '.join(known)}.")

    def setting(self, rho_mode: str = "R", **values: Any) -> "Setting":
        """Return this rule with every parameter given a checked value, the others at their defaults."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in values:
            if name not in known:
                raise unknown(f"parameter of {self.name}:", name, known)
        one_of(f"'rho_mode' of {self.name}", rho_mode, RHO_MODES)
        chosen = self.defaults | values
        checked = {name: known[name].check(chosen[name], self.name) for name in known}
        if self.along_trace:
            form = self.traced if checked["lam"] else self.plain
            return form.setting(rho_mode, **{name: checked[name] for name in form.defaults})
        if rho_mode not in ("R", self.rho_mode) and not self.has_rho_mode:
            raise BadRequestError(f"{self.name} has no 'rho_mode': its update is the same in both. Leave it out.")
        return Setting(self, checked, rho_mode if self.has_rho_mode else self.rho_mode)

    def coefficients(self, signals: Mapping[str, float]) -> dict[str, float]:
        """Return the coefficient of every move in MOVES, 0 for those this rule does not make."""
        returned = self.step(*(signals[name] for name in self.arguments))
        return dict.fromkeys(MOVES, 0.0) | dict(zip(self.moves, returned, strict=True))


def has_arguments(function: Any) -> bool:
    """Return whether the names of a function's arguments are known; those of some built-in ones are not."""
    try:
        return callable(function) and bool(signature(function))
    except (TypeError, ValueError):
        return False


@dataclass(frozen=True)
class Setting:
    """One rule with a value for each of its hyper-parameters: what one lane runs."""

    rule: Rule
    values: Mapping[str, float]
    rho_mode: str = "R"

    def __str__(self) -> str:
        values = ", ".join(f"{name}={show(value)}" for name, value in self.values.items())
        return f"{self.rule.name}({values}" + (", rho_mode=T)" if self.rho_mode == "T" else ")")

    def signals(self, factor: float, rho: float) -> dict[str, float]:
        """Return the signals that do not depend on the weights, alpha being scaled by the schedule."""
        alpha = self.values["alpha"] * factor
        rho_x = rho if self.rho_mode == "R" else 1.0
        beta = self.values.get("zeta", 0.0) * alpha
        return {**self.values, "alpha": alpha, "beta": beta, "rho": rho, "rho_x": rho_x}
