/** Answers of the service for tests of pages about profiles. */
import type { Schemas } from "../api/client";

export function tunable(
  name: string,
  part: Partial<Schemas["TunableView"]> = {},
): Schemas["TunableView"] {
  return {
    name,
    title: name.replaceAll("_", " "),
    why: `What ${name} does.`,
    subject: "Subject",
    kind: "integer",
    unit: "count",
    route: "migrate",
    side: "source",
    default: { value: 2, text: "2" },
    minimum: 1,
    maximum: 255,
    power_of_two: false,
    choices: [],
    allowed: "1 to 255",
    examples: "8",
    qmp: null,
    libvirt: null,
    probe: "",
    since: "7.2",
    until: null,
    overwriter: "",
    takes_effect: "at the next migration",
    running: false,
    pack: "",
    read_only: false,
    ...part,
  };
}
