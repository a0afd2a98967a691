// The tools around one: what needs it on the left, what it needs on the right. The lists below say the same.
import { h, svg } from "./dom.js";
import { address } from "./state.js";

const MOST = 8, ROW = 34, BOX = 176, GAP = 56;

/** `names` are those of the tools by id. */
export function graphOf(middle, edges, names, release) {
  const left = [...new Set(edges.filter((edge) => edge.target === middle).map((edge) => edge.source))];
  const right = [...new Set(edges.filter((edge) => edge.source === middle).map((edge) => edge.target))];
  const columns = [left, [middle], right].map((ids) => ids.slice(0, MOST));
  const starts = left.length ? [0, BOX + GAP, 2 * (BOX + GAP)] : [0, 0, BOX + GAP];
  const width = starts[right.length ? 2 : 1] + BOX;
  const rows = Math.max(...columns.map((ids) => ids.length));
  const height = rows * ROW + 8;
  const places = new Map();
  columns.forEach((ids, column) => ids.forEach((id, row) => places.set(`${column} ${id}`, {
    x: starts[column], y: height / 2 + (row - (ids.length - 1) / 2) * ROW,
  })));
  const from = (column, id) => places.get(`${column} ${id}`);
  const lines = [
    ...columns[0].map((id) => line(from(0, id), from(1, middle))),
    ...columns[2].map((id) => line(from(1, middle), from(2, id))),
  ];
  const boxes = columns.flatMap((ids, column) => ids.map((id) => box({ id, name: names[id] }, from(column, id), id === middle, release)));
  const hidden = left.length + right.length - columns[0].length - columns[2].length;
  const picture =
    svg("svg", { viewBox: `-2 0 ${width + 4} ${height}`, role: "group", "aria-label": "Dependencies as a picture" },
      svg("defs", {}, svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { d: "M0 0.8 L7.4 4 L0 7.2z" }))),
      lines, boxes);
  picture.style.maxWidth = `${width + 4}px`;
  return h("figure", { class: "graph" }, picture,
    h("figcaption", { class: "soft" }, "An arrow leads to the tool that is needed.", hidden > 0 ? ` ${hidden} more are in the lists.` : ""));
}

function line(one, other) {
  const start = one.x + BOX, end = other.x - 3, bend = (end - start) / 2;
  return svg("path", { class: "edge", d: `M${start} ${one.y} C${start + bend} ${one.y} ${end - bend} ${other.y} ${end} ${other.y}`, "marker-end": "url(#tip)" });
}

function box(node, { x, y }, isMiddle, release) {
  const text = node.name.length > 24 ? `${node.name.slice(0, 23)}…` : node.name;
  const inner = [
    svg("rect", { x, y: y - 13, width: BOX, height: 26, rx: 6 }),
    svg("text", { x: x + BOX / 2, y: y + 4.5 }, text),
    svg("title", {}, node.id),
  ];
  if (isMiddle) return svg("g", { class: "middle" }, inner);
  return svg("a", { href: address("browse", { tool: node.id, release }), "aria-label": node.name }, inner);
}
