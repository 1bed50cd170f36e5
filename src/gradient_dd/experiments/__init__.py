"""The reproduction of the paper.

paper/       the paper as data: studies, figures, claims with their questions, and texts
job          the scale of a reproduction, and the description of one call
running      runs the studies, or rewrites everything from a folder of results; writes the tables
tuning       selects settings on tuning runs, also by search, and reads their errors on test runs
verdicts     claims, their questions about test runs, and the verdicts
wording      turns comparisons into sentences; `summary` turns them into counts and answers
page         the report; `claim_view` is a claim in it
drawing      draws pictures, each only if it would differ from the existing one
"""
