"""The same rules on networks: the only package that imports JAX, which the extra `neural` brings.

network   what a network is: its shape, its flat weights, its values and its second output h
step      one update of a rule on a network, as a pure function of arrays; which rules and optimisers there are
learner   NetworkLearner, fed with transitions or batches
control   NetworkControl: the same rules on action values
learnt    features that an ensemble learns from transitions, for evaluations of logs
"""
