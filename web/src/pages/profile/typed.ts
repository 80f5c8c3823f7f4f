/** A profile's values as they are typed, and what a new profile can begin with. */
import type { Schemas } from "../../api/client";

export type Typed = Readonly<Record<string, string>>;

/** A stored profile, or a template. */
export type Source = Pick<
  Schemas["ProfileView"],
  "name" | "description" | "values" | "texts" | "steps"
> & { intent?: Schemas["ProfileView"]["intent"] };

/** Values as they can be typed again: on, 8, 1072 MiB/s. */
export function asTyped({ values, texts }: Pick<Source, "values" | "texts">): Typed {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      typeof value === "number"
        ? (texts[name] ?? String(value)).replaceAll(",", "")
        : typeof value === "boolean"
          ? value
            ? "on"
            : "off"
          : value,
    ]),
  );
}

/** *before* with another value of one tunable; undefined unsets it. */
export function changed(before: Typed, name: string, value: string | undefined): Typed {
  const { [name]: _old, ...rest } = before;
  return value === undefined ? rest : { ...rest, [name]: value };
}

type Tunable = Schemas["TunableView"];

/** Whether *words*, all of them, are in what is said of a tunable. */
export function finds(words: string, row: Tunable): boolean {
  const said = [
    row.name,
    row.title,
    row.why,
    row.subject,
    row.qmp?.name ?? "",
    row.libvirt?.name ?? "",
    row.libvirt?.virsh ?? "",
  ]
    .join(" ")
    .toLowerCase()
    .replaceAll(/[_-]/g, " ");
  return words
    .toLowerCase()
    .replaceAll(/[_-]/g, " ")
    .split(/\s+/)
    .every((word) => said.includes(word));
}

/** Tunables by subject, in the table's order. */
export function bySubject(tunables: readonly Tunable[]): ReadonlyMap<string, readonly Tunable[]> {
  const found = new Map<string, Tunable[]>();
  for (const row of tunables) found.set(row.subject, [...(found.get(row.subject) ?? []), row]);
  return found;
}

/** Where a problem is, in words, and the id of the field; null where it is no field. */
export function placeOf(
  field: string,
  tunables: readonly Tunable[],
): { title: string; tunable: string | null } | null {
  const [kind, which = ""] = field.split(".");
  if (kind === "values") {
    const row = tunables.find((each) => each.name === which);
    return { title: row?.title ?? which, tunable: row?.name ?? null };
  }
  if (kind === "intent") return { title: "Intent", tunable: null };
  if (kind === "steps") return { title: `Step ${Number(which) + 1}`, tunable: null };
  return null;
}
