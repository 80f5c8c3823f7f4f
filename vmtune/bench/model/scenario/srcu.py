"""Updates of a VM's memory map: what one measurement of them is to do.

docs/how-to/measure-boot.md says what is timed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

from annotated_types import Interval

from vmtune.bench.model.scenario.matrix_cells import SrcuCell
from vmtune.bench.model.scenario.named import Named
from vmtune.bench.model.scenario.names import NAME, NAME_FORM, usual_name
from vmtune.bench.model.scenario.parts import Text, Values, accept_bench_values, without_kind
from vmtune.documents import dataclass_json as documents
from vmtune.documents.strict import Reader, short
from vmtune.errors import InvalidInput, Problem
from vmtune.model.tunables.tunable import Value

KIND = "srcu"
"""What the JSON of such a scenario says in ``kind``."""
MOST_UPDATES = 1_000_000
MAX_SRCU_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class SrcuScenario(Named):
    """What one run of updates is to do. It needs KVM, and no QEMU.

    :param updates: additions and deletions of a memory slot together, while the vCPUs spin; a
        tenth of that before they run.
    :param max_seconds: no update is begun after that.
    :param values: none can be set.
    :param name: ``family/variant``; left out, it follows from the other parts.
    :raise InvalidInput: with a problem for each field that cannot be accepted.
    """

    cell: SrcuCell
    title: Text = ""
    why: Text = ""
    updates: Annotated[int, Interval(ge=2, le=MOST_UPDATES)] = 2000
    max_seconds: Annotated[int, Interval(ge=1, le=MAX_SRCU_SECONDS)] = 30
    values: Values = field(default_factory=dict)
    name: Text = ""

    def __post_init__(self) -> None:
        if not self.name:
            parts = {name: getattr(self, name) for name in _SETUP}
            name = usual_name(KIND, self.cell.name, parts, _USUAL_SETUP)
            object.__setattr__(self, "name", name)
        problems = []
        if not NAME.fullmatch(self.name):
            message = f"{short(self.name)} is not a valid scenario name"
            problems.append(Problem("name", "invalid_name", message, NAME_FORM))
        problems += [
            Problem(f"values.{name}", "not_for_updates",
                    f"{name} changes nothing about updates of a memory map", "leave it out")
            for name in self.values
        ]  # fmt: skip
        try:
            accept_bench_values(self.values)
        except InvalidInput as error:
            problems += error.problems
        if problems:
            raise InvalidInput(f"the scenario {self.name} is not usable", problems=problems)

    @property
    def needs_kvm(self) -> bool:
        """It cannot be measured without KVM."""
        return True

    @property
    def longest_s(self) -> int:
        """The most that a run can take, the first tenth and the program's end aside."""
        return self.max_seconds

    def with_values(self, values: Mapping[str, Value]) -> SrcuScenario:
        """With *values* laid over its own: an arm's.

        :raise InvalidInput: there are any.
        """
        return replace(self, values={**self.values, **values})


_SETUP = ("updates", "max_seconds")
_USUAL_SETUP = {each.name: each.default for each in fields(SrcuScenario) if each.name in _SETUP}
"""What makes a name, besides the combination, where it is not as usual."""


def to_json(scenario: SrcuScenario) -> dict[str, Any]:  # any JSON
    """All of *scenario*, so that :func:`from_json` reads back the same."""
    return {"kind": KIND, **documents.to_json(scenario)}


def from_json(raw: object, where: str = "") -> SrcuScenario:
    """A scenario from JSON or TOML.

    :param where: what problems call the document; its parts follow.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    reader = Reader()
    made = documents.read(reader, SrcuScenario, without_kind(raw, where, KIND, reader), where)
    reader.done("the scenario cannot be accepted")
    assert made is not None
    return made
