"""The live page: rules that run in a browser, translated from their own source."""
