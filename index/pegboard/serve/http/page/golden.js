// The tools that somebody marked as right for a request, until they are saved as a golden query.
import { post } from "./api.js";
import { failure, h, plural, say } from "./dom.js";

const draft = { query: "", steps: 1, tools: new Map() };
let bar = null;

export const isEnabled = () => Boolean(draft.enabled);
export const enable = (value) => { draft.enabled = value; };
export const request = () => draft.query;
export const isRight = (id) => draft.tools.has(id);

/** Another request has other right tools. */
export function begin(query, steps = draft.steps) {
  draft.steps = steps;
  if (query === draft.query) return;
  draft.query = query;
  draft.tools.clear();
  show();
}

export function mark(id, name, right) {
  if (right) draft.tools.set(id, name);
  else draft.tools.delete(id);
  show();
}

/** A box to tick beside a tool. */
export function box(id, name) {
  if (!draft.enabled || !draft.query) return null;
  const tick = h("input", { type: "checkbox", checked: isRight(id), change: () => mark(id, name, tick.checked) });
  return h("label", { class: "right", title: "Mark it as right for this request, and save both as a golden query: the gate and `pegboard eval` measure by those" }, tick, h("span", {}, "right tool", h("span", { class: "sr" }, ` for the request: ${name}`)));
}

function show() {
  if (bar) bar.remove();
  bar = null;
  if (!draft.tools.size) return;
  const told = h("div", { class: "told" });
  bar = h("aside", { class: "save", "aria-label": "Golden query" },
    h("p", {}, h("b", {}, plural(draft.tools.size, "right tool")), ` for “${draft.query}”: ${[...draft.tools.values()].join(", ")}.`, draft.steps > draft.tools.size ? h("span", { class: "warm" }, ` The request has ${draft.steps} steps: mark the right tools of each.`) : "", told),
    h("div", { class: "buttons" },
      h("button", { type: "button", class: "plain", click: () => { draft.tools.clear(); show(); dispatchEvent(new Event("marks")); } }, "Discard"),
      h("button", { type: "button", click: () => save(told) }, "Save golden query")));
  document.body.append(bar);
}

async function save(told) {
  try {
    const { saved } = await post("v1/golden", { query: draft.query, tools: [...draft.tools.keys()], kind: draft.steps > 1 ? "multi" : null });
    const text = saved ? "Saved as a golden query." : "The request was saved before; its line in the file has its tools.";
    draft.tools.clear();
    show();
    dispatchEvent(new Event("marks"));
    say(text);
    const done = h("p", { class: "toast" }, text);
    document.body.append(done);
    setTimeout(() => done.remove(), 4000);
  } catch (error) {
    told.replaceChildren(failure(error));
  }
}
