import type { ReactNode } from "react";

/** What may be wider than the page: it scrolls by itself, by keyboard too. */
export function Wide({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
    <section aria-label={label} tabIndex={0} style={{ overflowX: "auto", maxWidth: "100%" }}>
      {children}
    </section>
  );
}
