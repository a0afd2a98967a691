// Requests to the gateway's HTTP API; addresses are relative, so that a proxy may add a prefix.

const TOKEN = "pegboard-token";

/** An answer that is an error: what is wrong, where, and the next step. */
export class ApiError extends Error {
  constructor(status, { what, where, next_step: nextStep }) {
    super(what);
    Object.assign(this, { status, what, where, nextStep });
  }
}

export function useToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

async function answer(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { Accept: "application/json", ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { what: "The gateway does not answer.", next_step: "See whether `pegboard serve` runs, and try again." });
  }
  const values = await response.json().catch(() => null);
  if (response.ok && values !== null) return values;
  throw new ApiError(response.status, (values && values.error) || { what: `The gateway answered ${response.status}.`, next_step: "Try again." });
}

export function get(path, values = {}, signal = undefined) {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return answer(query ? `${path}?${query}` : path, { signal });
}

export function post(path, values, signal = undefined) {
  const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== ""));
  return answer(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(given), signal });
}

/** The address of a tool; its id has `/` between its segments and `%` within. */
export const toolPath = (id) => `v1/tools/${id.split("/").map(encodeURIComponent).join("/")}`;
