"""All that exists for one paper: its studies, figures, claims, exact statements and readings."""
