// Why a tool was found: its rank by each scorer, what each feature adds, its rank after each part.
import { h, svg } from "./dom.js";

const SCORERS = {
  name: ["Name", "the request names it exactly"],
  vector: ["Meaning", "cosine of the request and the tool's text"],
  text: ["Words", "BM25 of the words in common"],
  ranker: ["Ranker", "both, weighed with the features below"],
  dependency: ["Dependency", "another tool that was found needs this one"],
};
const FEATURES = {
  document: "meaning: whole text",
  summary: "meaning: first sentence",
  words: "words in common (BM25)",
  request_in_document: "request's words in the text",
  request_in_name: "request's words in the name",
  name_in_request: "name's words in the request",
  action: "does what is asked",
  other_action: "does something else",
  unasked_delete: "deletes, unasked",
};

export function whyOf(hit, trace) {
  const { why } = hit;
  const adds = why.ranker && why.ranker.adds;
  const queries = [...new Set(Object.values(why).map((values) => values.query).filter(Boolean))];
  return h("div", { class: "why" },
    h("h4", {}, "Why it is here"),
    h("ul", { class: "scorers" }, Object.entries(why).map(([name, values]) => scorer(name, values, queries.length > 1))),
    queries.length === 1 ? h("p", { class: "for" }, `Found for “${queries[0]}”`) : null,
    adds ? features(adds) : null,
    parts(hit.id, trace));
}

function scorer(name, values, withQuery) {
  const [title, meaning] = SCORERS[name] || [name, ""];
  const of = "rank" in values ? h("b", { class: "n" }, `rank ${values.rank}`) : h("b", {}, values.of || values.tool || "");
  const detail = [
    "score" in values ? `score ${values.score.toPrecision(3)}` : "",
    values.part && values.part !== "document" ? `by its ${values.part}` : "",
    values.reason || "",
  ].filter(Boolean).join(", ");
  return h("li", {}, h("span", { title: meaning }, title), of, h("span", { class: "soft n" }, detail),
    withQuery && values.query ? h("span", { class: "soft for" }, `for “${values.query}”`) : null);
}

function features(adds) {
  const rows = Object.entries(adds).filter(([, value]) => Math.abs(value) >= 0.005).sort((one, other) => Math.abs(other[1]) - Math.abs(one[1]));
  const most = Math.max(...rows.map(([, value]) => Math.abs(value)), 0.01);
  const least = Math.min(0, ...rows.map(([, value]) => value)) / most;
  const zero = (-least / (1 - least)) * 100, unit = 100 - zero;
  return h("div", { class: "features" },
    h("h5", {}, "What each feature adds to the score"),
    h("ul", {}, rows.map(([name, value]) => h("li", {},
      h("span", { title: name }, FEATURES[name] || name),
      svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true", class: value < 0 ? "minus" : "plus" },
        svg("rect", { class: "ground", x: 0, y: 0, width: 100, height: 8 }),
        svg("rect", { x: value < 0 ? zero + (value / most) * unit : zero, y: 0, width: Math.max(0.6, (Math.abs(value) / most) * unit), height: 8 })),
      h("span", { class: "n" }, `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`)))));
}

function parts(id, trace) {
  const ranked = (trace.parts || []).filter((part) => part.ranks && id in part.ranks);
  if (ranked.length < 2) return null;
  return h("div", { class: "parts" },
    h("h5", {}, "Its rank after each part of the strategy"),
    h("ol", {}, ranked.map((part) => h("li", {}, h("span", {}, part.part), h("b", { class: "n" }, part.ranks[id])))));
}

/** What the parts of the strategy did for the request as a whole. */
export function traceOf(trace) {
  return h("div", { class: "tables" }, h("table", {},
    h("thead", {}, h("tr", {}, ["Part", "Stage", "ms", "Queries"].map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, trace.parts.map((part) => h("tr", {},
      h("th", { scope: "row" }, part.part), h("td", {}, part.stage), h("td", { class: "n" }, (part.milliseconds || 0).toFixed(1)),
      h("td", {}, (part.queries || []).join(" · "), part.fallback_reason ? h("span", { class: "soft" }, ` without the LLM: ${part.fallback_reason}`) : null, part.note ? h("span", { class: "soft" }, ` ${part.note}`) : null))))));
}
