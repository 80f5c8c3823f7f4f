import { Button } from "@patternfly/react-core";
import SearchIcon from "@patternfly/react-icons/dist/esm/icons/search-icon";
import { lazy, Suspense, useCallback, useState } from "react";
import { useTypedAhead } from "./typedAhead";
import { useCtrlK } from "./useShortcut";

const Find = lazy(() => import("./Find"));

/** Opens the search over everything, as Ctrl-K does. */
export function FindButton() {
  const [isOpen, setOpen] = useState(false);
  useCtrlK(useCallback(() => setOpen((was) => !was), []));
  const ahead = useTypedAhead(isOpen);
  return (
    <>
      <Button
        variant="control"
        icon={<SearchIcon />}
        aria-keyshortcuts="Control+K"
        aria-label="Search"
        title="Search (Ctrl-K)"
        onClick={() => setOpen(true)}
      >
        <span className="vt-wide">Search</span>
      </Button>
      {isOpen && (
        <Suspense fallback={null}>
          <Find ahead={ahead} close={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
