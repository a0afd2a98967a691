// Browse agents, their tools, and one tool with its schemas and dependencies.
import { get, toolPath } from "./api.js";
import { description, excerpt, failure, h, number, plural, say } from "./dom.js";
import * as golden from "./golden.js";
import { schemaOf } from "./schema.js";
import { address, note } from "./state.js";
import { tryOf } from "./try.js";

const HINTS = { readOnlyHint: "only reads", destructiveHint: "may destroy something", idempotentHint: "repeating changes nothing", openWorldHint: "reaches beyond its server" };

export async function browse(main, values, status, signal) {
  if (values.tool) await showTool(main, values, signal);
  else await showTools(main, values, signal);
}

async function showTools(main, values, signal) {
  const { agents } = await get("v1/agents", {}, signal);
  const list = h("div", { class: "list" });
  const filter = h("input", { type: "search", id: "q", name: "text", value: values.text || "", placeholder: "Filter by name or description", "aria-label": "Filter tools", maxlength: 200, autocomplete: "off" });
  const form = h("form", { class: "filter", role: "search", submit: (event) => event.preventDefault() }, filter);
  const links = [agentLink(null, "All agents", agents.reduce((sum, agent) => sum + agent.tools, 0), values)];
  links.push(...agents.map((agent) => agentLink(agent.id, agent.name, agent.tools, values)));
  main.replaceChildren(h("h1", { class: "sr" }, "Browse"), h("div", { class: "browse" },
    h("nav", { class: "owners", "aria-label": "Agents" }, h("ul", {}, links)),
    h("section", { "aria-label": "Tools" }, form, list)));
  let timer = 0;
  filter.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      values = { ...values, text: filter.value.trim() };
      note("browse", values);
      fill(list, values, agents, signal);
    }, 200);
  });
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && filter.value) { event.stopPropagation(); filter.value = ""; filter.dispatchEvent(new Event("input")); }
  });
  const current = main.querySelector(".owners [aria-current]");
  if (current) current.scrollIntoView({ block: "nearest", inline: "center" });
  await fill(list, values, agents, signal);
}

function agentLink(id, name, tools, { agent, text }) {
  return h("li", {}, h("a", { href: address("browse", { agent: id, text }), "aria-current": (agent || null) === id ? "true" : null }, h("span", {}, name), h("span", { class: "n soft" }, number(tools))));
}

async function fill(list, values, agents, signal, after = null) {
  let page;
  try {
    page = await get("v1/tools", { agent: values.agent, text: values.text, after }, signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    list.replaceChildren(failure(error));
    return;
  }
  if (!after && (values.text || "") !== document.getElementById("q")?.value.trim()) return; // an older answer
  const names = new Map(agents.map((agent) => [agent.id, agent.name]));
  const rows = page.tools.map((tool) => h("li", {}, h("h3", {}, h("a", { href: address("browse", { tool: tool.id }) }, h("b", {}, tool.name), h("span", { class: "agent" }, names.get(tool.agent) || tool.agent))),
    h("p", { class: "short" }, excerpt(tool.description, 180) || h("span", { class: "soft" }, "No description.")),
    tool.flags.length ? h("p", { class: "marks" }, tool.flags.map((flag) => h("span", { class: "tag bad" }, flag))) : null));
  const more = page.next ? h("button", { type: "button", class: "plain more", click: () => { more.remove(); fill(list, values, agents, signal, page.next); } }, "More tools") : "";
  if (after) {
    list.querySelector("ul").append(...rows);
    list.append(more);
    return;
  }
  const own = agents.find((agent) => agent.id === values.agent);
  list.replaceChildren(
    own && own.description ? h("p", { class: "lead text" }, own.description) : "",
    h("p", { class: "facts" }, h("span", {}, plural(page.total, "tool"))), h("ul", { class: "tools" }, rows), more);
  say(plural(page.total, "tool"));
}

async function showTool(main, values, signal) {
  const { release, tool, agent, dependencies, dependents, names } = await get(toolPath(values.tool), {}, signal);
  const request = golden.request();
  const title = h("h1", { tabindex: -1 }, tool.name);
  main.replaceChildren(h("article", { class: "one" },
    h("p", { class: "over" }, h("a", { href: address("browse") }, "Agents"), " / ", h("a", { href: address("browse", { agent: tool.agent }) }, agent.name)),
    title,
    h("p", { class: "marks" }, tool.tags.map((tag) => h("span", { class: "tag" }, tag)), tool.flags.map((flag) => h("span", { class: "tag bad" }, flag)),
      Object.entries(HINTS).filter(([name]) => tool.annotations[name] === true).map(([name, text]) => h("span", { class: name === "destructiveHint" ? "tag bad" : "tag" }, text))),
    golden.isEnabled() && request ? h("p", { class: "mark-right" }, golden.box(tool.id, tool.name), h("span", { class: "soft" }, ` for “${request}”`)) : "",
    description(tool.description.trim()),
    section("Arguments", schemaOf(tool.input_schema)),
    tool.output_schema ? section("Returns", schemaOf(tool.output_schema, "An object without declared fields.")) : "",
    tool.examples.length ? section("Requests that it answers", h("ul", { class: "examples" }, tool.examples.map((example) => h("li", {}, h("a", { href: address("ask", { q: example }) }, example))))) : "",
    section("Try it", tryOf(tool)),
    dependencies.length || dependents.length ? section("Dependencies", edgeList("Needs", dependencies, "target", names), edgeList("Needed by", dependents, "source", names)) : "",
    section("Names", h("dl", { class: "fields" }, [["id", tool.id], ["called as", tool.call_name], ["catalog", tool.catalog], ["agent", tool.agent], ["release", release]].map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, h("code", {}, text)))))),
    h("details", {}, h("summary", {}, "As JSON"), h("pre", { tabindex: 0 }, JSON.stringify({ input_schema: tool.input_schema, output_schema: tool.output_schema, annotations: tool.annotations }, null, 2)))));
  title.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

function section(title, ...children) {
  return h("section", {}, h("h2", {}, title), children);
}

function edgeList(title, edges, end, names) {
  if (!edges.length) return null;
  return h("div", {}, h("h3", {}, title), h("ul", { class: "edges" }, edges.map((edge) => h("li", {},
    h("a", { href: address("browse", { tool: edge[end] }) }, names[edge[end]]),
    h("span", { class: "soft" }, [edge.parameter ? `for ${edge.parameter}` : "", edge.reason.replace(/\.$/, ""), edge.origin === "declared" ? "declared" : `${edge.origin}, ${Math.round(edge.confidence * 100)} % sure`].filter(Boolean).join("; "))))));
}
