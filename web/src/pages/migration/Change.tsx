/** What can be done while a migration runs, each with what it will do, or why it cannot be done. */
import {
  ActionList,
  ActionListGroup,
  ActionListItem,
  Button,
  Content,
  Tooltip,
} from "@patternfly/react-core";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import type { Needs } from "../../api/progress";
import { ChangeDialog } from "../../components/migration/ChangeDialog";
import { CONTROLS, suggested } from "../../components/migration/controls";
import { useChange } from "../../components/migration/useChange";

type Possible = Schemas["ControlView"];

/**
 * @param controls what is possible with this migration.
 * @param needs what would let it end, where that is known.
 */
export function Change({
  id,
  controls,
  needs,
}: {
  id: string;
  controls: readonly Possible[];
  needs: Needs | null;
}) {
  const [chosen, choose] = useState<(Possible & { suggestion: string }) | null>(null);
  const change = useChange(id);
  const impossible = controls.filter((each) => each.why_not);
  return (
    <>
      <ActionList>
        <ActionListGroup>
          {controls.map((each) => {
            const control = CONTROLS[each.name];
            return (
              <ActionListItem key={each.name}>
                <Tooltip content={each.why_not ? `Not possible: ${each.why_not}` : control.effect}>
                  <Button
                    variant="secondary"
                    isAriaDisabled={Boolean(each.why_not) || change.isPending}
                    onClick={() =>
                      choose({ ...each, suggestion: suggested(control, needs, each.present_ms) })
                    }
                  >
                    {control.action}
                  </Button>
                </Tooltip>
              </ActionListItem>
            );
          })}
        </ActionListGroup>
      </ActionList>
      {impossible.length > 0 && <Content component="small">{reasons(impossible)}</Content>}
      {chosen && (
        <ChangeDialog
          control={CONTROLS[chosen.name]}
          suggestion={chosen.suggestion}
          close={() => choose(null)}
          confirm={(value) => change.mutate({ control: CONTROLS[chosen.name], value })}
        />
      )}
    </>
  );
}

/** Why some are not possible; the same reason is told once. */
function reasons(controls: readonly Possible[]): string {
  const by = new Map<string, string[]>();
  for (const { name, why_not } of controls) {
    by.set(why_not, [...(by.get(why_not) ?? []), CONTROLS[name].action]);
  }
  return [...by].map(([why, actions]) => `${actions.join(", ")}: ${why}.`).join(" ");
}
