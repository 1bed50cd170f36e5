"""The engines: `reference` is written to be obviously right, `lanes` to be fast; tests hold them equal."""
