"""The compiled part of the lane engine. Nothing outside the engine and the benchmark imports from here."""
