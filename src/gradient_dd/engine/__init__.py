"""The engines: `reference` is simple and slow, `lanes` is fast; tests require them to give equal results."""
