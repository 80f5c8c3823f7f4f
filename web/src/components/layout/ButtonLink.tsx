import { Button, type ButtonProps } from "@patternfly/react-core";
import { Link } from "react-router";

/** A link that looks like a button: it can be opened in another tab. */
export function ButtonLink({
  to,
  children,
  variant = "primary",
}: {
  to: string;
  children: React.ReactNode;
  variant?: NonNullable<ButtonProps["variant"]>;
}) {
  return (
    <Button variant={variant} component={(props) => <Link {...props} to={to} />}>
      {children}
    </Button>
  );
}
