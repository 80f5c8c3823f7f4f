import { type ReactNode, useEffect, useRef } from "react";

const STICKS = {
  position: "sticky",
  insetBlockEnd: 0,
  paddingBlock: "var(--pf-t--global--spacer--sm)",
  background: "var(--pf-t--global--background--color--primary--default)",
  borderBlockStart: "1px solid var(--pf-t--global--border--color--default)",
  zIndex: "var(--pf-t--global--z-index--xs)",
} as const;

/** What can be done on a long page, always in sight at its end. What has the focus stays above it. */
export function StickyActions({ children }: { children: ReactNode }) {
  const bar = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const here = bar.current;
    const around = here && scrolling(here);
    if (!around) return;
    const fit = () => {
      around.style.scrollPaddingBlockEnd = `${here.offsetHeight}px`;
    };
    const size = new ResizeObserver(fit);
    size.observe(here);
    return () => {
      size.disconnect();
      around.style.scrollPaddingBlockEnd = "";
    };
  }, []);
  return (
    <div ref={bar} style={STICKS}>
      {children}
    </div>
  );
}

/** The nearest part of the page around *place* that scrolls. */
function scrolling(place: HTMLElement): HTMLElement | null {
  for (let each = place.parentElement; each !== null; each = each.parentElement) {
    if (["auto", "scroll"].includes(getComputedStyle(each).overflowY)) return each;
  }
  return document.documentElement;
}
