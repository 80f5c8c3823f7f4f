import { FormGroup, FormSelect, FormSelectOption } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { qemus } from "../../api/bench";
import type { Schemas } from "../../api/client";

export const TESTBEDS: Record<Schemas["Testbed"], string> = {
  direct: "Two QEMUs on this machine",
  lab: "The lab's two libvirt hosts",
};

/** Where to measure, and with which QEMU. */
export function TestbedAndQemu({
  id,
  testbed,
  qemu,
  choose,
}: {
  id: string;
  testbed: Schemas["Testbed"];
  qemu: string;
  choose: (chosen: { testbed: Schemas["Testbed"]; qemu: string }) => void;
}) {
  const list = useQuery(qemus);
  return (
    <>
      <FormGroup label="Testbed" fieldId={`${id}-testbed`}>
        <FormSelect
          id={`${id}-testbed`}
          value={testbed}
          onChange={(_event, chosen) => choose({ testbed: chosen as Schemas["Testbed"], qemu })}
        >
          {Object.entries(TESTBEDS).map(([value, label]) => (
            <FormSelectOption key={value} value={value} label={label} />
          ))}
        </FormSelect>
      </FormGroup>
      <FormGroup label="QEMU" fieldId={`${id}-qemu`}>
        <FormSelect
          id={`${id}-qemu`}
          value={qemu}
          onChange={(_event, chosen) => choose({ testbed, qemu: chosen })}
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
