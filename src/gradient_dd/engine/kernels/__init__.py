"""The compiled part of the lane engine. Nothing outside the engine imports from here."""
