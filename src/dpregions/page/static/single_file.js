// Opens the page where it lies in one file: modules and libraries become addresses of their own.
const textOf = (id) => document.getElementById(id).textContent;
const bytes = Uint8Array.from(atob(textOf("modules")), (c) => c.charCodeAt(0));
const opened = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
const { own, libraries } = JSON.parse(await new Response(opened).text());
const addressOf = (source, type = "text/javascript") => URL.createObjectURL(new Blob([source], { type }));
const places = {};
for (const [name, source] of Object.entries(libraries)) {
  // The adapter imports the library that comes before it.
  const linked = name === "adapter" ? source.replace('"./terra-draw.js"', `"${places.draw}"`) : source;
  places[name] = addressOf(linked, name === "land" ? "application/json" : undefined);
}
const modules = {};
for (const [name, source] of own) {
  modules[name] = addressOf(source.replace(/((?:from|import) ?)"\.\/([\w.-]+)"/g, (_, before, to) => `${before}"${modules[to]}"`));
}
const [{ start }, { SingleFile, Notebook }] = await Promise.all([import(modules["main.js"]), import(modules["transport.js"])]);
const parts = JSON.parse(textOf("release"));
const embedded = window !== window.parent;
const live = embedded && "live" in document.getElementById("release").dataset;
start(live ? new Notebook(parts, window.parent) : new SingleFile(parts), { places, embedded });
