import { Button, PageSection } from "@patternfly/react-core";
import { useRouteError } from "react-router";
import { Empty } from "../components/layout/Async";

/** In place of a page that failed: the navigation beside it goes on. */
export function Broken() {
  const error = useRouteError();
  const again = () => globalThis.location.reload();
  return (
    <PageSection>
      <Empty whole title="This page failed" action={<Button onClick={again}>Reload</Button>}>
        {error instanceof Error ? error.message : String(error)}
      </Empty>
    </PageSection>
  );
}
