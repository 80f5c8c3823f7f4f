import { Stack, StackItem, Title } from "@patternfly/react-core";
import { type Fact, FactList } from "../../components/layout/Facts";

/** Facts of several things, each under its name. */
export function Parts({ parts }: { parts: readonly { name: string; facts: readonly Fact[] }[] }) {
  return (
    <Stack hasGutter>
      {parts.map(({ name, facts }) => (
        <StackItem key={name}>
          <Title headingLevel="h3" size="md">
            {name}
          </Title>
          <FactList spread facts={facts} />
        </StackItem>
      ))}
    </Stack>
  );
}
