// Ask a request: the tools that fit, how likely, and why.
import { get, post } from "./api.js";
import { choice, description, excerpt, failure, h, number, percent, plural, probability, say } from "./dom.js";
import * as golden from "./golden.js";
import { schemaOf } from "./schema.js";
import { address, go } from "./state.js";
import { traceOf, whyOf } from "./why.js";

const SIZES = ["3", "5", "10", "20", "50"].map((size) => [size, `at most ${size}`]);

export function strategyChoices(status) {
  return [["", "the release's own"], ...Object.keys(status.strategies).map((name) => [name, name])];
}

export function indexChoices(status) {
  return [["", "the default"], ...status.indexes.map((name) => [name, name])];
}

/** The field and button of a request; `extra` are choices below. */
export function requestForm(query, extra, submit) {
  const field = h("textarea", { name: "q", rows: 1, id: "q", maxlength: 8000, autocomplete: "off", spellcheck: "true", placeholder: "What is to be done?", "aria-label": "Request", enterkeyhint: "search" });
  field.value = query;
  const form = h("form", { class: "ask", role: "search", submit: (event) => { event.preventDefault(); submit(new FormData(form)); } },
    h("div", { class: "field" }, field, h("kbd", { "aria-hidden": "true" }, "/"), h("button", { type: "submit" }, "Find")),
    h("div", { class: "choices" }, extra));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); }
  });
  for (const select of form.querySelectorAll("select")) select.addEventListener("change", () => { if (field.value.trim()) form.requestSubmit(); });
  return form;
}

export async function ask(main, values, status, signal) {
  const form = requestForm(values.q || "", [
    choice("Tools", "k", SIZES, values.k || "5"),
    choice("Strategy", "strategy", strategyChoices(status), values.strategy || ""),
    choice("Index", "index", indexChoices(status), values.index || ""),
  ], (data) => go("ask", valuesOf(data, "5")));
  const results = h("section", { class: "results", "aria-label": "Tools found" });
  main.replaceChildren(h("h1", { class: "sr" }, "Ask"), form, results);
  if (!values.q || !values.q.trim()) {
    form.querySelector("textarea").focus({ preventScroll: true });
    await welcome(results, signal);
    return;
  }
  golden.begin(values.q.trim(), 1);
  results.setAttribute("aria-busy", "true");
  try {
    const body = { query: values.q, k: Number(values.k || 5), strategy: values.strategy, index: values.index, explain: true };
    const began = performance.now();
    const result = await post("v1/find", body, signal);
    golden.begin(values.q.trim(), stepsOf(result, values).length);
    show(results, result, values, performance.now() - began);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (error.status === 401) throw error;
    results.replaceChildren(failure(error));
  } finally {
    results.removeAttribute("aria-busy");
  }
}

/** What a form holds; `k` only if it is not the usual one. */
export function valuesOf(data, usual) {
  return Object.fromEntries([...data.entries()].map(([name, value]) => [name, value.trim()]).filter(([name, value]) => value && !(name === "k" && value === usual)));
}

async function welcome(results, signal) {
  const { agents } = await get("v1/agents", {}, signal);
  const tools = agents.reduce((sum, agent) => sum + agent.tools, 0);
  results.replaceChildren(
    h("p", { class: "lead" }, `${plural(tools, "tool")} of ${plural(agents.length, "agent")} are on this board. Ask in plain words, also for several things at once.`),
    h("ul", { class: "agents" }, agents.slice(0, 24).map((agent) => h("li", {}, h("a", { href: address("browse", { agent: agent.id }) }, h("b", {}, agent.name), h("span", { class: "soft n" }, number(agent.tools)))))),
    h("p", { class: "keys" }, h("span", {}, h("kbd", {}, "/"), " request"), h("span", {}, h("kbd", {}, "Enter"), " why"), h("span", {}, h("kbd", {}, "Esc"), " back")));
}

