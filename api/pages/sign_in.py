"""Where a person signs in: one page without anything from elsewhere."""

from __future__ import annotations

import base64
import hashlib

from starlette.responses import HTMLResponse, Response

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 26rem; margin: 15vh auto; padding: 0 1rem;
  color: #1f1f1f; background: #fff }
label { display: block; margin: 1.5rem 0 .3rem; font-weight: 600 }
input { font: inherit; width: 100%; box-sizing: border-box; padding: .45rem .6rem;
  border: 1px solid #8a8d90; border-radius: 4px; background: inherit; color: inherit }
button { font: inherit; margin-top: 1rem; padding: .45rem 1.2rem; border: 0; border-radius: 4px;
  background: #06c; color: #fff; cursor: pointer }
button:disabled { opacity: .6 }
#problem { color: #b1380b; min-height: 1.5em }
@media (prefers-color-scheme: dark) {
  body { color: #e6e6e6; background: #151515 } #problem { color: #f0ab00 } }
"""
_SCRIPT = """
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
    if (answer.ok) { location.reload(); return; }
    const wait = answer.headers.get("Retry-After");
    problem.textContent = (await answer.json()).detail + (wait ? `: try again in ${wait} s` : "");
  } catch { problem.textContent = "the service cannot be reached"; }
  form.token.value = "";
  button.disabled = false;
  form.token.focus();
});
"""
_PAGE = f"""<!doctype html><html lang=en><meta charset=utf-8>
<meta name=viewport content="width=device-width"><title>vmtune: sign in</title>
<style>{_STYLE}</style>
<main><h1>vmtune</h1>
<p>This service shows nothing to who is not signed in.</p>
<form><label for=token>Token</label>
<input id=token name=token type=password autocomplete=off required autofocus spellcheck=false>
<button>Sign in</button></form>
<p id=problem role=alert></p>
%PROVIDER%
<p><small>On its machine, <code>vmtune token create NAME --scope read</code> makes one.</small></p>
</main><script>{_SCRIPT}</script></html>"""


def _source(text: str) -> str:
    """The Content-Security-Policy's word for an inline *text* that may be used."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; connect-src 'self'; form-action 'none'; "
    f"base-uri 'none'; frame-ancestors 'none'; style-src {_source(_STYLE)}; "
    f"script-src {_source(_SCRIPT)}",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "WWW-Authenticate": 'Bearer realm="vmtune"',
}


_PROVIDER = '<p><a href="/api/v1/session/oidc">Sign in by the identity provider</a></p>'


def sign_in_page(by_provider: bool) -> Response:
    """The page, in place of what it stands before.

    :param by_provider: an identity provider may vouch for people, too.
    """
    page = _PAGE.replace("%PROVIDER%", _PROVIDER if by_provider else "")
    return HTMLResponse(page, 401, headers=_HEADERS)
