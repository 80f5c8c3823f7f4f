import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { Fragment } from "react";
import type { Schemas } from "../../api/client";
import { TunableName } from "../../components/labels/TunableName";
import { Td } from "../../components/tables/Td";
import { unbroken } from "../../components/text/format";
import { useValueText } from "../../components/text/useValueText";
import { Section } from "../bench/Section";

interface Arm {
  name: string;
  profile: string;
  revision: number | null;
  values: Record<string, unknown>;
  qemu: string;
  testbed: string;
}

/** What is held against each other; the first arm is the one that others are compared with. */
export function Arms({ campaign }: { campaign: Schemas["CampaignDetail"] }) {
  const text = useValueText();
  const arms = (campaign.campaign.arms ?? []) as Arm[];
  return (
    <Section title="Arms">
      <Table aria-label="Arms" variant="compact">
        <Thead>
          <Tr>
            <Th>Arm</Th>
            <Th>Profile</Th>
            <Th>Further values</Th>
            <Th>QEMU</Th>
            <Th>Testbed</Th>
          </Tr>
        </Thead>
        <Tbody>
          {arms.map((arm) => (
            <Tr key={arm.name}>
              <Td dataLabel="Arm">{arm.name}</Td>
              <Td dataLabel="Profile">
                {arm.profile ? `${arm.profile} r${arm.revision ?? "?"}` : "none"}
              </Td>
              <Td dataLabel="Further values">
                {Object.keys(arm.values).length === 0 && "nothing"}
                {Object.entries(arm.values).map(([name, value], place) => (
                  <Fragment key={name}>
                    {place > 0 && ", "}
                    <TunableName name={name} /> {unbroken(text(name, value))}
                  </Fragment>
                ))}
              </Td>
              <Td dataLabel="QEMU">{arm.qemu || "default"}</Td>
              <Td dataLabel="Testbed">{arm.testbed}</Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
    </Section>
  );
}
