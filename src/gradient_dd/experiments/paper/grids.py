"""Values that both the studies and the figures of the paper use; apart, so that naming the figures builds no study."""

ZETAS = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0)
KAPPAS = (0.25, 0.5, 1.0, 2.0, 4.0)
