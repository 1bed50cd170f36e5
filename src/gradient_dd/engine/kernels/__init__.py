"""The compiled part of the engine. Only the engine imports it."""

import os

from gradient_dd.errors import bad_request

if (threads := os.environ.get("NUMBA_NUM_THREADS", "").strip()).lstrip("-").isdigit() and int(threads) < 1:
    raise bad_request("NUMBA_NUM_THREADS", "be a whole number, 1 or more", threads)  # Numba would raise a ValueError
