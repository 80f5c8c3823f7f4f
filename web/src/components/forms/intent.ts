/** An intent as it is typed: what a migration may cost, what may be used, and what comes otherwise. */
import { duration, rate } from "../text/format";

/** As the service takes it. */
export type Stated = Readonly<Record<string, unknown>>;

export type Goal =
  | "max_silence_ms"
  | "deadline_s"
  | "max_slowdown_percent"
  | "max_bandwidth_bytes_per_s";
export type Means = "throttle" | "postcopy" | "pause" | "compress" | "zero_copy";
export type Otherwise = "refuse" | "keep-trying" | "relax";

export const GOALS: Record<
  Goal,
  { label: string; help: string; words: (bound: number) => string }
> = {
  max_silence_ms: {
    label: "Silence at most",
    help: "How long the guest may stand still, such as 500\u00a0ms",
    words: (bound) => `silence of at most ${duration(bound)}`,
  },
  deadline_s: {
    label: "Within",
    help: "From its start until it has moved, such as 2\u00a0min",
    words: (bound) => `within ${duration(bound * 1000)}`,
  },
  max_slowdown_percent: {
    label: "Slowdown at most",
    help: "CPU time that the guest may lose, such as 20\u00a0%",
    words: (bound) => `slowdown of at most ${bound} %`,
  },
  max_bandwidth_bytes_per_s: {
    label: "Bandwidth at most",
    help: "While the guest runs, such as 100\u00a0MiB/s",
    words: (bound) => `bandwidth of at most ${rate(bound)}`,
  },
};

export const MEANS: Record<Means, string> = {
  throttle: "Throttle the guest",
  postcopy: "Post-copy",
  pause: "Pause the guest",
  compress: "Compress",
  zero_copy: "Zero-copy",
};

export const OTHERWISE: Record<Otherwise, string> = {
  refuse: "Do not start, or give up in time",
  "keep-trying": "Keep trying beyond the deadline",
  relax: "Give up goals, in an order",
};

export const goalNames = Object.keys(GOALS) as readonly Goal[];
export const meansNames = Object.keys(MEANS) as readonly Means[];

/** *may* is null as long as nobody has chosen: what costs the guest nothing, and a throttle where a
 * slowdown is allowed. */
export interface TypedIntent {
  goals: Readonly<Partial<Record<Goal, string>>>;
  may: readonly Means[] | null;
  otherwise: Otherwise;
  relax: readonly Goal[];
}

export const NO_INTENT: TypedIntent = { goals: {}, may: null, otherwise: "refuse", relax: [] };

/** What may be used. */
export function mayOf({ goals, may }: TypedIntent): readonly Means[] {
  if (may !== null) return may;
  const slower = /[1-9]/.test(goals.max_slowdown_percent ?? "");
  return meansNames.filter((each) =>
    each === "throttle" ? slower : each === "compress" || each === "zero_copy",
  );
}

/** Null where no goal is typed: then there is no intent. */
export function stated(typed: TypedIntent): Stated | null {
  const goals = goalNames.flatMap((goal) => {
    const text = typed.goals[goal]?.trim();
    return text ? [[goal, text] as const] : [];
  });
  if (goals.length === 0) return null;
  return {
    ...Object.fromEntries(goals),
    ...(typed.may === null ? {} : { may: typed.may }),
    ...(typed.otherwise === "refuse" ? {} : { otherwise: typed.otherwise }),
    ...(typed.otherwise === "relax"
      ? { relax: typed.relax.filter((goal) => typed.goals[goal]?.trim()) }
      : {}),
  };
}

const UNITS: Record<Goal, (bound: number) => string> = {
  max_silence_ms: (bound) => `${bound} ms`,
  deadline_s: (bound) => `${bound} s`,
  max_slowdown_percent: (bound) => `${bound} %`,
  max_bandwidth_bytes_per_s: (bound) => {
    const powers = ["B/s", "KiB/s", "MiB/s", "GiB/s"];
    let [scaled, power] = [bound, 0];
    while (power < powers.length - 1 && scaled % 1024 === 0)
      [scaled, power] = [scaled / 1024, power + 1];
    return `${scaled} ${powers[power]}`;
  },
};

/** One that the service has told, to be typed on. */
export function typedOf(told: Stated | null): TypedIntent {
  if (told === null) return NO_INTENT;
  const goals = goalNames.flatMap((goal) => {
    const bound = told[goal];
    return typeof bound === "number" ? [[goal, UNITS[goal](bound)] as const] : [];
  });
  return {
    goals: Object.fromEntries(goals),
    may: meansNames.filter((each) => (told.may as readonly string[] | undefined)?.includes(each)),
    otherwise: (told.otherwise as Otherwise | undefined) ?? "refuse",
    relax: (told.relax as readonly Goal[] | undefined) ?? [],
  };
}

/** In what *other* differs from *one*, both as the service tells them. */
export function differences(one: Stated, other: Stated): string {
  const goals = goalNames.flatMap((goal) => {
    const bound = other[goal];
    return typeof bound === "number" && bound !== one[goal] ? [GOALS[goal].words(bound)] : [];
  });
  const had = (one.may as readonly string[] | undefined) ?? [];
  const more = meansNames.filter(
    (each) => (other.may as readonly string[] | undefined)?.includes(each) && !had.includes(each),
  );
  const allowed = more.map((each) => `${MEANS[each].toLowerCase()} allowed`);
  return [...goals, ...allowed].join(", ");
}
