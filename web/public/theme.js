(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("vmtune.theme");
  } catch {
    // Storage may be forbidden: the system's choice holds then.
  }
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.classList.toggle("pf-v6-theme-dark", dark);
})();
