"""`gradient-dd reproduce learner`: the trial of `AutoLearner` in docs/auto-learner.md, small enough to run at once."""
