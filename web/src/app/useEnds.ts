import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { useLocation } from "react-router";
import { activity } from "../api/overview";
import { useToasts } from "../components/dialogs/toasts";
import { type Activity, endsSince, inShort, lookOf, summed } from "./activity";

const ALONE = 3; // more that end together are told as one

/** Tells when something ends that ran: here, and by the desktop where that was allowed. */
export function useEnds(): void {
  const { data } = useQuery(activity);
  const { pathname } = useLocation();
  const toasts = useToasts();
  const seen = useRef<readonly Activity[] | null>(null);
  useEffect(() => {
    if (data === undefined) return;
    const before = seen.current;
    seen.current = data.items;
    if (before === null) return;
    // The page that is about it shows it already.
    const ends = endsSince(before, data.items).filter(({ id }) => !pathname.includes(id));
    if (ends.length === 0) return;
    if (ends.length > ALONE) {
      const title = `${ends.length} have ended: ${summed(ends)}`;
      toasts.ended(
        title,
        "",
        ends.every((each) => lookOf(each) === "success"),
      );
      desktop(title, "");
      return;
    }
    for (const each of ends) {
      toasts.ended(inShort(each), each.failure || each.detail, lookOf(each) === "success");
      desktop(inShort(each), each.failure || each.detail);
    }
  }, [data, pathname, toasts]);
}

export const DESKTOP = "vmtune.desktop";

/** A notification outside of the page, while nobody looks at it. */
function desktop(title: string, body: string): void {
  if (!document.hidden || globalThis.Notification?.permission !== "granted") return;
  if (globalThis.localStorage?.getItem(DESKTOP) === "on") new Notification(title, { body });
}
