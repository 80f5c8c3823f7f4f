/** Pages whose program is fetched when they are first looked at, and until it comes. */
import { type ComponentType, lazy } from "react";

type Page = { default: ComponentType };

const AGAIN_MS = 2_000;
const YOUNG_MS = 10_000;

export function page(load: () => Promise<Page>) {
  return lazy(() => untilLoaded(load));
}

/** What *load* brings, where nobody answers now: once somebody does. */
export async function untilLoaded(
  load: () => Promise<Page>,
  answers: () => Promise<boolean> = serviceAnswers,
  anew: () => void = reload,
): Promise<Page> {
  let answered = false;
  for (;;) {
    try {
      return await load();
    } catch (error) {
      const there = await answers();
      if (there && answered) {
        // The service is there and the file is not: it was upgraded, or nobody is signed in any
        // more. A page that has only just been loaded would not learn better files.
        if (performance.now() < YOUNG_MS) throw error;
        anew();
      }
      answered = there;
      if (!there) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

const reload = () => globalThis.location.reload();

async function serviceAnswers(): Promise<boolean> {
  try {
    await fetch("/api/v1/live", { cache: "no-store" });
    return true;
  } catch {
    return false;
  }
}
