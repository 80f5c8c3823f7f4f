import { useCallback, useEffect, useRef } from "react";

/**
 * Keeps what is typed from when something opens until its field has the focus, which it has only
 * once it has been loaded.
 *
 * @returns what was typed until now; the field hears the rest.
 */
export function useTypedAhead(isOpen: boolean): () => string {
  const typed = useRef("");
  const stop = useRef(() => {});
  useEffect(() => {
    if (!isOpen) return;
    typed.current = "";
    const hear = (event: KeyboardEvent) => {
      if (event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey) return;
      typed.current += event.key;
      event.preventDefault();
    };
    stop.current = () => removeEventListener("keydown", hear, true);
    addEventListener("keydown", hear, true);
    return stop.current;
  }, [isOpen]);
  return useCallback(() => {
    stop.current();
    const all = typed.current;
    typed.current = "";
    return all;
  }, []);
}
