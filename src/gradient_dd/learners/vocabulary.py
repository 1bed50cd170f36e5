"""The words a rule is written in: what `step` may ask for, what it may move, what `expected` may ask for."""

SIGNALS = {
    "alpha": "step size of w, after the schedule",
    "beta": "step size of η, zeta × alpha",
    "rho": "importance ratio π(a|s) / μ(a|s) of the action taken",
    "rho_x": "the ratio on the x half of the w step: rho, or 1 when rho_mode is 'T'",
    "discount": "continuation discount γ into the next state, 0 where an episode ends",
    "delta": "TD error δ = r + γ x'·w − x·w",
    "x_eta": "x·η",
    "x_change": "x·(w − w_prev), w_prev being the weights one step earlier",
}

MOVES = {
    "w_x": "of w along x",
    "w_next": "of w along x'",
    "eta_x": "of η along x",
    "eta_eta": "of η along itself (shrinking it, when negative)",
}

RHO_MODES = {
    "R": "the ratio stands on the whole sample: ρ (x·η) (x − γx')",
    "T": "the ratio comes through the trace, on the bootstrapped half alone: (x·η) x − ρ γ (x·η) x'",
}

TERMS = {  # of `expected`; the matrices of a single transition are the same without the E
    "alpha": "step size of w",
    "beta": "step size of η",
    "A": "E[ρ x (x − γx')ᵀ]",
    "b": "E[ρ r x]",
    "B": "E[ρ γ x' xᵀ], which is C − Aᵀ because E[ρ|s] = 1",
    "C": "E[x xᵀ]",
    "w": "the primary weights",
    "eta": "the secondary weights η",
    "change": "w − w_prev",
}
