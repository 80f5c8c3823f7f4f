/** Short notices of what was done or refused, read out by screen readers. */
import { AlertActionCloseButton, AlertGroup, type AlertProps } from "@patternfly/react-core";
import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from "react";
import { ApiError } from "../../api/client";
import { Alert } from "../layout/Alert";
import { Said } from "../text/Said";

interface Toast {
  key: number;
  variant: NonNullable<AlertProps["variant"]>;
  title: string;
  detail: string;
}

interface Toasts {
  done: (title: string, detail?: string) => void;
  failed: (title: string, error: unknown) => void;
  /** Something has ended that nobody here may have asked for just now. */
  ended: (title: string, detail: string, well: boolean) => void;
}

const Context = createContext<Toasts | null>(null);
const SHOWN_MS = 8_000;
let next = 0;

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const add = useCallback((toast: Omit<Toast, "key">) => {
    next += 1;
    const key = next;
    setToasts((shown) => [...shown.slice(-4), { ...toast, key }]);
  }, []);
  const remove = (key: number) => setToasts((shown) => shown.filter((each) => each.key !== key));
  const value = useMemo<Toasts>(
    () => ({
      done: (title, detail = "") => add({ variant: "success", title, detail }),
      ended: (title, detail, well) => add({ variant: well ? "success" : "warning", title, detail }),
      failed: (title, error) => add({ variant: "danger", title, detail: inWords(error) }),
    }),
    [add],
  );
  return (
    <Context.Provider value={value}>
      {children}
      <AlertGroup isToast isLiveRegion>
        {toasts.map((toast) => (
          <Alert
            key={toast.key}
            variant={toast.variant}
            title={toast.title}
            timeout={toast.variant === "danger" ? false : SHOWN_MS}
            onTimeout={() => remove(toast.key)}
            actionClose={
              <AlertActionCloseButton title={toast.title} onClose={() => remove(toast.key)} />
            }
          >
            <Said>{toast.detail}</Said>
          </Alert>
        ))}
      </AlertGroup>
    </Context.Provider>
  );
}

export function useToasts(): Toasts {
  const toasts = useContext(Context);
  if (toasts === null) throw new Error("there is no ToastProvider around this component");
  return toasts;
}

/** An error as a sentence with its remedy. */
export function inWords(error: unknown): string {
  if (error instanceof ApiError) return [error.message, error.remedy].filter(Boolean).join(": ");
  return error instanceof Error ? error.message : String(error);
}
