import type { Schemas } from "../../api/client";
import { FactList } from "../../components/layout/Facts";
import { count } from "../../components/text/format";
import { about, number } from "../../components/text/measure";

/** What the campaign could find, and how long it would take. */
export function ForecastView({ forecast }: { forecast: Schemas["ForecastView"] }) {
  const least = forecast.detectable_percent;
  return (
    <section aria-label="Forecast" style={{ marginBlock: "1.5rem" }}>
      <FactList
        spread
        facts={[
          [
            "Detectable difference",
            least === null
              ? "None: too few blocks for a verdict"
              : `From ${number(least)} %, with 80 % power`,
          ],
          ["Duration", `About ${about(forecast.duration_s)}, ${forecast.duration_reason}`],
          ["Runs", count(forecast.runs)],
          ["Noise", `${number(forecast.noise_percent)} %, ${forecast.noise_reason}`],
        ]}
      />
    </section>
  );
}
