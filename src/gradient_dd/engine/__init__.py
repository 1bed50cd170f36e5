"""The engines: `reference` is written to be obviously right."""
