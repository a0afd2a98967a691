// Elements are built from texts and elements, never from HTML: whatever a catalog wrote stays text.

const SVG = "http://www.w3.org/2000/svg";

/** Return an element. `values` are attributes; functions listen, null and false are left out. */
export function h(tag, values = {}, ...children) {
  return filled(document.createElement(tag), values, children);
}

export function svg(tag, values = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), values, children);
}

function filled(element, values, children) {
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return element;
}

/** Say something to screen readers without moving the focus. */
export function say(text) {
  document.getElementById("says").textContent = text;
}

export const percent = (value) => (value > 0 && value < 0.01 ? "< 1 %" : `${Math.round(value * 100)} %`);

export const number = (value) => value.toLocaleString("en");

export const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;

/** Return the beginning of a description as one line; paragraphs are told apart. */
export function excerpt(text, most = 200) {
  const line = text.trim().replace(/\s*\n\s*\n\s*/g, " · ").replace(/\s+/g, " ");
  return line.length <= most ? line : `${line.slice(0, line.lastIndexOf(" ", most) > most / 2 ? line.lastIndexOf(" ", most) : most)} …`;
}

/** Return a select with its label. Options are [value, text]. */
export function choice(label, name, options, value) {
  const select = h("select", { name }, options.map(([key, text]) => h("option", { value: key }, text)));
  select.value = options.some(([key]) => key === value) ? value : options[0][0];
  return h("label", { class: "choice" }, h("span", {}, label), select);
}

export function probability(value) {
  const bar = h("i");
  bar.style.width = `${Math.max(2, Math.round(value * 100))}%`;
  return h("span", { class: "likely", title: "Probability that the tool fits" },
    h("span", { class: "track", "aria-hidden": "true" }, bar),
    h("span", { class: "n" }, percent(value), h("span", { class: "sr" }, " probability")));
}

export function failure(error) {
  return h("div", { class: "notice bad", role: "alert" },
    h("p", {}, h("b", {}, error.what || String(error.message || error))),
    error.nextStep ? h("p", {}, error.nextStep) : null);
}

/** The first paragraph, and behind it the rest; a long rest is folded. */
export function description(text) {
  if (!text) return h("p", { class: "soft" }, "No description.");
  const [, first, rest] = text.match(/^([\s\S]*?)(?:\n\s*\n([\s\S]*))?$/);
  const lead = h("p", { class: "text lead" }, first);
  if (!rest) return lead;
  const more = h("p", { class: "text" }, rest);
  return [lead, rest.length < 600 ? more : h("details", {}, h("summary", {}, "The rest of its description"), more)];
}
