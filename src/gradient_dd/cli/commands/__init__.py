"""The commands, one file each, in the order in which `--help` lists them."""

from gradient_dd.cli.commands.analyse import analyse
from gradient_dd.cli.commands.bench import bench
from gradient_dd.cli.commands.cache import cache
from gradient_dd.cli.commands.evaluate import evaluate
from gradient_dd.cli.commands.export import export
from gradient_dd.cli.commands.list import list_command
from gradient_dd.cli.commands.reproduce import plot, report, reproduce
from gradient_dd.cli.commands.show import show
from gradient_dd.cli.commands.status import status
from gradient_dd.cli.commands.sweep import sweep
from gradient_dd.cli.commands.verify import verify

COMMANDS = (list_command, show, analyse, evaluate, sweep, status, verify, export, reproduce, report, plot, bench, cache)
