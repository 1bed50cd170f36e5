"""`gradient-dd reproduce shadows`: figures and verdicts of docs/shadows.md, on a trial small enough to run at once."""
