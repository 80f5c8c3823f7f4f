import { ClipboardCopy, ClipboardCopyVariant, List, ListItem } from "@patternfly/react-core";
import type { Schemas } from "../../api/client";
import { TunableName } from "../../components/labels/TunableName";

/** The equal virsh command to copy, and what Not supported by virsh. */
export function Virsh({ virsh }: { virsh: Schemas["VirshView"] }) {
  return (
    <>
      <p>Equivalent virsh command:</p>
      <ClipboardCopy
        isReadOnly
        isCode
        isExpanded
        variant={ClipboardCopyVariant.expansion}
        hoverTip="Copy"
        clickTip="Copied"
        textAriaLabel="Equivalent virsh command"
        toggleAriaLabel="Show the full command"
      >
        {virsh.command}
      </ClipboardCopy>
      {virsh.not_expressed.length > 0 && (
        <>
          <p>Not supported by virsh</p>
          <List>
            {virsh.not_expressed.map((each) => (
              <ListItem key={each.tunable}>
                <TunableName name={each.tunable} /> {each.wanted.text}: {each.reason}
              </ListItem>
            ))}
          </List>
        </>
      )}
    </>
  );
}
