// The page as a server hands it out.

import { start } from "./main.js";
import { Server } from "./transport.js";

const at = (name) => new URL(`./vendor/${name}`, import.meta.url).href;

export const VENDOR = {
  maplibre: at("maplibre-gl.mjs"),
  worker: at("maplibre-gl-worker.mjs"),
  draw: at("terra-draw.js"),
  adapter: at("terra-draw-adapter.js"),
  pmtiles: at("pmtiles.js"),
  land: at("land-110m.json"),
};

// A token comes in the fragment, which no server logs; it is exchanged for a cookie that no script
// reads, and leaves the address.
async function login() {
  const token = /(?:^#|&)token=([^&]+)/.exec(location.hash)?.[1];
  if (!token) return;
  const headers = { Authorization: `Bearer ${decodeURIComponent(token)}` };
  await fetch("/api/v1/session", { method: "POST", headers, credentials: "same-origin" });
  history.replaceState(null, "", location.pathname + location.hash.replace(/(#|&)token=[^&]*&?/, "$1").replace(/^#$/, ""));
}

const { pathname } = location;
const id = pathname.startsWith("/r/") ? decodeURIComponent(pathname.slice(3)) : "";
await login();
start(new Server(), { id, places: VENDOR });
