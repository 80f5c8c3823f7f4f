import {
  Alert,
  Masthead,
  MastheadBrand,
  MastheadContent,
  MastheadLogo,
  MastheadMain,
  MastheadToggle,
  Nav,
  NavItem,
  NavList,
  Page,
  PageSidebar,
  PageSidebarBody,
  PageToggleButton,
  SkipToContent,
  Toolbar,
  ToolbarContent,
  ToolbarGroup,
  ToolbarItem,
} from "@patternfly/react-core";
import { Suspense } from "react";
import { Link, Outlet, useLocation } from "react-router";
import { useConnection } from "../components/live";
import { NAVIGATION } from "./routes";
import { SignedIn } from "./SignedIn";
import { ThemeToggle } from "./ThemeToggle";

const MAIN = "main-content";

export function Shell() {
  const connection = useConnection();
  const { pathname } = useLocation();
  return (
    <Page
      isManagedSidebar
      mainContainerId={MAIN}
      skipToContent={<SkipToContent href={`#${MAIN}`}>Skip to content</SkipToContent>}
      masthead={
        <Masthead>
          <MastheadMain>
            <MastheadToggle>
              <PageToggleButton isHamburgerButton aria-label="Navigation" />
            </MastheadToggle>
            <MastheadBrand style={{ display: "flex", alignItems: "center" }}>
              <MastheadLogo component={(props) => <Link {...props} to="/" />}>
                <strong>vmtune</strong>
              </MastheadLogo>
            </MastheadBrand>
          </MastheadMain>
          <MastheadContent>
            <Toolbar isFullHeight isStatic>
              <ToolbarContent>
                <ToolbarGroup align={{ default: "alignEnd" }}>
                  <ToolbarItem>
                    <SignedIn />
                  </ToolbarItem>
                  <ToolbarItem>
                    <ThemeToggle />
                  </ToolbarItem>
                </ToolbarGroup>
              </ToolbarContent>
            </Toolbar>
          </MastheadContent>
        </Masthead>
      }
      sidebar={
        <PageSidebar>
          <PageSidebarBody>
            <Nav aria-label="Pages">
              <NavList>
                {NAVIGATION.map(({ to, text }) => (
                  <NavItem
                    key={to}
                    isActive={to === "/" ? pathname === "/" : pathname.startsWith(to)}
                  >
                    <Link to={to}>{text}</Link>
                  </NavItem>
                ))}
              </NavList>
            </Nav>
          </PageSidebarBody>
        </PageSidebar>
      }
    >
      <div role="status" aria-live="polite">
        {connection === "lost" && (
          <Alert
            variant="warning"
            isInline
            title="Lost the connection to the service. The data may be out of date; reconnecting."
          />
        )}
      </div>
      <Suspense fallback={null}>
        <Outlet />
      </Suspense>
    </Page>
  );
}
