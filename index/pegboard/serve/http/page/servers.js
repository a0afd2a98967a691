// How the MCP servers are: for operators.
import { get } from "./api.js";
import { h, say } from "./dom.js";

const STATES = { up: "running", idle: "not started, or ended since nobody called", failed: "failed" };

const when = (time) => new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

export async function servers(main, values, status, signal) {
  const states = await get("v1/servers", {}, signal);
  const names = Object.keys(states).sort();
  main.replaceChildren(h("h1", {}, "MCP servers"), names.length
    ? h("div", { class: "tables" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Server", "State", "Since", "Error"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, names.map((name) => h("tr", {}, h("th", { scope: "row" }, name),
        h("td", { class: states[name].state === "failed" ? "bad" : "", title: STATES[states[name].state] }, states[name].state),
        h("td", { class: "when" }, states[name].since ? when(states[name].since) : "–"), h("td", { class: "long" }, states[name].error || "–"))))))
    : h("p", { class: "soft" }, "None is configured, or none was called yet."));
  say("The MCP servers.");
}
