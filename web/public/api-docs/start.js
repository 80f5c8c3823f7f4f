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
