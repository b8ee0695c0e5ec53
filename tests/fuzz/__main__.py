"""Plays bad input at everything that reads something from outside, and says what did not survive it.

    python -m tests.fuzz --cases 100000                   all areas, from seed 1
    python -m tests.fuzz --only logs --cases 1000000      one area, for longer
    python -m tests.fuzz --only rules --seed 1 --first 4711 --cases 1      one case again

A case is made from its area, the seed and its number alone. It ends well, or in the one error that its area
names; anything else is a finding: another exception, a case that takes more CPU time than `LIMIT_S`, a
broken promise of the area. Exit code 1 if there is one. Findings of one place are shown once.
"""

import argparse
import resource
import sys
import time
from collections import Counter

from tests.fuzz import areas
from tests.fuzz.running import MEMORY, Finding, Stopwatch, play


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--cases", type=int, default=20_000, help="in sum, split as the areas' weights say")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--only", action="append", choices=sorted(areas.AREAS), help="may be given again")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    asked = parser.parse_args()

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    chosen = {name: areas.AREAS[name] for name in asked.only or areas.AREAS}
    weights = sum(area.weight for area in chosen.values())
    print(f"fuzz: seed {asked.seed}, {asked.cases} cases, {', '.join(chosen)}", flush=True)
    found: list[Finding] = []
    blunt: list[str] = []
    total = 0
    for name, area in chosen.items():
        count = max(1, round(asked.cases * area.weight / weights))
        total += count
        stopwatch, outcomes, own = Stopwatch(), Counter[str](), Counter[str]()
        for number in range(asked.first, asked.first + count):
            finding = play(name, area.case, asked.seed, number, stopwatch)
            if isinstance(finding, Finding):
                own[finding.place] += 1
                if own[finding.place] == 1:
                    found.append(finding)
                    print(finding.text, file=sys.stderr, flush=True)
            else:
                outcomes[finding] += 1
            if not asked.quiet and sys.stdout.isatty() and number % 500 == 0:
                print(f"\r{name} {number} {dict(own) or ''}", end="", flush=True)
        told = ", ".join(f"{word} {number}" for word, number in sorted(outcomes.items()))
        print(
            f"{name}: {count} cases, {stopwatch.total_s:.1f} s CPU, slowest {stopwatch.slowest_s:.2f} s"
            f" (number {stopwatch.slowest}): {told}; findings {sum(own.values())}",
            flush=True,
        )
        if count >= 1000 and not own:
            blunt += [f"{name}: no case was {word}" for word in area.expected if not outcomes[word]]
    for line in blunt:
        print(line, file=sys.stderr)
    print(f"fuzz: {total} cases, {len(found)} places with findings, {time.process_time():.0f} s CPU")
    return 1 if found or blunt else 0


if __name__ == "__main__":
    sys.exit(main())
