import "@patternfly/react-core/dist/styles/base.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createBrowserRouter, RouterProvider } from "react-router";
import { ApiError } from "./api/client";
import { Broken } from "./app/Broken";
import { ROUTES } from "./app/routes";
import { Shell } from "./app/Shell";
import { ToastProvider } from "./components/dialogs/toasts";
import { LiveProvider } from "./components/live/live";

const queries = new QueryClient({
  defaultOptions: {
    // The service may be this very machine's: whether there is a network says nothing of it.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      staleTime: 5_000,
      // A refusal stays one; only a service that cannot be reached is asked again.
      retry: (failures, error) => error instanceof ApiError && error.lost && failures < 3,
    },
  },
});

const router = createBrowserRouter([
  { element: <Shell />, children: [{ errorElement: <Broken />, children: ROUTES }] },
]);

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no element with the id root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <LiveProvider>
        <ToastProvider>
          <RouterProvider router={router} />
        </ToastProvider>
      </LiveProvider>
    </QueryClientProvider>
  </StrictMode>,
);
