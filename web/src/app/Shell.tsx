import {
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
import { lazy, Suspense, useState } from "react";
import { Link, Outlet, useLocation } from "react-router";
import { Alert } from "../components/layout/Alert";
import { useConnection } from "../components/live/live";
import { ActivityButton } from "./ActivityButton";
import { FindButton } from "./FindButton";
import { NAVIGATION } from "./routes";
import { SignedIn } from "./SignedIn";
import { ThemeToggle } from "./ThemeToggle";
import "./shell.css";

const MAIN = "main-content";
const PANEL = "vmtune.activity";
const ActivityPanel = lazy(() => import("./ActivityPanel"));

/** Whether the panel of activity is open: on every page, and the next time. */
function usePanel(): [boolean, (open: boolean) => void] {
  const [isOpen, setOpen] = useState(() => globalThis.localStorage?.getItem(PANEL) === "open");
  const choose = (open: boolean) => {
    setOpen(open);
    try {
      localStorage.setItem(PANEL, open ? "open" : "closed");
    } catch {
      // Where storage is forbidden the choice lasts as long as the page.
    }
  };
  return [isOpen, choose];
}

export function Shell() {
  const connection = useConnection();
  const { pathname } = useLocation();
  const [panel, setPanel] = usePanel();
  return (
    <Page
      isManagedSidebar
      mainContainerId={MAIN}
      isNotificationDrawerExpanded={panel}
      notificationDrawer={
        panel && (
          <Suspense fallback={null}>
            <ActivityPanel close={() => setPanel(false)} />
          </Suspense>
        )
      }
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
                    <FindButton />
                  </ToolbarItem>
                  <ToolbarItem>
                    <ActivityButton isOpen={panel} toggle={() => setPanel(!panel)} />
                  </ToolbarItem>
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
