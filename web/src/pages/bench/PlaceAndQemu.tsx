import { FormGroup, FormSelect, FormSelectOption } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { qemus } from "../../api/bench";
import type { Schemas } from "../../api/client";

export const PLACES: Record<Schemas["Place"], string> = {
  direct: "Two QEMUs on this machine",
  lab: "The lab's two libvirt hosts",
};

/** Where to measure, and with which QEMU. */
export function PlaceAndQemu({
  id,
  place,
  qemu,
  choose,
}: {
  id: string;
  place: Schemas["Place"];
  qemu: string;
  choose: (chosen: { place: Schemas["Place"]; qemu: string }) => void;
}) {
  const list = useQuery(qemus);
  return (
    <>
      <FormGroup label="Place" fieldId={`${id}-place`}>
        <FormSelect
          id={`${id}-place`}
          value={place}
          onChange={(_event, chosen) => choose({ place: chosen as Schemas["Place"], qemu })}
        >
          {Object.entries(PLACES).map(([value, label]) => (
            <FormSelectOption key={value} value={value} label={label} />
          ))}
        </FormSelect>
      </FormGroup>
      <FormGroup label="QEMU" fieldId={`${id}-qemu`}>
        <FormSelect
          id={`${id}-qemu`}
          value={qemu}
          onChange={(_event, chosen) => choose({ place, qemu: chosen })}
        >
          <FormSelectOption value="" label="Default" />
          {(list.data ?? []).map((each) => (
            <FormSelectOption
              key={each.name}
              value={each.name}
              label={`${each.name}: ${each.binary}`}
            />
          ))}
        </FormSelect>
      </FormGroup>
    </>
  );
}
