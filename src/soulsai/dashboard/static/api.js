// Everything the page asks of the server.

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const LIMIT_MS = 30_000;

async function request(path, options = {}) {
  const limit = AbortSignal.timeout(LIMIT_MS);
  const signal = options.signal ? AbortSignal.any([options.signal, limit]) : limit;
  let response;
  try {
    response = await fetch(path, { ...options, signal, credentials: "same-origin" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(limit.aborted ? "The server took more than 30 s to answer." : "The server does not answer.", 0);
  }
  const body = await response.json().catch((error) => {
    if (options.signal?.aborted) throw error;
    return null;
  });
  if (response.ok && body !== null) return body;
  if (response.status === 401 || response.status === 403)
    throw new ApiError(
      body?.error ?? "This page needs its token: open the address that souls dashboard printed.",
      response.status,
    );
  throw new ApiError(body?.error ?? `The server answered ${response.status}.`, response.status);
}

export const json = (path, options) => request(path, options);

export const post = (path, body) =>
  request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Souls": "page" },
    body: JSON.stringify(body),
  });

export const runPath = (run, rest = "") => `/api/runs/${encodeURIComponent(run)}${rest}`;

export function seriesQuery(names, x, range, points) {
  const query = new URLSearchParams({ names: names.join(","), x });
  if (range) {
    query.set("from", String(range[0]));
    query.set("to", String(range[1]));
  }
  if (points) query.set("points", String(points));
  return query.toString();
}
