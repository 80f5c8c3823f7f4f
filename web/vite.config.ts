import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The built files belong to the Python package, which serves them and ships them in its wheel.
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../vmtune/webui",
    emptyOutDir: true,
    target: "es2022",
    chunkSizeWarningLimit: 900, // KiB before compression; tests/perf/web holds the real limits
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
