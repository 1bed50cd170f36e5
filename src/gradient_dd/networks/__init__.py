"""The learning rules on neural networks; the only package that imports JAX, from the extra `neural`.

network   Network: its shape, its flat weights, its values and its second output h
step      one update of a rule on a network, as a pure function of arrays; the supported rules and optimisers
learner   NetworkLearner, which learns from transitions or batches
control   NetworkControl, which learns action values by the same rules
learnt    features that an ensemble learns from transitions, for the evaluation of logs
"""
