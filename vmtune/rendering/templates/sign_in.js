// A browser that is signed in proves so with a word in the address: these pages are typed, too.
const documentation = location.pathname.startsWith("/api/v1/docs");
const shown = (word) => `${location.pathname}?csrf=${encodeURIComponent(word)}`;
const kept = localStorage.getItem("vmtune_csrf");
if (documentation && kept && !location.search.includes("csrf=")) location.replace(shown(kept));
const form = document.forms[0], problem = document.getElementById("problem");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  problem.textContent = "";
  try {
    const answer = await fetch("/api/v1/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token: form.token.value.trim() }),
    });
    if (answer.ok) {
      const { csrf } = await answer.json();
      localStorage.setItem("vmtune_csrf", csrf);
      if (documentation) location.replace(shown(csrf));
      else if (location.pathname.startsWith("/api/")) location.replace("/"); else location.reload();
      return;
    }
    const wait = answer.headers.get("Retry-After");
    problem.textContent = (await answer.json()).detail + (wait ? `: try again in ${wait} s` : "");
  } catch { problem.textContent = "the service does not answer"; }
  form.token.value = "";
  button.disabled = false;
  form.token.focus();
});
