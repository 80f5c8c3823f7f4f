import {
  Label,
  NotificationDrawer,
  NotificationDrawerBody,
  NotificationDrawerHeader,
  Switch,
} from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";
import { activity } from "../api/overview";
import { Moment } from "../components/labels/Moment";
import { Async } from "../components/layout/Async";
import { useProgress } from "../components/live/useProgress";
import { percent } from "../components/text/format";
import { type Activity, addressOf, lookOf } from "./activity";
import { DESKTOP } from "./useEnds";
import "./activity.css";

/** Who does what, how far it is, and what came of it. */
export default function ActivityPanel({ close }: { close: () => void }) {
  const found = useQuery(activity);
  const progress = useProgress();
  return (
    <NotificationDrawer role="region" aria-label="Activity">
      <NotificationDrawerHeader title="Activity" onClose={close}>
        <Desktop />
      </NotificationDrawerHeader>
      <NotificationDrawerBody>
        <Async query={found}>
          {({ items }) =>
            items.length === 0 ? (
              <p className="vt-activity">Nothing was done yet.</p>
            ) : (
              <ul className="vt-activity" aria-label="Activity">
                {items.map((each) => (
                  <li key={each.id}>
                    <One activity={each} share={progress.get(each.id)?.share} />
                  </li>
                ))}
              </ul>
            )
          }
        </Async>
      </NotificationDrawerBody>
    </NotificationDrawer>
  );
}

function One({ activity: each, share }: { activity: Activity; share: number | undefined }) {
  const look = lookOf(each);
  const address = addressOf(each);
  const title = `${each.kind} of ${each.title}`;
  return (
    <>
      {address ? <Link to={address}>{title}</Link> : title}{" "}
      <Label isCompact {...(look ? { status: look } : {})}>
        {each.state}
      </Label>
      {!each.ended && share !== undefined && ` ${percent(Math.floor(share * 100))}`}
      <div className="vt-subtle">
        {each.detail}
        {each.actor && `, by ${each.actor}`}, <Moment at={each.ended_at ?? each.created_at} />
      </div>
      {each.failure && <div>{each.failure}</div>}
    </>
  );
}

/** Whether the desktop tells of ends while the page is in the background. */
function Desktop() {
  const [isOn, setOn] = useState(
    () =>
      globalThis.localStorage?.getItem(DESKTOP) === "on" &&
      globalThis.Notification?.permission === "granted",
  );
  if (globalThis.Notification === undefined) return null;
  const choose = async (on: boolean) => {
    const allowed = on && (await Notification.requestPermission()) === "granted";
    localStorage.setItem(DESKTOP, allowed ? "on" : "off");
    setOn(allowed);
  };
  return (
    <Switch
      id="desktop"
      label="Desktop notifications"
      isChecked={isOn}
      onChange={(_event, on) => void choose(on)}
    />
  );
}
