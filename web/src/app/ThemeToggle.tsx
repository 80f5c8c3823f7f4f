import { Button } from "@patternfly/react-core";
import MoonIcon from "@patternfly/react-icons/dist/esm/icons/moon-icon";
import SunIcon from "@patternfly/react-icons/dist/esm/icons/sun-icon";
import { useState } from "react";

const DARK = "pf-v6-theme-dark";

/** Switches between light and dark, and remembers it in this browser. */
export function ThemeToggle() {
  const [dark, setDark] = useState(() => document.documentElement.classList.contains(DARK));
  const toggle = () => {
    document.documentElement.classList.toggle(DARK, !dark);
    try {
      localStorage.setItem("vmtune.theme", dark ? "light" : "dark");
    } catch {
      // Where storage is forbidden the choice lasts as long as the page.
    }
    setDark(!dark);
  };
  return (
    <Button
      variant="plain"
      aria-label={dark ? "Use the light theme" : "Use the dark theme"}
      icon={dark ? <SunIcon /> : <MoonIcon />}
      onClick={toggle}
    />
  );
}
