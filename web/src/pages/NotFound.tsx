import { PageSection } from "@patternfly/react-core";
import { Link } from "react-router";
import { Empty } from "../components/layout/Async";

export default function NotFound() {
  return (
    <PageSection>
      <Empty whole title="Page not found" action={<Link to="/">Go to the overview</Link>} />
    </PageSection>
  );
}
