import { type AlertProps, Alert as Plain } from "@patternfly/react-core";

/** An alert whose title is a heading of a level that follows a page's, a dialog's or a card's
 * title; PatternFly's own skips one. */
export function Alert(props: AlertProps) {
  return <Plain component="h2" {...props} />;
}
