import { Card, CardBody, CardHeader, CardTitle } from "@patternfly/react-core";
import { type ReactNode, useId } from "react";

/** A part of a page, with its heading. */
export function Section({
  title,
  actions,
  children,
}: {
  title: string;
  actions?: ReactNode;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <Card component="section" aria-labelledby={id}>
      <CardHeader {...(actions ? { actions: { actions, hasNoOffset: true } } : {})}>
        <CardTitle component="h2" id={id}>
          {title}
        </CardTitle>
      </CardHeader>
      <CardBody>{children}</CardBody>
    </Card>
  );
}
