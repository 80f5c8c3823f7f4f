/** Every topic of the event stream. The compiler refuses a list that lacks one. */
import type { Schemas } from "./client";

const EVERY: Record<Schemas["EventTopic"], true> = {
  host: true,
  vm: true,
  profile: true,
  assignment: true,
  application: true,
  migration: true,
  arrival: true,
  run: true,
  campaign: true,
  study: true,
  evacuation: true,
};

export const TOPICS = Object.keys(EVERY) as Schemas["EventTopic"][];
