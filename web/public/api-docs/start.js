/* Starts Swagger UI on the document of this service. It asks nobody else. */
const word =
  new URLSearchParams(location.search).get("csrf") ?? localStorage.getItem("vmtune_csrf") ?? "";

// As the web UI is, or else the system.
const chosen = localStorage.getItem("vmtune.theme");
const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.classList.toggle("dark-mode", dark);

/** What is searched of an operation: method, path, its name and what it says. */
const textOf = (each) => {
  const operation = each.get("operation");
  const words = ["summary", "description", "operationId"].map((name) => operation.get(name) ?? "");
  return [each.get("method"), each.get("path"), ...words].join(" ").toLowerCase();
};

/** Operations that contain each word of the phrase, by their tags. */
const opsFilter = (tags, phrase) => {
  const wanted = phrase.toLowerCase().split(" ").filter(Boolean);
  const fits = (each) => wanted.every((part) => textOf(each).includes(part));
  return tags
    .map((tag) => tag.update("operations", (operations) => operations.filter(fits)))
    .filter((tag) => tag.get("operations").size > 0);
};

const api = document.getElementById("api");

/** Say to *one* what it is, where it does not say so itself. */
const name = (one, label) => {
  if (one && !one.hasAttribute("aria-label")) one.setAttribute("aria-label", label);
};

/** Which operation it belongs to: "get /api/v1/hosts". */
const operationOf = (one) => {
  const words = [".opblock-summary-method", ".opblock-summary-path"].map(
    (part) => one.closest(".opblock")?.querySelector(part)?.textContent.trim() ?? "",
  );
  return words.join(" ").toLowerCase();
};

/** What screen readers need to find their way, and Swagger UI does not tell. */
const tell = () => {
  for (const [part, role, label] of PARTS) {
    const found = api.querySelector(part);
    found?.setAttribute("role", role);
    name(found, label);
  }
  // Its title is of level 1, the groups of operations are of level 3.
  for (const each of api.querySelectorAll("h3, h4, h5")) {
    each.setAttribute("aria-level", Number(each.tagName.slice(1)) - 1);
  }
  for (const each of api.querySelectorAll("table[role=region]")) {
    name(each, `Responses of ${operationOf(each)}`);
  }
  // A link within the button that opens an operation does nothing that the button does not do.
  for (const each of api.querySelectorAll(".opblock-summary-control a")) {
    each.removeAttribute("href");
  }
  name(api.querySelector("#servers"), "Server");
  for (const each of api.querySelectorAll("tr[data-param-name] :is(select, textarea, input)")) {
    name(each, each.closest("tr").dataset.paramName);
  }
  for (const each of api.querySelectorAll(".body-param textarea")) name(each, "Request body");
  name(api.querySelector(".close-modal"), "Close");
  // What stands on them is not what they are called.
  for (const each of api.querySelectorAll(".auth-btn-wrapper button")) {
    each.removeAttribute("aria-label");
  }
};
const PARTS = [
  [".information-container", "region", "About this API"],
  [".scheme-container", "region", "Server and sign-in"],
  [".filter-container", "search", "Filter"],
];
let asked = false;
new MutationObserver(() => {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    tell();
  });
}).observe(api, { childList: true, subtree: true });

SwaggerUIBundle({
  url: "/api/v1/openapi.json",
  dom_id: "#api",
  deepLinking: true,
  docExpansion: "list",
  filter: true,
  validatorUrl: "none",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [() => ({ fn: { opsFilter } })],
  requestInterceptor: (request) => {
    if (word) request.headers["X-Vmtune-CSRF"] = word;
    return request;
  },
});
document.getElementById("plain").href = `/api/v1/docs/plain?csrf=${encodeURIComponent(word)}`;
