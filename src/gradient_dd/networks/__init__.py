"""The same rules on networks: the only room that imports JAX, which the extra `neural` brings.

network        what a network is: its shape, its flat weights, its values and its second output h
rules          which rules a network can follow, and why another cannot
step           one update of a rule on a network, as a pure function of arrays
optimisers     what turns a direction into a step: plain, Adam, or a transformation of your own
learner        NetworkLearner, fed with transitions or batches; learner_file what its file holds
lanes          many settings and seeds in one compiled program; joint several rules as one; programs kept on disk
environments   Mountain Car, Acrobot and Cart Pole as functions of arrays
control        NetworkControl: the same rules on action values; control_lanes many agents in one compiled program
kernel         the tangent kernel
learnt         features that an ensemble learns from transitions, for evaluations of logs
"""
