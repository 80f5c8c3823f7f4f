import { readFileSync } from "node:fs";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const SWAGGER = ["swagger-ui.css", "swagger-ui-bundle.js", "swagger-ui-bundle.js.LICENSE.txt"];

/** Swagger UI as its packages ship it, for the page of the API's documentation alone: the UI's own
 * pages do not load it. public/api-docs/start.js starts it. */
const apiDocs = {
  name: "api-docs",
  apply: "build" as const,
  generateBundle(this: { emitFile: (file: object) => void }) {
    for (const name of SWAGGER) {
      const source = readFileSync(new URL(`node_modules/swagger-ui-dist/${name}`, import.meta.url));
      this.emitFile({ type: "asset", fileName: `api-docs/${name}`, source });
    }
  },
};

// The built files belong to the Python package, which serves them and ships them in its wheel.
export default defineConfig({
  plugins: [react(), apiDocs],
  build: {
    outDir: "../vmtune/webui",
    emptyOutDir: true,
    target: "es2022",
    chunkSizeWarningLimit: 900, // KiB before compression; tests/perf/fleets/web holds the real limits
  },
  server: { proxy: { "/api": process.env.VMTUNE_URL ?? "http://127.0.0.1:8470" } },
  // A page of its own for each file, of one jsdom a thread: to load it takes as long as the tests.
  test: {
    environment: "jsdom",
    pool: "vmThreads",
    setupFiles: ["src/test/setup.ts"],
    css: false,
    testTimeout: 60_000, // several waits of a test may each take src/test/setup.ts's 10 s
  },
});
