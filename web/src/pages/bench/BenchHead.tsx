import { Nav, NavItem, NavList, PageSection } from "@patternfly/react-core";
import { useEffect, useRef } from "react";
import { Link, useLocation } from "react-router";
import { type Head, PageHead } from "../../components/layout/PageHead";

const PARTS = [
  { to: "/bench/campaigns", text: "Campaigns" },
  { to: "/bench/studies", text: "Studies" },
  { to: "/bench/runs", text: "Runs" },
  { to: "/bench/scenarios", text: "Scenarios" },
  { to: "/bench/compare", text: "Compare" },
  { to: "/bench/history", text: "History" },
  { to: "/bench/reference", text: "Published" },
] as const;

/** The head of every page of the benchmark: its parts, and below them the page's own head. */
export function BenchHead(head: Head) {
  const { pathname } = useLocation();
  const place = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page is another part
  useEffect(() => {
    // On a narrow screen only some parts are seen: this one is to be among them.
    const here = place.current?.querySelector("[aria-current]");
    here?.scrollIntoView?.({ block: "nearest", inline: "center" });
  }, [pathname]);
  return (
    <>
      <PageSection type="subnav" ref={place}>
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
      <PageHead {...head} />
    </>
  );
}
