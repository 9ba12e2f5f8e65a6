"""Attack opkernel with seeded random cases.

python -m tools.campaigns graphs --seed 7 --seconds 120    damaged graphs
python -m tools.campaigns graphs --seed 7 --case 4711      one case again
python -m tools.campaigns --seconds 120                    all that need no TensorFlow, one after the other
"""

import argparse
import faulthandler
import importlib
import subprocess
import sys
import warnings

from tools.campaigns.campaign import SECONDS_A_CASE, Case, run_campaign

CAMPAIGNS = {
    "graphs": "damaged GraphDefs are refused, or run alike in all executors",
    "calls": "calls of ops, right and wrong ones, end alike whichever way an op is called",
    "commands": "the command says what is wrong with arguments and files, and shows no traceback",
    "engines": "calls of ops in sessions with an engine give what they give without, or what the documents say",
    "effects": "programs with state do the same in the same order, whatever executes them",
    "checkpoints": "damaged checkpoints are refused, or read as they were saved",
    "scaled": "calls that want much keep to the time and the memory that they are allowed",
    "decoding": "damaged images, examples and other files are refused by the ops that decode them, or decoded",
    "saved_models": "damaged SavedModels are refused with an OpError, or run",
    "modules": "damaged StableHLO modules are refused with an OpError, or run; the process survives them",
    "placements": "programs on the tasks of a cluster do what they do in one process, or end in time",
    "cluster_kills": "tasks on Ray are killed at any moment: training ends as without kills (needs Ray)",
    "collective_kills": "tasks on Ray are killed at any moment: collectives end for all members (needs Ray)",
    "kills": "a save that is killed at any moment leaves the old or the new checkpoint or model",
    "interrupts": "an interrupt at any moment of any use leaves a process in which that use and others work",
    "batches": "a model mapped over rows by processes that are killed at any moment: the next run gives the rest",
    "serving": "malformed requests to `opkernel serve` are refused by 4xx, and good ones between are answered",
    "swaps": "64 clients of `opkernel serve` lose no request while versions come and go",
    "pipelines": "drawn pipelines give the same with threads and without, saved and restored, and in parts",
    "tensorflow": "calls of ops give what TensorFlow gives (needs TensorFlow)",
    "decoding_tensorflow": "damaged images, examples and other files decode as in TensorFlow (needs TensorFlow)",
    "pipelines_tensorflow": "drawn pipelines give what TensorFlow's give (needs TensorFlow)",
    "composite_pipelines_tensorflow": "and so do those over ragged and sparse elements (needs TensorFlow)",
}


SHARES = {
    "graphs": 0.5,
    "calls": 0.5,
    "commands": 0.5,
    "effects": 0.5,
    "engines": 0.6,
    "checkpoints": 0.2,
    "saved_models": 0.3,
    "decoding": 0.3,
    "modules": 0.3,
    "pipelines": 0.3,
    "scaled": 0.5,
    "kills": 0.2,
    "interrupts": 0.5,
    "placements": 0.2,
    "cluster_kills": 0.4,
    "batches": 0.2,
    "collective_kills": 0.2,
    "serving": 0.2,
    "swaps": 0.2,
}
"""Of the seconds that each campaign may get, what these get where all run."""

_GRACE_S = 120
"""How long after its last case a campaign may take to end, processes and all."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.campaigns", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join(f"{name:20}{what}" for name, what in CAMPAIGNS.items())
    parser.add_argument("name", nargs="?", choices=list(CAMPAIGNS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--cases", type=int, default=sys.maxsize, help="stop after so many")
    parser.add_argument("--findings", type=int, default=20, help="stop when there are so many")
    parser.add_argument("--case", type=int, help="the number of the only case")
    options = parser.parse_args(arguments)
    if options.name:
        return _attack(options.name, options)
    names = [name for name in CAMPAIGNS if "tensorflow" not in name]
    return max([_attack_apart(name, options) for name in names])


def _attack_apart(name: str, options: argparse.Namespace) -> int:
    """Run a campaign in a process of its own: one that crashes leaves the others alone."""
    seconds = SHARES.get(name, 1) * options.seconds
    command = [sys.executable, "-X", "faulthandler", "-m", "tools.campaigns", name]
    command += [f"--seed={options.seed}", f"--seconds={seconds}", f"--cases={options.cases}"]
    status = subprocess.run([*command, f"--findings={options.findings}"], check=False).returncode
    if status < 0:
        print(f"{name}, seed {options.seed}: ended by signal {-status}", flush=True)
    return abs(status)


def _attack(name: str, options: argparse.Namespace) -> int:
    campaign = importlib.import_module(f"tools.campaigns.{name}")
    case: Case = campaign.case
    limit = getattr(campaign, "SECONDS_A_CASE", SECONDS_A_CASE)
    if hasattr(campaign, "begin"):
        campaign.begin()
    # A case that hangs where no signal reaches it ends the process, and says where each thread is.
    faulthandler.dump_traceback_later(options.seconds + limit + _GRACE_S, exit=True)
    numbers = range(options.cases) if options.case is None else [options.case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = run_campaign(
            name, case, options.seed, options.seconds, iter(numbers), options.findings, limit
        )
    print(f"{name}, seed {options.seed}: {report}", flush=True)
    for number, text in report.findings.items():
        print(f"\npython -m tools.campaigns {name} --seed {options.seed} --case {number}\n{text}")
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
