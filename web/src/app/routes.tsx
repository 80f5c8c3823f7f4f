/** Every page, once: its path, and its place in the navigation. */
import { lazy } from "react";
import type { RouteObject } from "react-router";

const Overview = lazy(() => import("../pages/Overview"));
const Hosts = lazy(() => import("../pages/Hosts"));
const NotFound = lazy(() => import("../pages/NotFound"));

export const NAVIGATION = [
  { to: "/", text: "Overview" },
  { to: "/hosts", text: "Hosts" },
] as const;

export const ROUTES: RouteObject[] = [
  { path: "/", element: <Overview /> },
  { path: "/hosts", element: <Hosts /> },
  { path: "*", element: <NotFound /> },
];
