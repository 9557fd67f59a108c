"""What must hold, counted: a check that has nothing to check is no check."""

import sys
from datetime import datetime


class Check:
    """Something that must hold each time."""

    def __init__(self):
        self.count, self.faults = 0, []

    def __call__(self, holds, fault):
        self.count += 1
        if not holds:
            self.faults.append(fault() if callable(fault) else fault)
            print(f"{datetime.now():%H:%M:%S} {self.faults[-1]}"[:2000], file=sys.stderr, flush=True)


def print_checks(checks):
    """Prints them; answers whether all hold and each has had something to check."""
    print(f"{'checks':<62}{'checked':>8}{'failed':>8}")
    for name, check in checks.items():
        print(f"  {name:<60}{check.count:>8}{len(check.faults):>8}{'' if check.count else '  nothing to check'}")
        for fault in check.faults[:5]:
            print(f"      {fault}"[:1000])
    return all(check.count and not check.faults for check in checks.values())
