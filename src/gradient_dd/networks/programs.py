"""Compiled programs of networks are kept on disk, beside the kernels of the engine."""

from gradient_dd.engine.kernel_folder import NETWORKS, usable_folder
from gradient_dd.errors import extra

with extra("neural"):
    import jax


def keep_programs() -> None:
    """Let JAX keep what it compiles in our folder, unless the user has chosen one for JAX."""
    if jax.config.jax_compilation_cache_dir is None and (place := usable_folder(make=True)):
        jax.config.update("jax_compilation_cache_dir", str(place / NETWORKS))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
