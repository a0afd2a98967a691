// Try a tool: a form by its schema, and what came back. What may destroy something has to be agreed to first.
import { post } from "./api.js";
import { failure, h, say } from "./dom.js";
import { target } from "./schema.js";

export function tryOf(tool) {
  if (tool.cannot_be_called) return h("p", { class: "soft" }, tool.cannot_be_called);
  const schema = target(tool.input_schema, tool.input_schema) || {};
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const names = Object.keys(schema.properties || {}).sort((one, other) => required.has(other) - required.has(one));
  const fields = names.map((name) => field(name, target(schema.properties[name], tool.input_schema) || {}, required.has(name)));
  const agree = tool.destructive ? h("input", { type: "checkbox", required: true }) : null;
  const answer = h("div", { class: "answer", "aria-live": "polite" });
  const button = h("button", { type: "submit" }, "Call");
  const form = h("form", { class: "try", submit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    answer.replaceChildren(h("p", { class: "soft" }, "Calling …"));
    try {
      const given = fields.map(({ name, value }) => [name, value()]).filter(([, value]) => value !== undefined);
      const result = await post("v1/call", { tool: tool.id, arguments: Object.fromEntries(given), confirm: Boolean(agree && agree.checked) });
      answer.replaceChildren(...shown(result));
      say(result.isError ? "The call failed." : "The tool answered.");
    } catch (error) {
      answer.replaceChildren(failure(error));
    }
    button.disabled = false;
  } }, fields.map(({ label }) => label),
  agree ? h("label", { class: "agree" }, agree, h("span", {}, "It may destroy something: call it all the same.")) : null,
  h("div", {}, button), answer);
  return form;
}

/** A field of an argument: its label, and what it holds; undefined where it was left empty. */
function field(name, spec, required) {
  const type = Array.isArray(spec.type) ? spec.type.find((own) => own !== "null") : spec.type;
  const common = { required, "aria-label": name };
  let input;
  let value = () => (input.value === "" ? undefined : input.value);
  if (Array.isArray(spec.enum) || type === "boolean") {
    const options = Array.isArray(spec.enum) ? spec.enum : [true, false];
    input = h("select", common, h("option", { value: "" }, "–"), options.map((option, place) => h("option", { value: place }, typeof option === "string" ? option : JSON.stringify(option))));
    value = () => (input.value === "" ? undefined : options[Number(input.value)]);
  } else if (type === "integer" || type === "number") {
    input = h("input", { ...common, type: "number", step: type === "integer" ? 1 : "any" });
    value = () => (input.value === "" ? undefined : Number(input.value));
  } else if (type === "string") {
    input = h("textarea", { ...common, rows: 1 });
  } else {
    input = h("textarea", { ...common, rows: 2, placeholder: "JSON", spellcheck: "false" });
    value = () => (input.value.trim() === "" ? undefined : parsed(name, input.value));
  }
  const kind = type || "JSON";
  return { name, value, label: h("label", {}, h("span", {}, h("code", {}, name), h("span", { class: "soft" }, ` ${kind}${required ? ", required" : ""}`)), input) };
}

function parsed(name, text) {
  try {
    return JSON.parse(text);
  } catch {
    throw Object.assign(new Error(), { what: `${name} is no JSON.`, nextStep: "Write an object as {\"key\": \"value\"}, a list as [1, 2], a text in quotes." });
  }
}

function shown(result) {
  const texts = (result.content || []).map((block) => (block.type === "text" ? block.text : `[${block.type}]`));
  const structured = result.structuredContent === undefined ? null : JSON.stringify(result.structuredContent, null, 2);
  return [
    h("p", {}, h("b", { class: result.isError ? "bad" : "" }, result.isError ? "The call failed" : "It answered")),
    ...texts.map((text) => h("pre", { tabindex: 0 }, text)),
    structured && !texts.includes(structured) ? h("details", {}, h("summary", {}, "Structured content"), h("pre", { tabindex: 0 }, structured)) : "",
  ];
}
