// The settings of a TOML text as "section.key" and its value, line by line: enough for texts that the trainer wrote.

export function settingsOf(text) {
  const settings = new Map();
  let section = "";
  let open = null; // a value that goes on over lines
  for (const line of text.split("\n")) {
    const bare = line.trim();
    if (open) {
      open.value += ` ${bare}`;
      if (closed(open.value)) {
        settings.set(open.key, open.value.replace(/\[ /g, "[").replace(/,? \]/g, "]")); // as a list in one line
        open = null;
      }
      continue;
    }
    if (!bare || bare.startsWith("#")) continue;
    const head = bare.match(/^\[+([^\]]+)\]+$/);
    if (head) {
      section = head[1].trim();
      continue;
    }
    const at = bare.indexOf("=");
    if (at < 1) continue;
    const key = (section ? `${section}.` : "") + bare.slice(0, at).trim();
    const value = bare.slice(at + 1).trim();
    if (closed(value)) settings.set(key, value);
    else open = { key, value };
  }
  if (open) settings.set(open.key, open.value);
  return settings;
}

const closed = (value) => {
  const bare = value.replace(/"(?:[^"\\]|\\.)*"|'[^']*'/g, "");
  return [...bare].reduce((depth, sign) => depth + ("[{".includes(sign) ? 1 : "]}".includes(sign) ? -1 : 0), 0) <= 0;
};

// Settings whose values are not the same everywhere; null where a text does not have one.
export function differences(texts) {
  const all = texts.map(settingsOf);
  const keys = [...new Set(all.flatMap((settings) => [...settings.keys()]))].sort();
  return keys
    .map((key) => ({ key, values: all.map((settings) => settings.get(key) ?? null) }))
    .filter(({ values }) => values.some((value) => value !== values[0]));
}
