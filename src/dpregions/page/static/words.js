// Numbers and answers as words, and elements made in one line.

export const number = (v) => Math.round(v).toLocaleString("en-US");

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && key !== "list") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export const WHOSE = { user: "people’s regions", record: "regions", trajectory: "trips" };

export const isKnown = (answer) => typeof answer.low === "number";

export const range = (answer) => `${number(answer.low)} – ${number(answer.high)}`;

export const sure = ({ confidence }) => `${Number((100 * confidence).toPrecision(4))} % sure`;

// For those who hear the page.
export function sentence(answer, unit) {
  if (answer.count === undefined) return "";
  if (answer.outside) return "0: wholly outside the area.";
  const about = answer.exact ? "" : "about ";
  const between = isKnown(answer) ? `, between ${number(answer.low)} and ${number(answer.high)}` : "";
  return `${about}${number(answer.count)} ${WHOSE[unit]}${between}`;
}

export function length(value, unit) {
  if (unit === "m" && value >= 1000) return `${trimmed(value / 1000)} km`;
  return `${trimmed(value)} ${unit}`;
}

const trimmed = (v) => (Math.abs(v) >= 100 ? Math.round(v).toLocaleString("en-US") : String(Number(v.toPrecision(3))));

export function sizeWords([r0, r1, c0, c1], { cell }, unit) {
  const [high, wide] = [r1 - r0 + 1, c1 - c0 + 1];
  const cells = `${number(wide)} × ${number(high)} ${wide * high === 1 ? "cell" : "cells"}`;
  return `${length(wide * cell, unit)} × ${length(high * cell, unit)} · ${cells}`;
}
