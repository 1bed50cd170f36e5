"""The adversary: odd inputs to everything a user can call, against one rule.

    our own error in one sentence, with nothing changed; or success

`odd.py` makes the values and `rule.py` judges. `api.py`, `theory.py`, `files.py`, `stores.py` and `command_line.py`
attack one surface each. `__main__.py` runs thousands of attacks in a process that may crash: `make adversary`.
`torture.py` kills sweeps and flips bytes: `make torture`. `test_adversary.py` is the short run of `make test`.
"""
