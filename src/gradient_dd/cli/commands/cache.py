"""`gradient-dd cache`: the compiled kernels on disk."""

import click

from gradient_dd.cli.options import as_json, json_text


@click.command()
@click.option("--clear", is_flag=True, help="Remove all kernels; they are compiled again when needed.")
@as_json
def cache(clear: bool, as_json: bool) -> None:
    """Show the location, number and size of the compiled kernels, or remove them.

    A kernel is compiled once per machine, version and rule. GRADIENT_DD_CACHE sets the folder; "off" disables it.
    """
    from gradient_dd.engine import kernel_folder

    removed = kernel_folder.clear() if clear else 0
    place, (count, size) = kernel_folder.folder(), kernel_folder.summary()
    if as_json:
        facts = {"folder": place and str(place), "kernels": count, "bytes": size, "limit": kernel_folder.LIMIT}
        click.echo(json_text(facts | ({"removed": removed} if clear else {})))
    elif place is None:
        click.echo(f"No kernels are stored: {kernel_folder.VARIABLE} is off, or there is no home folder.")
    elif clear:
        click.echo(f"{removed} kernels removed from {place}.")
    else:
        click.echo(f"{count} kernels, {size / 1e6:.1f} MB of at most {kernel_folder.LIMIT / 1e6:.0f} MB, in {place}.")
