/** The HTTP client, typed by the committed OpenAPI document, and the errors it throws. */
import createClient, { type Middleware } from "openapi-fetch";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type ProblemItem = Schemas["ProblemItem"];

/** What the service answered instead of a result, or that it did not answer. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly remedy: string;
  readonly problems: readonly ProblemItem[];

  constructor(status: number, message: string, problems: readonly ProblemItem[] = []) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.problems = problems;
    this.code = problems[0]?.code ?? "";
    this.remedy = problems[0]?.remedy ?? "";
  }

  /** The service could not be reached: nothing is known, and trying again may help. */
  get lost(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }

  /** What was asked for may have taken effect all the same: no whole answer of the service came. */
  get unknown(): boolean {
    return this.status === 0 || this.status === 500 || this.status === 502 || this.status === 504;
  }
}

interface ProblemDocument {
  title?: string;
  detail?: string;
  errors?: ProblemItem[];
}

async function asError(response: Response): Promise<ApiError> {
  let document: ProblemDocument = {};
  try {
    document = (await response.json()) as ProblemDocument;
  } catch {
    // A proxy in between answers in HTML: the status has to say it.
  }
  const message = document.detail ?? document.title ?? `the service answered ${response.status}`;
  return new ApiError(response.status, message, document.errors ?? []);
}

/**
 * The word that the sign-in page has kept. The session's cookie is sent to every port of this host;
 * what a page stores belongs to its own port, so that the cookie alone is of no use elsewhere.
 */
const word = (): string => globalThis.localStorage?.getItem("vmtune_csrf") ?? "";

/** An address that the browser itself asks for, and so without a header. */
export function proven(url: string): string {
  const csrf = word();
  if (csrf === "") return url;
  return `${url}${url.includes("?") ? "&" : "?"}csrf=${encodeURIComponent(csrf)}`;
}

/** With each request the word; "none" tells that this page has lost it. */
const proving: Middleware = {
  onRequest({ request }) {
    request.headers.set("X-Vmtune-CSRF", word() || "none");
    return request;
  },
};

const throwing: Middleware = {
  async onResponse({ response }) {
    // The service answers the page's own address with the form to sign in.
    if (response.status === 401 && import.meta.env.PROD) globalThis.location.reload();
    if (!response.ok) throw await asError(response);
  },
  onError({ error }) {
    if (error instanceof ApiError) return error;
    if (error instanceof DOMException && error.name === "AbortError") return error;
    return new ApiError(0, "the service does not answer");
  },
};

export const client = createClient<paths>({ baseUrl: globalThis.location?.origin ?? "" });
client.use(proving);
client.use(throwing);

/** The body of an answer that is known to be a success: the client throws otherwise. */
export async function body<T>(call: Promise<{ data?: T }>): Promise<T> {
  const { data } = await call;
  return data as T;
}
