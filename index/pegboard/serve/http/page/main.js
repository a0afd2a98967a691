// Which view is shown, the keys that work everywhere, and the token where one is needed.
import { get, useToken } from "./api.js";
import { ask } from "./ask.js";
import { browse } from "./browse.js";
import { compare } from "./compare.js";
import { failure, h, plural } from "./dom.js";
import * as golden from "./golden.js";
import { servers } from "./servers.js";
import { current } from "./state.js";

const VIEWS = { ask, compare, browse, servers };
const TITLES = { ask: "Ask", compare: "Compare", browse: "Browse", servers: "Servers" };
const main = document.getElementById("main");
let status = null;
let shown = new AbortController();

async function show() {
  const { view, values } = current();
  const name = view in VIEWS ? view : "ask";
  shown.abort();
  shown = new AbortController();
  const { signal } = shown;
  main.setAttribute("aria-busy", "true");
  document.title = [values.q || values.tool || values.text || TITLES[name], "Pegboard"].join(" · ");
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    status ??= await load(signal);
    await VIEWS[name](main, values, status, signal);
  } catch (error) {
    if (signal.aborted) return; // another view is shown by now
    if (error.status === 401) askForToken(error);
    else main.replaceChildren(failure(error));
  }
  if (!signal.aborted) main.removeAttribute("aria-busy");
}

async function load(signal) {
  const status = await get("v1/status", {}, signal);
  golden.enable(status.golden);
  document.querySelector("[data-view=servers]").hidden = !status.operator;
  document.getElementById("board").replaceChildren(
    h("span", {}, plural(status.tools, "tool")), status.channel ? h("span", {}, "channel ", h("b", {}, status.channel)) : "", h("code", { title: "release" }, status.release));
  return status;
}

function askForToken(error) {
  status = null;
  const field = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
  main.replaceChildren(h("form", { class: "token", submit: (event) => { event.preventDefault(); useToken(field.value.trim()); show(); } },
    h("h1", {}, "Who are you?"),
    h("p", {}, sessionStorage.getItem("pegboard-token") ? error.what : "This board answers to clients with a token."),
    h("label", { for: "token" }, "Token"), h("div", { class: "field" }, field, h("button", { type: "submit" }, "Continue")),
    h("p", { class: "soft" }, "It stays in this tab until you close it.")));
  field.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const typing = event.target.closest("input, textarea, select");
  const field = document.getElementById("q");
  if (event.key === "/" && !typing && field) {
    event.preventDefault();
    field.focus();
    field.select();
  } else if (event.key === "Escape" && field && !typing) {
    field.focus();
  } else if (event.key === "Escape" && typing) {
    typing.blur();
  }
});

document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", show);
addEventListener("marks", () => { for (const tick of document.querySelectorAll(".right input")) tick.checked = false; });
show();
