import { useQuery } from "@tanstack/react-query";
import { tunables } from "../../api/queries";
import { measure } from "./measure";

/** What writes a tunable's raw value as people read it: on, 300 ms, 24 MiB/s. */
export function useValueText(): (tunable: string, value: unknown) => string {
  const { data: table } = useQuery(tunables);
  return (tunable, value) => {
    if (typeof value === "boolean") return value ? "on" : "off";
    if (typeof value !== "number") return String(value);
    return measure(value, table?.find((each) => each.name === tunable)?.unit ?? "");
  };
}