function show(results, result, values, milliseconds) {
  const { hits } = result;
  const likely = result.probability === null ? "" : `; ${percent(result.probability)} likely that one fits`;
  const head = `${plural(hits.length, "tool")} in ${Math.max(1, Math.round(milliseconds))} ms`;
  const steps = stepsOf(result, values);
  const mixed = hits.some((hit, place) => place > 0 && hit.probability > hits[place - 1].probability);
  const rows = hits.map((hit, place) => card(hit, place + 1, result, values));
  results.replaceChildren(
    result.nothing_fits ? h("div", { class: "notice warm" }, h("p", {}, h("b", {}, "Nothing fits."), ` ${result.judged_by === "llm" ? "An LLM looked at these tools and named none" : `The best tool fits with a probability of ${percent(result.probability)} only`}; a model should be given none of these.`)) : "",
    !hits.length ? h("div", { class: "notice warm" }, h("p", {}, h("b", {}, "No tool was found."), ` ${result.reason || ""}`)) : "",
    h("p", { class: "facts" }, h("span", {}, head), h("span", {}, likely.replace(/^; /, "")), h("span", {}, "release ", h("code", {}, result.release)), h("a", { href: address("compare", { q: values.q, k: values.k, b_strategy: values.strategy, b_index: values.index }) }, "compare")),
    steps.length ? h("ol", { class: "steps" }, h("li", {}, "Also searched for"), steps.map((text) => h("li", {}, text))) : "",
    mixed ? h("p", { class: "soft order" }, steps.length > 1 ? "The order gives each step its tools, so a tool may stand before a likelier one." : `The order is that of “${orderedBy(result.trace)}”, which may put a tool before one that is likelier by the ranker's probability.`) : "",
    h("ol", { class: result.nothing_fits ? "hits faint" : "hits" }, rows),
    h("details", { class: "trace" }, h("summary", {}, "What the strategy did: ", h("b", {}, result.trace.strategy)), traceOf(result.trace)));
  say(`${result.nothing_fits ? "Nothing fits. " : ""}${head}${likely}.`);
}

/** What was searched for beside the whole request. */
function stepsOf(result, values) {
  return result.steps.map((step) => step.text).filter((text) => text !== values.q.trim());
}

/** The part of the strategy that ranked last. */
function orderedBy(trace) {
  const ranked = trace.parts.filter((part) => part.ranks && Object.keys(part.ranks).length);
  return ranked.length ? ranked[ranked.length - 1].part : trace.strategy;
}

function card(hit, rank, result, values) {
  const panel = h("div", { class: "panel", id: `hit-${rank}`, hidden: true });
  const name = h("button", { type: "button", class: "name", "aria-expanded": "false", "aria-controls": panel.id, click: () => toggle() },
    h("b", {}, hit.name), h("span", { class: "agent" }, hit.agent_name));
  const item = h("li", { class: "hit", "data-tool": hit.id },
    h("span", { class: "rank n", "aria-hidden": "true" }, rank),
    h("div", { class: "what" },
      h("h3", {}, h("span", { class: "sr" }, `${rank}. `), name),
      h("p", { class: "short" }, excerpt(hit.description) || h("span", { class: "soft" }, "No description.")),
      h("p", { class: "marks" }, [...hit.tags.slice(0, 6)].map((tag) => h("span", { class: "tag" }, tag)), (hit.flags || []).map((flag) => h("span", { class: "tag bad" }, flag)))),
    h("div", { class: "fit" }, hit.probability === undefined ? h("span", { class: "n soft" }, `score ${hit.score.toPrecision(3)}`) : probability(hit.probability), golden.box(hit.id, hit.name)),
    panel);
  function toggle() {
    const open = panel.hidden;
    if (open && !panel.childElementCount) {
      panel.append(
        ...[description(hit.description.trim())].flat(),
        h("div", { class: "halves" }, whyOf(hit, result.trace),
          h("div", {}, h("h4", {}, "Arguments"), schemaOf(hit.input_schema))),
        h("p", {}, h("a", { href: address("browse", { tool: hit.id }) }, "Everything about this tool")));
    }
    panel.hidden = !open;
    item.classList.toggle("open", open);
    name.setAttribute("aria-expanded", String(open));
  }
  item.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panel.hidden) { event.stopPropagation(); toggle(); name.focus(); }
  });
  return item;
}
