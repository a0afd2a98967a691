// A reader of a board in Node that knows only docs/reference/table-contract.md: `node read.mjs BOARD vectors.json`.
//
// Every request is answered from the release that its channel names, at the versions that the release pins, and compared with what
// is expected. Ends with 1 if anything differs. PEGBOARD_NODE_MODULES names the folder with @lancedb/lancedb.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

const modules = process.env.PEGBOARD_NODE_MODULES;
const lancedb = createRequire(modules ? join(modules, "read.mjs") : import.meta.url)("@lancedb/lancedb");

const [board, file] = process.argv.slice(2);
const vectors = JSON.parse(await readFile(file, "utf-8"));
const database = await lancedb.connect(join(board, "tables"));

const FILTERS = ["agent", "catalog", "kind", "tags"];
const literal = (text) => `'${text.replaceAll("'", "''")}'`;

function rounded(value, digits) {
  return Math.round(value * 10 ** digits) / 10 ** digits;
}

function condition(where) {
  const clauses = Object.entries(where ?? {}).map(([name, values]) => {
    const literals = values.map(literal).join(", ");
    if (values.length === 0) return "false";
    return name === "tags" ? `array_has_any(tags, [${literals}])` : `${name} IN (${literals})`;
  });
  return clauses.join(" AND ");
}

function passes(row, where) {
  return Object.entries(where ?? {}).every(([name, values]) =>
    name === "tags" ? [...row.tags].some((tag) => values.includes(tag)) : values.includes(row[name]),
  );
}

// Equal scores are ordered by the tool's id, by code points as everywhere else.
function ordered(scores) {
  const points = new Map([...scores.keys()].map((id) => [id, Buffer.from(id, "utf-8")]));
  return [...scores].sort((a, b) => b[1] - a[1] || Buffer.compare(points.get(a[0]), points.get(b[0])));
}

function best(rows) {
  const scores = new Map();
  for (const { tool, score } of rows) scores.set(tool, Math.max(score, scores.get(tool) ?? -Infinity));
  return ordered(scores);
}

async function resolve(name) {
  const channels = await database.openTable("channels");
  const [channel] = await channels.query().where(`channel = ${literal(name)}`).toArray();
  const releases = await database.openTable("releases");
  const [row] = await releases.query().where(`release = ${literal(channel.release)}`).toArray();
  if (row.contract > vectors.contract) {
    throw new Error(`release ${row.release} has contract ${row.contract}, which this reader does not know`);
  }
  return {
    release: row.release,
    generation: Number(channel.generation),
    tables: JSON.parse(row.tables),
    manifest: JSON.parse(row.manifest),
  };
}

async function pinned(pin) {
  const table = await database.openTable(pin.table);
  await table.checkout(pin.version);
  return table;
}

async function byVector(table, pin, request, depth, owner = "tool") {
  const length = Math.hypot(...request.vector);
  const unit = Float32Array.from(request.vector, (value) => value / length);
  let query = table.query().nearestTo(unit).column("vector").distanceType("cosine").limit(pin.rows);
  if (request.where) query = query.where(condition(request.where));
  const rows = await query.select([owner, "_distance"]).toArray();
  return best(rows.map((row) => ({ tool: row[owner], score: rounded(1 - row._distance, 5) }))).slice(0, depth);
}

async function byText(table, pin, request, depth) {
  const words = [...new Set(request.words)].join(" ");
  if (!words) return [];
  // A table without a text index: the filter comes last, since BM25 counts all of the table's rows.
  const query = table.query().fullTextSearch(words, { columns: ["tokens"] }).limit(pin.rows);
  const hits = await query.select(["tool", ...FILTERS, "_score"]).toArray();
  const rows = hits.filter((row) => passes(row, request.where));
  return best(rows.map((row) => ({ tool: row.tool, score: rounded(row._score, 4) }))).slice(0, depth);
}

const dot = (a, b) => a.reduce((sum, value, at) => sum + value * b[at], 0);
const sumOf = (words, idf) => [...words].reduce((sum, word) => sum + idf(word), 0);
const wordsOf = (text) => new Set(text.split(" ").filter(Boolean));
const shared = (a, b) => [...a].filter((one) => b.has(one));

// BM25 of one row, as the text index scores it.
function bm25(row, words, idf, average) {
  const tokens = row.tokens.split(" ").filter(Boolean);
  const norm = 1.2 * (0.25 + (0.75 * tokens.length) / average);
  return [...words].reduce((sum, word) => {
    const count = tokens.filter((token) => token === word).length;
    return sum + (idf(word) * count * 2.2) / (count + norm);
  }, 0);
}

function abbreviates(form, name) {
  const consonants = /[aeiou]/.test(form.slice(1)) ? null : new RegExp(`^${[...form].join(".*")}`);
  const longer = name.filter((word) => word[0] === form[0] && word.length >= form.length + 2);
  const initials = name.map((word) => word[0]).join("");
  return initials.includes(form) || longer.some((word) => word.startsWith(form) || consonants?.test(word));
}

