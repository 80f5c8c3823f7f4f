import { useEffect } from "react";

/** Calls *act* on Ctrl-K, and on Command-K. *act* has to be stable. */
export function useCtrlK(act: () => void): void {
  useEffect(() => {
    const heard = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "k") return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", heard);
    return () => removeEventListener("keydown", heard);
  }, [act]);
}
