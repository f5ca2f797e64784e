"""The categories and parts that time is divided into, and how they are called; the window has them before numpy."""

from typing import Final

LAW_PARTS: Final = ("arithmetic", "instructions", "bandwidth", "latency", "calls")
"""The parts that a cost law gives, in the order of `Law.times`."""

OTHER_PROGRAMS: Final = "other_programs"
NOT_OWN: Final = (OTHER_PROGRAMS,)
"""Time in which a thread could have run and did not."""
NOT_ATTRIBUTED: Final = "not_attributed"
MEASURED_PARTS: Final = (*LAW_PARTS, OTHER_PROGRAMS)
"""The rows of `parts.split`."""
PARTS: Final = (*MEASURED_PARTS, NOT_ATTRIBUTED)
"""What the user sees of a stage; together they are its time."""

PART_NAMES: Final = {
    "arithmetic": "arithmetic",
    "instructions": "instructions",
    "bandwidth": "memory bandwidth",
    "latency": "memory latency",
    "calls": "call overhead",
    OTHER_PROGRAMS: "other programs",
    NOT_ATTRIBUTED: "not attributed",
}
"""How they are called where a person reads them."""

UNEXPLAINED: Final = "unexplained"
SCORING_CATEGORIES: Final = ("compute", "memory", UNEXPLAINED, OTHER_PROGRAMS)
"""What the scoring time consists of."""

OVERHEAD: Final = "overhead"
"""The category of what leaves do not cover, and the group of stages that say what some of it was."""

CATEGORIES: Final = (*SCORING_CATEGORIES, "transfer", "search", "frontend", OVERHEAD)
"""What the user sees; together they are the wall time of the decode lane."""

CATEGORY_NAMES: Final = {
    "compute": "compute",
    "memory": "memory",
    UNEXPLAINED: PART_NAMES[NOT_ATTRIBUTED],
    OTHER_PROGRAMS: PART_NAMES[OTHER_PROGRAMS],
    "transfer": "transfer",
    "search": "search",
    "frontend": "front end",
    OVERHEAD: "overhead",
}
"""How they are called where a person reads them."""
