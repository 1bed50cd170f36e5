"""The reproduction of a paper: studies, tuning, test runs, claims, figures and a page, as data that one machinery runs.

experiment   what an experiment is, its scale, and one call of it
running      runs an experiment, or writes everything again from what a folder holds
measuring    studies, companions and test runs; the tables
tuning       settings selected on tuning runs and judged on test runs; `searching` selects them by search
verdicts     from a question about test runs to a verdict
claims       statements with their questions
wording      from comparisons to sentences
forests      from comparisons to forest plots
page         the report
drawing      pictures, each drawn again only if it would differ
paper/       the data: studies, figures, claims and questions of the paper
"""
