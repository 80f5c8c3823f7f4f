/** Every page, once: its path, and its place in the navigation. */
import { Navigate, type RouteObject } from "react-router";
import { page } from "./page";

const Overview = page(() => import("../pages/Overview"));
const Hosts = page(() => import("../pages/Hosts"));
const Vms = page(() => import("../pages/Vms"));
const Vm = page(() => import("../pages/Vm"));
const Profiles = page(() => import("../pages/Profiles"));
const Profile = page(() => import("../pages/Profile"));
const ProfileEditor = page(() => import("../pages/ProfileEditor"));
const ProfileCompare = page(() => import("../pages/ProfileCompare"));
const Migrations = page(() => import("../pages/Migrations"));
const Migration = page(() => import("../pages/Migration"));
const Forecasts = page(() => import("../pages/Forecasts"));
const Host = page(() => import("../pages/Host"));
const EvacuationPlan = page(() => import("../pages/EvacuationPlan"));
const Evacuation = page(() => import("../pages/Evacuation"));
const Campaigns = page(() => import("../pages/Campaigns"));
const Campaign = page(() => import("../pages/Campaign"));
const CampaignWizard = page(() => import("../pages/CampaignWizard"));
const Studies = page(() => import("../pages/Studies"));
const Study = page(() => import("../pages/Study"));
const Runs = page(() => import("../pages/Runs"));
const Run = page(() => import("../pages/Run"));
const Scenarios = page(() => import("../pages/Scenarios"));
const Scenario = page(() => import("../pages/Scenario"));
const Compare = page(() => import("../pages/Compare"));
const History = page(() => import("../pages/History"));
const References = page(() => import("../pages/References"));
const Reference = page(() => import("../pages/Reference"));
const Audit = page(() => import("../pages/Audit"));
const Settings = page(() => import("../pages/Settings"));
const NotFound = page(() => import("../pages/NotFound"));

export const NAVIGATION = [
  { to: "/", text: "Overview" },
  { to: "/vms", text: "VMs" },
  { to: "/migrations", text: "Migrations" },
  { to: "/profiles", text: "Profiles" },
  { to: "/bench", text: "Benchmarks" },
  { to: "/hosts", text: "Hosts" },
  { to: "/audit", text: "Audit" },
  { to: "/settings", text: "Settings" },
] as const;

export const ROUTES: RouteObject[] = [
  { path: "/", element: <Overview /> },
  { path: "/vms", element: <Vms /> },
  { path: "/vms/:uuid", element: <Vm /> },
  { path: "/migrations", element: <Migrations /> },
  { path: "/migrations/:id", element: <Migration /> },
  { path: "/forecasts", element: <Forecasts /> },
  { path: "/profiles", element: <Profiles /> },
  { path: "/profiles/new", element: <ProfileEditor /> },
  { path: "/profiles/:name", element: <Profile /> },
  { path: "/profiles/:name/edit", element: <ProfileEditor /> },
  { path: "/profiles/:name/compare", element: <ProfileCompare /> },
  { path: "/hosts", element: <Hosts /> },
  { path: "/hosts/:name", element: <Host /> },
  { path: "/hosts/:name/evacuate", element: <EvacuationPlan /> },
  { path: "/hosts/:name/evacuations/:id", element: <Evacuation /> },
  { path: "/bench", element: <Navigate to="/bench/campaigns" replace /> },
  { path: "/bench/campaigns", element: <Campaigns /> },
  { path: "/bench/campaigns/new", element: <CampaignWizard /> },
  { path: "/bench/campaigns/:id", element: <Campaign /> },
  { path: "/bench/studies", element: <Studies /> },
  { path: "/bench/studies/:id", element: <Study /> },
  { path: "/bench/runs", element: <Runs /> },
  { path: "/bench/runs/:id", element: <Run /> },
  { path: "/bench/scenarios", element: <Scenarios /> },
  { path: "/bench/scenarios/:family/:variant", element: <Scenario /> },
  { path: "/bench/compare", element: <Compare /> },
  { path: "/bench/history", element: <History /> },
  { path: "/bench/reference", element: <References /> },
  { path: "/bench/reference/:id", element: <Reference /> },
  { path: "/audit", element: <Audit /> },
  { path: "/settings", element: <Settings /> },
  { path: "*", element: <NotFound /> },
];
