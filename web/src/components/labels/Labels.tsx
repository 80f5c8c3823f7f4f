import { Label, LabelGroup } from "@patternfly/react-core";

/** A VM's labels; a dash where it has none. */
export function Labels({ labels }: { labels: Readonly<Record<string, string>> }) {
  const pairs = Object.entries(labels);
  if (pairs.length === 0) return <>–</>;
  return (
    <LabelGroup aria-label="Labels">
      {pairs.map(([key, value]) => (
        <Label key={key} isCompact variant="outline">
          {key}={value}
        </Label>
      ))}
    </LabelGroup>
  );
}
