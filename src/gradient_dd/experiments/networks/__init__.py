"""`gradient-dd reproduce networks`: does the DD term help a network? Prediction, control, and a registered ledger."""
