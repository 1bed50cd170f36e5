"""The names a rule may use: inputs of `step`, moves, and inputs of `expected`."""

PLAIN_SIGNALS = {
    "alpha": "step size of w, after the schedule",
    "beta": "step size of η, zeta × alpha",
    "rho": "importance ratio π(a|s) / μ(a|s) of the action taken",
    "rho_x": "the ratio on the x half of the w step: rho, or 1 if rho_mode is 'T'",
    "discount": "continuation discount γ into the next state, 0 where an episode ends",
    "delta": "TD error δ = r + γ x'·w − x·w",
    "x_eta": "x·η",
    "x_change": "x·(w − w_prev), where w_prev are the weights one step earlier",
}

SIGNALS = PLAIN_SIGNALS | {  # the additional signals are for rules with a trace
    "z_eta": "z·η, where z is the trace after this step's x",
    "b_eta": "b·η, where b is the second trace",
    "x_x": "x·x",
    "x_next": "x·x'",
    "next_next": "x'·x'",
    "x_z": "x·z",
    "z_z": "z·z",
}

PLAIN_MOVES = {
    "w_x": "change of w along x",
    "w_next": "change of w along x'",
    "eta_x": "change of η along x",
    "eta_eta": "change of η along itself; a negative coefficient shrinks η",
}

MOVES = PLAIN_MOVES | {
    "w_z": "change of w along the trace z",
    "w_change": "change of w along its last change, w − w_prev",
    "eta_z": "change of η along the trace z",
    "eta_next": "change of η along x'",
}

TRACES = {
    "z": "the trace",
    "b": "the second trace",
}

TRACE_SIGNALS = {  # inputs of the step of a trace; inputs whose names end in `_before` are 0 at the start of an episode
    "alpha": "step size of w, after the schedule",
    "rho": "importance ratio of the action taken",
    "discount_before": "continuation discount γ into the current state",
    "rho_before": "importance ratio of the previous action",
    "pi_before": "probability of the previous action under the target policy",
    "mu_before": "probability of the previous action under the behaviour policy",
    "x_trace": "x·(the trace before this step)",
}

RHO_MODES = {
    "R": "the ratio multiplies the whole sample: ρ (x·η) (x − γx')",
    "T": "the ratio multiplies only the bootstrapped half, as in the form with a trace: (x·η) x − ρ γ (x·η) x'",
}

TERMS = {  # inputs of `expected`; for a single transition, omit E; without a trace, z is ρ x
    "alpha": "step size of w",
    "beta": "step size of η",
    "A": "E[z (x − γx')ᵀ]",
    "b": "E[r z]",
    "B": "E[γ (1 − λ) x' zᵀ], which is C − Aᵀ for z ← ρ (γ λ z + x)",
    "C": "E[x xᵀ]",
    "A_rho": "E[ρ z (x − γx')ᵀ], for a trace that omits the current ρ",
    "b_rho": "E[ρ r z]",
    "A_mu": "E[b (x − γx')ᵀ], where b is the second trace",
    "A_u": "E[ρ (x − γx') (x − γx')ᵀ]",
    "b_u": "E[ρ r (x − γx')]",
    "w": "the primary weights",
    "eta": "the secondary weights η",
    "change": "w − w_prev",
}
