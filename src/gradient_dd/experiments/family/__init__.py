"""The whole family compared: every learner on the problems of the field, tuned alike, judged on fresh runs."""
