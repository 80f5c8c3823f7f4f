/** Components as they stand in the UI: with queries, addresses, events and toasts around them. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render } from "@testing-library/react";
import type { ReactNode } from "react";
import { MemoryRouter } from "react-router";
import { ToastProvider } from "../components/dialogs/toasts";

export function rendered(what: ReactNode, address = "/") {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const around = (inner: ReactNode) => (
    <QueryClientProvider client={queries}>
      <ToastProvider>
        <MemoryRouter initialEntries={[address]}>{inner}</MemoryRouter>
      </ToastProvider>
    </QueryClientProvider>
  );
  const shown = render(around(what));
  return { ...shown, again: (next: ReactNode) => shown.rerender(around(next)) };
}
