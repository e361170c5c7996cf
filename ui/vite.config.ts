import { createHash } from "node:crypto";
import { defineConfig, type Plugin } from "vite";

/** The source expression of an inline script or style for a content security policy. */
function hash(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

/**
 * Makes index.html the only file: script and styles go into it, under a policy that lets nothing
 * else run and nothing be fetched.
 */
function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const page = bundle["index.html"];
      if (page?.type !== "asset") throw new Error("vite made no index.html");
      let script = "";
      let style = "";
      for (const [name, file] of Object.entries(bundle)) {
        if (file.type === "chunk") script += file.code;
        else if (name.endsWith(".css")) style += String(file.source);
        else continue;
        delete bundle[name];
      }
      script = script.trim();
      style = style.trim();
      for (const part of [script, style]) {
        if (/<\/(script|style)|<!--/i.test(part)) throw new Error("a part would end its own element");
      }
      const policy =
        `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; ` +
        `img-src data: blob:; base-uri 'none'; form-action 'none'`;
      // Functions as replacements: in a text `$&` would be replaced again.
      page.source = String(page.source)
        .replace(/\s*<script type="module"[^>]*><\/script>/, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/, "")
        .replace(
          "<title>",
          () =>
            `<meta http-equiv="Content-Security-Policy" content="${policy}">\n` +
            `<style>${style}</style>\n<title>`,
        )
        .replace("</body>", () => `<script type="module">${script}</script>\n</body>`);
    },
  };
}

export default defineConfig({
  plugins: [oneFile()],
  build: {
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    reportCompressedSize: false,
  },
});
