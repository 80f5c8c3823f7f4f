/** Every page, once: its path, and its place in the navigation. */
import type { RouteObject } from "react-router";
import { page } from "./page";

const Overview = page(() => import("../pages/Overview"));
const Hosts = page(() => import("../pages/Hosts"));
const Vms = page(() => import("../pages/Vms"));
const Vm = page(() => import("../pages/Vm"));
const Profiles = page(() => import("../pages/Profiles"));
const Profile = page(() => import("../pages/Profile"));
const ProfileEditor = page(() => import("../pages/ProfileEditor"));
const Migrations = page(() => import("../pages/Migrations"));
const Migration = page(() => import("../pages/Migration"));
const Host = page(() => import("../pages/Host"));
const NotFound = page(() => import("../pages/NotFound"));

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
