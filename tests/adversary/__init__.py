"""The adversary: odd inputs to everything a user can call, against one rule.

    our own error in one sentence, with nothing changed; or success

`odd.py` makes the values and `rule.py` judges. The other files attack one surface each: the laboratory, streams, logs,
environments, checkpoints, files, stores, the folder of kernels, the theory, the command line. `plan.py` draws the
inputs, and `__main__.py` runs thousands of them in processes that may crash: `make adversary`. `torture.py` kills
programs and flips bytes: `make torture`. `test_adversary.py` is the short run of `make test`.
"""
