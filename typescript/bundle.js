// Bundles strip.js with the licences of what is in it.
import { build } from "esbuild";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";

const bundled = await build({
  entryPoints: ["strip.js"],
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "typescript",
  target: "es2022",
  write: false,
  metafile: true,
});
const folder = /^node_modules\/((@[^/]+\/)?[^/]+)\//;
const names = Object.keys(bundled.metafile.inputs).map((path) => folder.exec(path)?.[1]);
const packages = [...new Set(names.filter(Boolean))];
const licences = packages.map((name) => {
  const file = ["LICENSE", "LICENSE.md"].find((file) => existsSync(`node_modules/${name}/${file}`));
  if (!file) throw new Error(`${name} has no licence`);
  return `${name}\n\n${readFileSync(`node_modules/${name}/${file}`, "utf8")}`;
});
const text = `/*\n${licences.join("\n").replaceAll("*/", "* /")}*/\n${bundled.outputFiles[0].text}`;
mkdirSync("dist", { recursive: true });
writeFileSync("dist/typescript.js", text);
