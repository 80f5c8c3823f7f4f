/** Every page, once: its path, and its place in the navigation. */
import { lazy } from "react";
import type { RouteObject } from "react-router";

const Overview = lazy(() => import("../pages/Overview"));
const Hosts = lazy(() => import("../pages/Hosts"));
const Vms = lazy(() => import("../pages/Vms"));
const Vm = lazy(() => import("../pages/Vm"));
const NotFound = lazy(() => import("../pages/NotFound"));

export const NAVIGATION = [
  { to: "/", text: "Overview" },
  { to: "/vms", text: "VMs" },
  { to: "/hosts", text: "Hosts" },
] as const;

export const ROUTES: RouteObject[] = [
  { path: "/", element: <Overview /> },
  { path: "/vms", element: <Vms /> },
  { path: "/vms/:uuid", element: <Vm /> },
  { path: "/hosts", element: <Hosts /> },
  { path: "*", element: <NotFound /> },
];
