"""The categories and parts that time is divided into, and how they are called; the window has them before numpy."""

from typing import Final

LAW_PARTS: Final = ("arithmetic", "instructions", "bandwidth", "latency", "calls")
"""The parts that a cost law gives, in the order of `Law.times`."""

OTHER_PROGRAMS: Final = "other_programs"
THROTTLED: Final = "throttled"
NOT_OWN: Final = (OTHER_PROGRAMS, THROTTLED)
"""Time in which a thread could have run and did not: other programs had its processor; the CPU limit of the container
was used up, or the host of a virtual machine had taken the processor."""
NOT_ATTRIBUTED: Final = "not_attributed"
PARTS: Final = (*LAW_PARTS, *NOT_OWN, NOT_ATTRIBUTED)  # What the user sees of a stage; together they are its time

PART_NAMES: Final = {
    "arithmetic": "arithmetic",
    "instructions": "instructions",
    "bandwidth": "memory bandwidth",
    "latency": "memory latency",
    "calls": "call overhead",
    OTHER_PROGRAMS: "other programs",
    THROTTLED: "throttled",
    NOT_ATTRIBUTED: "not attributed",
}
"""How they are called where a person reads them."""

UNEXPLAINED: Final = "unexplained"
SCORING_CATEGORIES: Final = ("compute", "memory", UNEXPLAINED)  # What the own time of scoring consists of
OVERHEAD: Final = "overhead"  # What leaves do not cover, and the group of stages that say what some of it was

CATEGORIES: Final = (*SCORING_CATEGORIES, OTHER_PROGRAMS, "transfer", "search", "frontend", OVERHEAD, THROTTLED)
"""What the user sees; together they are the wall time of the decode lane. NOT_OWN has its part of all the others."""

CATEGORY_NAMES: Final = {
    "compute": "compute",
    "memory": "memory",
    UNEXPLAINED: PART_NAMES[NOT_ATTRIBUTED],
    "transfer": "transfer",
    "search": "search",
    "frontend": "front end",
    OVERHEAD: "overhead",
    **{name: PART_NAMES[name] for name in NOT_OWN},
}
"""How they are called where a person reads them."""

PREEMPTED_FROM: Final = 0.1  # Share of a stage's time that was not its own from which the verdict mentions it
