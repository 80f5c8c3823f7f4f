import { ClipboardCopy, ClipboardCopyVariant, List, ListItem } from "@patternfly/react-core";
import type { Schemas } from "../../api/client";
import { TunableName } from "../../components/TunableName";

/** The equal virsh command to copy, and what virsh has no option for. */
export function Virsh({ virsh }: { virsh: Schemas["VirshView"] }) {
  return (
    <>
      <p>The same by virsh:</p>
      <ClipboardCopy
        isReadOnly
        isCode
        isExpanded
        variant={ClipboardCopyVariant.expansion}
        hoverTip="Copy"
        clickTip="Copied"
        textAriaLabel="The equal virsh command"
        toggleAriaLabel="Show the whole command"
      >
        {virsh.command}
      </ClipboardCopy>
      {virsh.unsaid.length > 0 && (
        <>
          <p>virsh has no option for</p>
          <List>
            {virsh.unsaid.map((each) => (
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
