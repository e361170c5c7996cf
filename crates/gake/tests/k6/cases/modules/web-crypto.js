export default async function () { const h = await crypto.subtle.digest('SHA-256', new Uint8Array([1, 2, 3])); console.log(h.byteLength, crypto.randomUUID().length); }
