import { Button, Toolbar, ToolbarContent, ToolbarItem } from "@patternfly/react-core";
import { count, counted } from "../../components/text/format";
import type { Kind } from "./orders";

const ACTIONS: readonly (readonly [kind: Kind, text: string])[] = [
  ["apply", "Re-apply"],
  ["verify", "Verify"],
  ["label", "Label"],
  ["assign", "Assign"],
  ["migrate", "Migrate"],
];

/** What can be done with the VMs that are chosen in a list of *matching* ones. */
export function Selected({
  chosen,
  matching,
  everything,
  takeAll,
  clear,
  act,
}: {
  chosen: number;
  matching: number;
  everything: boolean;
  takeAll: () => void;
  clear: () => void;
  act: (kind: Kind) => void;
}) {
  return (
    <Toolbar aria-label="Chosen VMs" inset={{ default: "insetNone" }}>
      <ToolbarContent rowWrap={{ default: "wrap" }}>
        <ToolbarItem alignSelf="center">
          <strong>
            {everything ? `All ${counted(matching, "VM")} that match` : `${count(chosen)} chosen`}
          </strong>
        </ToolbarItem>
        {ACTIONS.map(([kind, text]) => (
          <ToolbarItem key={kind}>
            <Button variant="secondary" onClick={() => act(kind)}>
              {text}
            </Button>
          </ToolbarItem>
        ))}
        {!everything && chosen < matching && (
          <ToolbarItem>
            <Button variant="link" onClick={takeAll}>
              Choose all {count(matching)} that match
            </Button>
          </ToolbarItem>
        )}
        <ToolbarItem>
          <Button variant="link" onClick={clear}>
            Choose none
          </Button>
        </ToolbarItem>
      </ToolbarContent>
    </Toolbar>
  );
}
