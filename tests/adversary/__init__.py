"""The adversary: odd inputs to everything a user can call, against one rule.

    our own error in one sentence, with nothing changed; or success

`odd.py` makes the values, `rule.py` judges, each other file attacks one surface, `__main__.py` runs thousands of attacks
in processes that may crash, and `torture.py` kills sweeps and flips bytes. `make adversary` and `make torture` run them;
`test_adversary.py` is the short run of `make test`.
"""
