"""``python -m bench_suites.kit describe | probe | serve | run``: the kit's commands inside a target environment."""

from __future__ import annotations

import argparse
import json
import sys
from typing import List, Optional

from .authoring import SuiteError
from .catalog import describe, load_suites


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs one command; JSON goes to standard output or to the file of ``--out``."""
    parser = argparse.ArgumentParser(prog="bench_suites.kit", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("describe", help="list all suites as JSON; needs no torch")
    probe_command = commands.add_parser("probe", help="say what the torch of this interpreter is, as JSON")
    probe_command.add_argument("--out", help="file to write instead of standard output")
    serve_command = commands.add_parser("serve", help="be a zygote for a conductor")
    serve_command.add_argument("--connect", required=True)
    serve_command.add_argument("--name", required=True)
    serve_command.add_argument("--suite", action="append", default=[])
    serve_command.add_argument("--child", help="an order as JSON: measure that one case without forking")
    run_command = commands.add_parser("run", help="measure the torch of this interpreter alone; writes one JSON file")
    run_command.add_argument("--suite", action="append", default=[], help="a suite; may be repeated; default: all")
    run_command.add_argument("--case", default="*", help="only cases that match this glob")
    run_command.add_argument("--rounds", type=int, default=8)
    run_command.add_argument("--all", action="store_true", help="all values of all axes, not only the quick ones")
    run_command.add_argument("--out", default="flashpoint-run.json")
    given = parser.parse_args(arguments)
    try:
        return _perform(given)
    except SuiteError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _perform(given: argparse.Namespace) -> int:
    if given.command == "describe":
        print(json.dumps(describe(load_suites())))
        return 0
    if given.command == "probe":
        from .probe import probe

        text = json.dumps(probe())
        if given.out:
            with open(given.out, "w", encoding="utf-8") as file:
                file.write(text)
        else:
            print(text)
        return 0
    if given.command == "serve":
        from .zygote import serve

        return serve(given.connect, given.name, given.suite, given.child)
    from .alone import run_alone

    return run_alone(given.suite, given.case, given.rounds, given.all, given.out)


if __name__ == "__main__":
    sys.exit(main())
