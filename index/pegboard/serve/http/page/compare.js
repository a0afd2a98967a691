// The same request on two sides: two strategies or indexes. What moved, what is new.
import { indexChoices, requestForm, strategyChoices, valuesOf } from "./ask.js";
import { post } from "./api.js";
import { choice, failure, h, percent, plural, say, svg } from "./dom.js";
import { address, go } from "./state.js";

const SIZES = ["5", "10", "20"].map((size) => [size, `at most ${size}`]);
const SIDES = ["a", "b"];
const ROW_REM = 2.9; // the height of a row in style.css

export async function compare(main, values, status, signal) {
  const form = requestForm(values.q || "", [
    ...SIDES.map((side) => fieldset(side, values, status)),
    choice("Tools", "k", SIZES, values.k || "10"),
  ], (data) => go("compare", valuesOf(data, "10")));
  form.classList.add("two");
  const results = h("section", { class: "results", "aria-label": "Comparison" });
  main.replaceChildren(h("h1", { class: "sr" }, "Compare"), form, results);
  if (!values.q || !values.q.trim()) {
    results.replaceChildren(h("p", { class: "lead" }, "Ask the same request on two sides, and see what moved."),
      h("p", { class: "soft" }, "A side can be another strategy or index."));
    form.querySelector("textarea").focus({ preventScroll: true });
    return;
  }
  results.setAttribute("aria-busy", "true");
  const outcomes = await Promise.allSettled(SIDES.map((side) => post("v1/find", bodyOf(values, side), signal)));
  results.removeAttribute("aria-busy");
  if (signal.aborted) return;
  const failed = outcomes.filter((outcome) => outcome.status === "rejected").map((outcome) => outcome.reason);
  const refused = failed.find((error) => error.status === 401);
  if (refused) throw refused;
  if (failed.length) results.replaceChildren(...failed.map(failure));
  else show(results, outcomes.map((outcome) => outcome.value), values);
}

function fieldset(side, values, status) {
  return h("fieldset", { class: `side ${side}` }, h("legend", {}, side.toUpperCase()),
    choice("Strategy", `${side}_strategy`, strategyChoices(status), values[`${side}_strategy`] || ""),
    choice("Index", `${side}_index`, indexChoices(status), values[`${side}_index`] || ""));
}

function bodyOf(values, side) {
  return { query: values.q, k: Number(values.k || 10), strategy: values[`${side}_strategy`], index: values[`${side}_index`] };
}

function titleOf(result, values, side) {
  return [result.release, result.trace.strategy, values[`${side}_index`]].filter(Boolean).join(" · ");
}

function show(results, [one, other], values) {
  const [before, after] = [one, other].map((result) => new Map(result.hits.map((hit, place) => [hit.id, place])));
  const both = [...before.keys()].filter((id) => after.has(id));
  const moved = both.filter((id) => before.get(id) !== after.get(id)).length;
  const fresh = [...after.keys()].filter((id) => !before.has(id)).length;
  const gone = [...before.keys()].filter((id) => !after.has(id)).length;
  const summary = !moved && !fresh && !gone ? "Both sides find the same tools in the same order." : `${plural(moved, "tool")} moved, ${fresh} only in B, ${gone} only in A.`;
  const columns = h("div", { class: "columns" },
    column("a", one, values, (hit) => (after.has(hit.id) ? "" : mark("gone", "only in A"))),
    lines(one.hits, other.hits, after),
    column("b", other, values, (hit, place) => move(before, hit, place)));
  columns.addEventListener("pointerover", (event) => light(columns, event.target));
  columns.addEventListener("focusin", (event) => light(columns, event.target));
  columns.addEventListener("pointerleave", () => light(columns, null));
  results.replaceChildren(h("p", { class: "facts" }, h("b", {}, summary)), columns);
  say(summary);
}

function column(side, result, values, marked) {
  return h("div", { class: `column ${side}` },
    h("h2", {}, h("span", { class: "letter" }, side.toUpperCase()), h("span", { class: "soft" }, titleOf(result, values, side))),
    h("p", { class: "soft verdict" }, result.nothing_fits ? h("b", { class: "warm" }, result.judged_by === "llm" ? "Nothing fits, as an LLM judged. " : "Nothing fits. ") : "", result.probability === null ? "" : `${percent(result.probability)} likely that one fits`),
    h("ol", { class: "ranks" }, result.hits.map((hit, place) => h("li", { "data-tool": hit.id },
      h("span", { class: "n rank" }, place + 1),
      h("a", { href: address("browse", { tool: hit.id }), title: hit.id }, h("b", {}, hit.name), h("span", { class: "agent" }, hit.agent_name)),
      h("span", { class: "n soft" }, hit.probability === undefined ? hit.score.toPrecision(3) : percent(hit.probability)),
      marked(hit, place)))));
}

function mark(kind, text) {
  return h("span", { class: `move ${kind}` }, text);
}

function move(before, hit, place) {
  if (!before.has(hit.id)) return mark("new", "new");
  const by = before.get(hit.id) - place;
  if (!by) return mark("same", [h("span", { "aria-hidden": "true" }, "="), h("span", { class: "sr" }, "same place")]);
  return mark(by > 0 ? "up" : "down", [h("span", { "aria-hidden": "true" }, `${by > 0 ? "↑" : "↓"} ${Math.abs(by)}`), h("span", { class: "sr" }, `${Math.abs(by)} ${by > 0 ? "up" : "down"}`)]);
}

/** Lines from each tool of one side to its place on the other; rows have one height. */
function lines(hits, others, after) {
  const most = Math.max(hits.length, others.length, 1);
  const picture = svg("svg", { viewBox: `0 0 100 ${most * 100}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    hits.map((hit, place) => {
      if (!after.has(hit.id)) return null;
      const from = place * 100 + 50, to = after.get(hit.id) * 100 + 50;
      return svg("path", { d: `M0 ${from} C45 ${from} 55 ${to} 100 ${to}`, class: to < from ? "up" : to > from ? "down" : "same", "data-tool": hit.id });
    }));
  picture.style.height = `${most * ROW_REM}rem`;
  return h("div", { class: "lines" }, picture);
}

function light(columns, target) {
  const row = target && target.closest("[data-tool]");
  for (const part of columns.querySelectorAll("[data-tool]")) part.classList.toggle("lit", Boolean(row) && part.dataset.tool === row.dataset.tool);
  columns.classList.toggle("some", Boolean(row));
}
