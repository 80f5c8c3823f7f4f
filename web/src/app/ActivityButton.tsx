import { Badge, Button } from "@patternfly/react-core";
import BellIcon from "@patternfly/react-icons/dist/esm/icons/bell-icon";
import { useQuery } from "@tanstack/react-query";
import { activity } from "../api/overview";
import { useEnds } from "./useEnds";

/** Opens and closes the panel of activity; how much runs now. */
export function ActivityButton({ isOpen, toggle }: { isOpen: boolean; toggle: () => void }) {
  useEnds();
  const { data } = useQuery(activity);
  const running = data?.items.filter((each) => !each.ended).length ?? 0;
  return (
    <Button
      variant="plain"
      icon={<BellIcon />}
      aria-label={running > 0 ? `Activity, ${running} running` : "Activity"}
      aria-expanded={isOpen}
      onClick={toggle}
    >
      <span className="vt-wide">Activity</span> {running > 0 && <Badge>{running}</Badge>}
    </Button>
  );
}
