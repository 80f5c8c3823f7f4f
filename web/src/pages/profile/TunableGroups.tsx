import {
  Button,
  Flex,
  FlexItem,
  SearchInput,
  Switch,
  Title,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { useEffect, useId, useRef, useState } from "react";
import type { Schemas } from "../../api/client";
import { type Remarks, TunableField } from "./TunableField";
import { bySubject, finds, type Typed } from "./typed";

type Tunable = Schemas["TunableView"];

/**
 * Tunables by subject: what is set, and more where it is asked for, subject by subject, by words,
 * or all.
 *
 * @param sought the field to lead to, and how often that was asked for.
 */
export function TunableGroups({
  tunables,
  values,
  remarks,
  sought,
  change,
}: {
  tunables: readonly Tunable[];
  values: Typed;
  remarks: (tunable: string) => Remarks;
  sought: { tunable: string; count: number } | null;
  change: (tunable: string, value: string | undefined) => void;
}) {
  const id = useId();
  const [words, setWords] = useState("");
  const [all, setAll] = useState(false);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  // What is unset again while it is edited stays in sight.
  const [kept, setKept] = useState<ReadonlySet<string>>(new Set());
  const keep = (name: string) => setKept((before) => new Set(before).add(name));
  const led = useRef<string | null>(null);
  useEffect(() => {
    if (sought === null) return;
    led.current = sought.tunable;
    setWords("");
    setKept((before) => new Set(before).add(sought.tunable));
  }, [sought]);
  // After each drawing: the field may be drawn only by now.
  useEffect(() => {
    const field = led.current && document.getElementById(`tunable-${led.current}`);
    if (!field) return;
    led.current = null;
    field.scrollIntoView({ block: "center" });
    field.focus();
  });
  const groups = [...bySubject(tunables)].map(([subject, rows]) => {
    const inSight = (row: Tunable) =>
      words.trim()
        ? finds(words.trim(), row)
        : all || open.has(subject) || row.name in values || kept.has(row.name);
    return { subject, rows, shown: rows.filter(inSight) };
  });
  const found = groups.reduce((sum, { shown }) => sum + shown.length, 0);
  const toggle = (subject: string) =>
    setOpen((before) => {
      const next = new Set(before);
      if (!next.delete(subject)) next.add(subject);
      return next;
    });
  return (
    <>
      <Toolbar aria-label="Tunables" inset={{ default: "insetNone" }}>
        <ToolbarContent rowWrap={{ default: "wrap" }} alignItems="center">
          <ToolbarItem>
            <SearchInput
              aria-label="Find a tunable"
              placeholder="Find a tunable"
              value={words}
              onChange={(_event, typed) => setWords(typed)}
              onClear={() => setWords("")}
              {...(words.trim() ? { resultsCount: found } : {})}
            />
          </ToolbarItem>
          <ToolbarItem>
            <Switch
              id={`${id}-all`}
              label="Show unset tunables"
              isChecked={all}
              onChange={(_event, on) => setAll(on)}
            />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      {words.trim() && found === 0 && <p>No tunable has these words.</p>}
      {groups
        .filter(({ shown }) => !words.trim() || shown.length > 0)
        .map(({ subject, rows, shown }) => {
          const set = rows.filter((row) => row.name in values).length;
          const whole = all || open.has(subject);
          return (
            <div key={subject}>
              <Flex alignItems={{ default: "alignItemsBaseline" }}>
                <FlexItem>
                  <Title headingLevel="h3" size="md">
                    {subject}
                  </Title>
                </FlexItem>
                <FlexItem>
                  <small>
                    {set} of {rows.length} set
                  </small>
                </FlexItem>
                {!words.trim() && !all && (
                  <FlexItem>
                    <Button
                      variant="link"
                      isInline
                      aria-expanded={whole}
                      aria-label={`${whole ? "Show what is set" : "Show all"} of ${subject}`}
                      onClick={() => toggle(subject)}
                    >
                      {whole ? "Show what is set" : "Show all"}
                    </Button>
                  </FlexItem>
                )}
              </Flex>
              {shown.map((row) => (
                <TunableField
                  key={row.name}
                  tunable={row}
                  value={values[row.name]}
                  remarks={remarks(row.name)}
                  change={(value) => {
                    keep(row.name);
                    change(row.name, value);
                  }}
                />
              ))}
            </div>
          );
        })}
    </>
  );
}
