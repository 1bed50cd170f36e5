"""The content for one paper: its studies, figures, claims, exact statements and interpretations."""
