/** Every page, once: its path, and its place in the navigation. */
import { lazy } from "react";
import type { RouteObject } from "react-router";

const Overview = lazy(() => import("../pages/Overview"));
const Hosts = lazy(() => import("../pages/Hosts"));
const Vms = lazy(() => import("../pages/Vms"));
const Vm = lazy(() => import("../pages/Vm"));
const Profiles = lazy(() => import("../pages/Profiles"));
const Profile = lazy(() => import("../pages/Profile"));
const ProfileEditor = lazy(() => import("../pages/ProfileEditor"));
const Migrations = lazy(() => import("../pages/Migrations"));
const Migration = lazy(() => import("../pages/Migration"));
const Host = lazy(() => import("../pages/Host"));
const NotFound = lazy(() => import("../pages/NotFound"));

export const NAVIGATION = [
  { to: "/", text: "Overview" },
  { to: "/vms", text: "VMs" },
  { to: "/migrations", text: "Migrations" },
  { to: "/profiles", text: "Profiles" },
  { to: "/hosts", text: "Hosts" },
] as const;

export const ROUTES: RouteObject[] = [
  { path: "/", element: <Overview /> },
  { path: "/vms", element: <Vms /> },
  { path: "/vms/:uuid", element: <Vm /> },
  { path: "/migrations", element: <Migrations /> },
  { path: "/migrations/:id", element: <Migration /> },
  { path: "/profiles", element: <Profiles /> },
  { path: "/profiles/new", element: <ProfileEditor /> },
  { path: "/profiles/:name", element: <Profile /> },
  { path: "/profiles/:name/edit", element: <ProfileEditor /> },
  { path: "/hosts", element: <Hosts /> },
  { path: "/hosts/:name", element: <Host /> },
  { path: "*", element: <NotFound /> },
];
