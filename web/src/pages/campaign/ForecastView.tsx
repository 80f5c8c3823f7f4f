import type { Schemas } from "../../api/client";
import { FactList } from "../../components/Facts";
import { count } from "../../components/format";
import { about, number } from "../../components/measure";

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
              ? "None: so few blocks never give a verdict"
              : `From ${number(least)} %: 8 of 10 such campaigns would tell it`,
          ],
          ["Duration", `About ${about(forecast.duration_s)}, ${forecast.duration_reason}`],
          ["Runs", count(forecast.runs)],
          ["Noise", `${number(forecast.noise_percent)} %, ${forecast.noise_reason}`],
        ]}
      />
    </section>
  );
}
