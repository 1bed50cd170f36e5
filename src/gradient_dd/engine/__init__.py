"""The engines: `reference` is simple and slow, `lanes` is fast; tests require both to give equal results."""
