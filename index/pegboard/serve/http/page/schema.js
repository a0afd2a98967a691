// A JSON Schema as a table of arguments that people can read; it may come from anywhere, so depth and size are limited.
import { h, plural } from "./dom.js";

const DEEPEST = 5, MOST = 200;

export function schemaOf(schema, none = "It takes no arguments.") {
  const rows = [];
  collect(schema, schema, 0, rows);
  if (!rows.length) return h("p", { class: "soft" }, none);
  const shown = rows.slice(0, MOST);
  return h("div", { class: "arguments" },
    h("ul", {}, shown.map(({ name, needed, type, text, depth }) => h("li", { class: `depth-${depth}` },
      h("p", {}, h("code", { class: "name" }, name), h("span", { class: "type" }, type), needed ? h("span", { class: "needed" }, "required") : null),
      text ? h("p", { class: "text" }, text) : null))),
    rows.length > MOST ? h("p", { class: "soft" }, `The first ${MOST} of ${plural(rows.length, "argument")}.`) : null);
}

function collect(schema, root, depth, rows, within = []) {
  const own = target(schema, root);
  if (!own || typeof own !== "object" || within.includes(own) || depth > DEEPEST || rows.length > 10 * MOST) return;
  const required = new Set(Array.isArray(own.required) ? own.required : []);
  const properties = Object.entries(own.properties || {}).sort(([one], [other]) => required.has(other) - required.has(one));
  for (const [name, value] of properties) {
    const spec = resolved(value, root) || {};
    rows.push({ name, needed: required.has(name), type: typeOf(spec, root), text: textOf(spec), depth });
    const inner = spec.properties ? target(value, root) : target(spec.items, root);
    if (inner && inner.properties) collect(inner, root, depth + 1, rows, [...within, own]);
  }
}

/** The schema that a reference leads to, itself; with `within`, a schema in itself is noticed. */
export function target(value, root, hops = 0) {
  const path = value && typeof value === "object" && value.$ref;
  if (typeof path !== "string" || !path.startsWith("#") || hops > 5) return value;
  let place = root;
  for (const part of path.slice(1).split("/").filter(Boolean)) {
    const name = part.replace(/~1/g, "/").replace(/~0/g, "~");
    place = place && typeof place === "object" && Object.hasOwn(place, name) ? place[name] : null;
  }
  return place ? target(place, root, hops + 1) : value;
}

/** The same with the reference's own description. */
function resolved(value, root) {
  const own = target(value, root);
  return own === value || !own || !value.description ? own : { ...own, description: value.description };
}

function typeOf(spec, root) {
  const choices = spec.anyOf || spec.oneOf;
  if (Array.isArray(choices) && !spec.type) return [...new Set(choices.map((one) => typeOf(resolved(one, root) || {}, root)))].slice(0, 5).join(" or ");
  const type = Array.isArray(spec.type) ? spec.type.join(" or ") : spec.type;
  if (type === "array") {
    const item = resolved(spec.items, root);
    return item && typeof item === "object" && (item.type || item.anyOf) ? `list of ${typeOf(item, root)}` : "list";
  }
  if (typeof spec.format === "string") return `${type || "value"}, ${spec.format}`;
  return typeof type === "string" ? type : "any value";
}

function textOf(spec) {
  const values = Array.isArray(spec.enum) ? `One of: ${spec.enum.slice(0, 20).map((value) => JSON.stringify(value)).join(", ")}${spec.enum.length > 20 ? ", …" : ""}.` : "";
  const usual = "default" in spec ? `Default: ${JSON.stringify(spec.default)}.` : "";
  const bounds = ["minimum", "maximum", "minLength", "maxLength", "pattern"].filter((name) => name in spec).map((name) => `${name} ${spec[name]}`).join(", ");
  return [typeof spec.description === "string" ? spec.description.trim() : "", values, usual, bounds && `Limits: ${bounds}.`].filter(Boolean).join("\n");
}
