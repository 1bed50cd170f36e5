"""The reproduction of the paper.

paper/       the paper as data: studies, figures, claims with their questions, and texts
job          the scale of a reproduction, and the description of one call
running      runs the studies, or rewrites all output from a folder of results; writes the tables
tuning       selects settings on tuning runs, from a grid or by search, and reads their errors on test runs
verdicts     claims, their questions about test runs, and the verdicts
wording      turns comparisons into sentences; `summary` turns comparisons into counts and answers
page         the report; `claim_view` makes the view of each claim
drawing      draws each picture, unless the existing picture is up to date
"""
