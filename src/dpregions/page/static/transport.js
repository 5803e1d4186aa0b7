// Where the page gets its numbers: from the server, from the file it lies in, or from a notebook's
// kernel. All three answer alike; what none can answer is null, never a guess.

import { bytesOf } from "./grid_math.js";

const PATIENCE = 15_000; // milliseconds that a kernel has for an answer

export class Trouble extends Error {
  constructor(sentence, status = 0, again = 0) {
    super(sentence);
    this.status = status; // 0: nobody answered
    this.again = again; // seconds, where the server says when to ask again
  }
}

async function unzipped(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

export class Server {
  kind = "server";
  live = true; // it answers intervals of anything

  async #ask(path, options) {
    let response;
    try {
      response = await fetch(`/api/v1/${path}`, { credentials: "same-origin", ...options });
    } catch {
      throw new Trouble("The server does not answer.");
    }
    if (response.ok) return response;
    let said = {};
    try {
      said = await response.json();
    } catch {
      // The status has to do.
    }
    const sentence = said.detail || said.title || `The server answered ${response.status}.`;
    throw new Trouble(sentence, response.status, Number(response.headers.get("Retry-After")) || 0);
  }

  async #json(path, options) {
    return (await this.#ask(path, options)).json();
  }

  async #bytes(path) {
    return (await this.#ask(path)).arrayBuffer();
  }

  async releases() {
    return (await this.#json("releases")).releases;
  }

  described(id) {
    return this.#json(`releases/${id}/page.json`);
  }

  components(id) {
    return this.#bytes(`releases/${id}/components.bin`);
  }

  ends(id, block) {
    return this.#bytes(`releases/${id}/intervals.bin?block=${block}`);
  }

  cells(id) {
    return this.#json(`releases/${id}/cells.json`);
  }

  async bodies() {
    return null; // the server counts them itself
  }

  async rectangles() {
    return null;
  }

  rectangle(id, cells, signal) {
    return this.#json(`releases/${id}/count?cells=${cells.join(",")}`, { signal });
  }

  // Areas, as GeoJSON features in degrees, or in the grid's own units where it has no place on Earth.
  async shapes(id, features, plain, signal) {
    const body = JSON.stringify({ type: "FeatureCollection", features });
    const headers = { "Content-Type": "application/geo+json" };
    const query = plain ? "?crs=none" : "";
    const found = await this.#json(`releases/${id}/count${query}`, { method: "POST", body, headers, signal });
    return found.features.map((feature) => feature.properties.dpregions);
  }

  difference(a, b, cells, signal) {
    return this.#json(`difference?a=${a}&b=${b}&cells=${cells.join(",")}`, { signal });
  }

  async optional(path) {
    try {
      return await this.#json(path);
    } catch (trouble) {
      if (trouble.status) return null;
      throw trouble;
    }
  }

  overlay() {
    return this.optional("overlay");
  }

  async basemap() {
    try {
      const found = await fetch("/api/v1/basemap.pmtiles", { headers: { Range: "bytes=0-6" } });
      const opened = found.ok && found.status !== 204 && new TextDecoder().decode(await found.arrayBuffer());
      return opened && opened.startsWith("PMTiles") ? `${location.origin}/api/v1/basemap.pmtiles` : null;
    } catch {
      return null;
    }
  }

  download(id, suffix) {
    return `/api/v1/releases/${id}/${suffix === "release" ? "release.parquet" : `export.${suffix}`}`;
  }
}

export class SingleFile {
  kind = "file";
  live = false;

  constructor(parts) {
    this.parts = parts;
  }

  async releases() {
    const { said } = this.parts;
    return [{ id: "here", name: said.name, epsilon: said.epsilon, private: said.private }];
  }

  async described() {
    return this.parts.said;
  }

  async #part(name) {
    return this.parts[name] ? unzipped(this.parts[name]) : null;
  }

  components() {
    return this.#part("components");
  }

  ends(_, block) {
    return this.#part(`ends${block}`);
  }

  rectangles() {
    return this.#part("rectangles");
  }

  bodies() {
    return this.#part("bodies");
  }

  async cells() {
    return JSON.parse(new TextDecoder().decode(await this.#part("cells")));
  }

  async rectangle() {
    return null;
  }

  async shapes() {
    return null;
  }

  async overlay() {
    return this.parts.areas ?? null;
  }

  async basemap() {
    return null;
  }

  download() {
    return null;
  }
}

// In a notebook: the file's parts, and a kernel that answers what they cannot.
export class Notebook extends SingleFile {
  kind = "notebook";
  live = true;

  constructor(parts, host) {
    super(parts);
    this.host = host;
    this.waiting = new Map();
    addEventListener("message", ({ source, data }) => {
      if (source !== host || !this.waiting.has(data.id)) return;
      const [resolve, reject] = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.answers) resolve(data.answers);
      else reject(new Trouble(data.trouble, 400));
    });
  }

  // A kernel may be busy or gone: after a while the page says so and asks again.
  #ask(question) {
    const id = (this.last = (this.last ?? 0) + 1);
    return new Promise((resolve, reject) => {
      this.waiting.set(id, [resolve, reject]);
      this.host.postMessage({ id, question }, "*");
      setTimeout(() => this.waiting.delete(id) && reject(new Trouble("The kernel does not answer.")), PATIENCE);
    });
  }

  async rectangle(_, cells) {
    return (await this.#ask({ cells }))[0];
  }

  shapes(_, features, plain) {
    return this.#ask({ features, plain });
  }

  // What is asked and saved, for Python to read.
  selected(features, plain) {
    this.host.postMessage({ asked: { features, plain } }, "*");
  }
}