// All that was found, by the weighted sum of eleven features.
async function ranked(table, found, request, weights) {
  const columns = ["tool", "agent", "tokens", "vector", "name_tokens", "actions", "summary_vector"];
  const rows = (await table.query().select(columns).toArray()).map((row) => ({
    ...row.toJSON(),
    vector: [...row.vector],
    summary_vector: [...row.summary_vector],
  }));
  const documents = rows.map((row) => wordsOf(row.tokens));
  const average = rows.reduce((sum, row) => sum + row.tokens.split(" ").filter(Boolean).length, 0) / rows.length;
  const idf = (word) => {
    const having = documents.filter((document) => document.has(word)).length;
    return Math.log(1 + (rows.length - having + 0.5) / (having + 0.5));
  };
  const [words, wanted] = [new Set(request.words), new Set(request.actions)];
  const whole = sumOf(words, idf) || 1;
  const unknown = [...words].filter((word) => !documents.some((document) => document.has(word)));
  const short = unknown.filter((word) => /^[a-z]{2,6}$/.test(word));
  const scores = new Map();
  for (const id of found) {
    const own = rows.filter((row) => row.tool === id);
    const [name, actions] = [wordsOf(own[0].name_tokens), wordsOf(own[0].actions)];
    const inName = sumOf(shared(words, name), idf);
    const agrees = shared(actions, wanted).length > 0;
    const features = {
      document: Math.max(...own.map((row) => dot(row.vector, request.vector))),
      summary: dot(own[0].summary_vector, request.vector),
      words: Math.max(...own.map((row) => bm25(row, words, idf, average))) / 20,
      request_in_document: Math.max(...own.map((row) => sumOf(shared(words, wordsOf(row.tokens)), idf))) / whole,
      request_in_name: inName / whole,
      name_in_request: inName / (sumOf(name, idf) || 1),
      abbreviation: short.filter((form) => abbreviates(form, own[0].name_tokens.split(" "))).length / (short.length || 1),
      named_agent: Number(request.named_agents.includes(own[0].agent)),
      action: Number(agrees),
      other_action: Number(actions.size > 0 && wanted.size > 0 && !agrees),
      unasked_delete: Number(actions.size === 1 && actions.has("delete") && !wanted.has("delete")),
    };
    const score = Object.entries(features).reduce((sum, [feature, value]) => sum + (weights[feature] ?? 0) * value, 0);
    scores.set(id, rounded(score, 5));
  }
  return ordered(scores);
}

async function answer(request, release) {
  const pin = release.tables[`emb_${request.index}`];
  const table = await pinned(pin);
  const depth = Math.max(100, 4 * request.k);
  if (request.mode === "vector") return (await byVector(table, pin, request, depth)).slice(0, request.k);
  if (request.mode === "text") return (await byText(table, pin, request, depth)).slice(0, request.k);
  const both = [...(await byVector(table, pin, request, depth)), ...(await byText(table, pin, request, depth))];
  const { weights } = release.manifest.indexes[request.index].ranker;
  return (await ranked(table, new Map(both).keys(), request, weights)).slice(0, request.k);
}

// Tool-to-Agent Retrieval, Algorithm 1: tools and agents in one ranking, each tool replaced by its owner.
async function agents(request, release) {
  const pins = [`emb_${request.index}`, `agents_${request.index}`].map((name) => release.tables[name]);
  const [tools, own] = await Promise.all(pins.map(pinned));
  const depth = Math.max(100, 10 * request.k);
  const entities = await byVector(tools, pins[0], request, depth);
  if (!request.where?.tags) entities.push(...(await byVector(own, pins[1], request, depth, "agent")));
  const rows = await tools.query().select(["tool", "agent"]).toArray();
  const owners = new Map(rows.map((row) => [row.tool, row.agent]));
  const hits = new Map();
  for (const [id, score] of ordered(new Map(entities))) {
    const agent = owners.get(id) ?? id;
    if (!hits.has(agent)) hits.set(agent, score);
  }
  return [...hits].slice(0, request.k);
}

async function dependencies(request, release) {
  const edges = await pinned(release.tables.edges);
  const rows = await edges.query().where(`source = ${literal(request.tool)}`).toArray();
  rows.sort((a, b) => a.place - b.place);
  return rows.map(({ target, type, parameter, origin, confidence }) => ({ target, type, parameter, origin, confidence }));
}

function same(hits, expected, tolerance) {
  return (
    hits.length === expected.length &&
    expected.every(({ id, score }, at) => hits[at][0] === id && Math.abs(hits[at][1] - score) <= tolerance)
  );
}

let differences = 0;
const releases = {};
for (const [name, expected] of Object.entries(vectors.channels)) {
  try {
    const release = (releases[name] = await resolve(name));
    const pins = Object.entries(expected.tables).every(
      ([table, pin]) => release.tables[table].table === pin.table && release.tables[table].version === pin.version,
    );
    const there = release.release === expected.release && release.generation === expected.generation;
    const rows = await Promise.all(
      Object.values(release.tables).map(async (pin) => (await (await pinned(pin)).countRows()) === pin.rows),
    );
    if (expected.readable && pins && there && rows.every(Boolean)) continue;
  } catch (error) {
    if (!expected.readable && String(error).includes("does not know")) continue;
    console.error(error);
  }
  differences += 1;
  console.error(`channel ${name} does not lead where it has to`);
}

for (const request of vectors.requests) {
  const hits = await answer(request, releases[request.channel]);
  if (!same(hits, request.expected, vectors.tolerance[request.mode])) {
    differences += 1;
    console.error(JSON.stringify({ ...request, vector: undefined, hits }));
  }
}
for (const request of vectors.agents) {
  const hits = await agents(request, releases[request.channel]);
  if (!same(hits, request.expected, vectors.tolerance.vector)) {
    differences += 1;
    console.error(JSON.stringify({ ...request, vector: undefined, hits }));
  }
}

for (const request of vectors.dependencies) {
  const hits = await dependencies(request, releases[request.channel]);
  if (JSON.stringify(hits) !== JSON.stringify(request.expected)) {
    differences += 1;
    console.error(JSON.stringify({ ...request, hits }));
  }
}
const all = vectors.requests.length + vectors.agents.length + vectors.dependencies.length;
console.log(`${all} requests, ${differences} differences`);
process.exitCode = differences ? 1 : 0;
