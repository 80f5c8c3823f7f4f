import {
  FormGroup,
  FormHelperText,
  HelperText,
  HelperTextItem,
  TextInput,
} from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { type VmRow, vmsNamed } from "../../api/tuning";
import { useSettled } from "./settled";

const QUIET_MS = 250;

/** One of all VMs, by the beginning of what is typed of its name or UUID. */
export function VmChoice({
  id,
  label,
  chosen,
  choose,
}: {
  id: string;
  label: string;
  chosen: VmRow | null;
  choose: (vm: VmRow | null) => void;
}) {
  const [typed, setTyped] = useState(chosen?.name ?? "");
  const settled = useSettled(typed.trim(), QUIET_MS);
  const { data: found = [] } = useQuery(vmsNamed(settled));
  const said = (row: VmRow) =>
    found.filter((each) => each.name === row.name).length > 1 ? row.uuid : row.name;
  const match = found.find((row) => said(row) === typed.trim() || row.uuid === typed.trim());
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another match is told
  useEffect(() => {
    if (match?.uuid !== chosen?.uuid) choose(match ?? null);
  }, [match?.uuid]);
  const missing = typed !== "" && match === undefined;
  return (
    <FormGroup label={label} fieldId={id}>
      <TextInput
        id={id}
        list={`${id}-names`}
        autoComplete="off"
        placeholder="Name or UUID"
        value={typed}
        aria-describedby={`${id}-help`}
        onChange={(_event, text) => setTyped(text)}
      />
      <datalist id={`${id}-names`}>
        {found.map((row) => (
          <option key={`${row.uuid} ${row.host}`} value={said(row)}>
            {`${row.host}, ${row.state}`}
          </option>
        ))}
      </datalist>
      <FormHelperText>
        <HelperText id={`${id}-help`}>
          <HelperTextItem>
            {missing
              ? "Type the whole name, or choose one of those offered"
              : chosen
                ? `on ${chosen.host}, ${chosen.tuning_state}`
                : "Nothing is changed on it"}
          </HelperTextItem>
        </HelperText>
      </FormHelperText>
    </FormGroup>
  );
}
