"""Experiments: the paper, the family and the shadows, each a set of studies, claims and figures."""
