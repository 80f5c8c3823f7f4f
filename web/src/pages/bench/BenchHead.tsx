import { Nav, NavItem, NavList, PageSection } from "@patternfly/react-core";
import type { ReactNode } from "react";
import { Link, useLocation } from "react-router";
import { PageHead } from "../../components/PageHead";

const PARTS = [
  { to: "/bench/campaigns", text: "Campaigns" },
  { to: "/bench/runs", text: "Runs" },
  { to: "/bench/scenarios", text: "Scenarios" },
  { to: "/bench/compare", text: "Compare" },
  { to: "/bench/reference", text: "Published" },
] as const;

/** The head of every page of the benchmark: its parts, and below them the page's own head. */
export function BenchHead({
  title,
  trail = [],
  actions,
  children,
}: {
  title: string;
  trail?: readonly { to: string; text: string }[];
  actions?: ReactNode;
  children?: ReactNode;
}) {
  const { pathname } = useLocation();
  return (
    <>
      <PageSection type="subnav">
        <Nav variant="horizontal-subnav" aria-label="Benchmarks">
          <NavList>
            {PARTS.map(({ to, text }) => (
              <NavItem key={to} itemId={to} isActive={pathname.startsWith(to)}>
                <Link to={to}>{text}</Link>
              </NavItem>
            ))}
          </NavList>
        </Nav>
      </PageSection>
      <PageHead title={title} trail={trail} actions={actions}>
        {children}
      </PageHead>
    </>
  );
}
