"""The commands, one per file, in the order in which `--help` lists them.

Heavy modules are imported inside the commands, so that `--help` is fast.
"""

from importlib import import_module

import click

from gradient_dd import __version__

MODULES = (
    *("list", "show", "analyse", "evaluate", "compare", "rank", "sweep"),
    *("status", "verify", "export", "reproduce", "play", "cache"),
)
COMMANDS = tuple(
    one
    for name in MODULES
    for one in vars(import_module(f"gradient_dd.cli.commands.{name}")).values()
    if isinstance(one, click.Command)
)


class FullSummaries(click.Group):
    """A group whose help shows the full first sentence of every command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in registration order, each with its first sentence."""
        rows = [(name, " ".join((one.help or "").split("\n\n")[0].split())) for name, one in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=FullSummaries, commands=COMMANDS, context_settings=HELP)
@click.version_option(__version__, prog_name="gradient-dd")
def cli() -> None:
    """Gradient-DD and the TD family: linear off-policy value prediction.

    \b
    Try:
      gradient-dd list                          learners, tasks and figures
      gradient-dd show gradient_dd              a learner: equation, parameters, reference, file
      gradient-dd show baird n_states=20        a task: sizes, true values, visits, condition numbers
      gradient-dd sweep --task baird --learner gradient_dd --alpha 1e-3..0.1:9 --steps 10000
      gradient-dd analyse baird                 which learner and which step size to use
      gradient-dd evaluate log.parquet --discount 0.99      the value of a policy, from a log
      gradient-dd compare log.parquet --target policies.py:greedy --discount 0.99      which policy to deploy
      gradient-dd rank my_rule.py:MY_RULE       how a new rule ranks among all learners
      gradient-dd reproduce                     the paper: figures, tables, verdicts
      gradient-dd play                          an interactive page that runs the learners
    """
