"""The reproduction of the paper.

paper/       the paper as data: studies, figures, claims with their questions, and texts
job          the scale of a reproduction, and one call of it
running      runs the studies, or writes everything again from a folder; the tables
tuning       settings selected on tuning runs, also by search, and judged on test runs
verdicts     claims, and from their questions about test runs to a verdict
wording      from comparisons to sentences; `summary` makes counts and answers of them
page         the report; `claim_view` is a claim on it
drawing      pictures, each drawn again only if it would differ
"""
