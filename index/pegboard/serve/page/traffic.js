// What was asked, called and refused in the last hour, and how the MCP servers are: for operators.
import { get } from "./api.js";
import { h, number, plural, say, svg } from "./dom.js";

const KINDS = { finds: ["Searches", "found, nothing that fits, or no tool at all"], calls: ["Calls", "by how they ended"], refusals: ["Refusals", "unknown credentials or tools, other origins, too many requests"] };
const STATES = { up: "running", idle: "not started, or ended since nobody called", failed: "failed" };

export async function traffic(main, values, context, signal) {
  const { minutes, servers } = await get("v1/traffic", {}, signal);
  const names = Object.keys(servers).sort();
  main.replaceChildren(h("h1", { class: "sr" }, "Traffic"), h("div", { class: "traffic" },
    Object.entries(KINDS).map(([kind, [title, meaning]]) => counts(title, meaning, minutes.map((minute) => minute[kind]))),
    h("section", {}, h("h2", {}, "MCP servers"), names.length ? h("div", { class: "tables" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Server", "State", "Since", "Error"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, names.map((name) => h("tr", {}, h("th", { scope: "row" }, name),
        h("td", { class: servers[name].state === "failed" ? "bad" : "", title: STATES[servers[name].state] }, servers[name].state),
        h("td", {}, servers[name].since ? new Date(servers[name].since).toLocaleTimeString() : "–"), h("td", { class: "long" }, servers[name].error || "–"))))))
      : h("p", { class: "soft" }, "None is configured, or none was called yet.")),
    h("p", { class: "soft" }, "Counted since the gateway started, for 60 minutes at most. /metrics has the same for Prometheus.")));
  say("The traffic of the last hour.");
}

function counts(title, meaning, rows) {
  const sums = new Map();
  for (const row of rows) for (const [outcome, count] of Object.entries(row)) sums.set(outcome, (sums.get(outcome) || 0) + count);
  const heights = rows.map((row) => Object.values(row).reduce((sum, count) => sum + count, 0));
  const most = Math.max(1, ...heights);
  const all = heights.reduce((sum, count) => sum + count, 0);
  return h("section", {}, h("h2", {}, title, " ", h("span", { class: "n soft" }, number(all))),
    svg("svg", { viewBox: "0 0 240 40", preserveAspectRatio: "none", role: "img", "aria-label": `${title} by minute, at most ${plural(most, "request")} in one` },
      svg("rect", { class: "ground", x: 0, y: 39, width: 240, height: 1 }),
      heights.map((height, place) => (height ? svg("rect", { x: place * 4, y: 39 - (height / most) * 38, width: 3, height: (height / most) * 38 }) : null))),
    h("p", { class: "soft" }, "60 minutes ago … now"),
    h("p", { class: "marks" }, [...sums].map(([outcome, count]) => h("span", { class: "tag" }, `${outcome.replaceAll("_", " ")} ${number(count)}`)), sums.size ? null : h("span", { class: "soft" }, `None (${meaning}).`)));
}
