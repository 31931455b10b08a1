// Checks presentations with the npm package @sd-jwt/core: those that are valid come to their claims, the others fail.
import { createHash, createPublicKey, verify } from "node:crypto";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";
import { SDJwtInstance } from "@sd-jwt/core";

const strip = (value) => {
  if (Array.isArray(value)) return value.map(strip);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).filter(([name]) => !["_sd", "_sd_alg", "cnf"].includes(name)).map(([name, v]) => [name, strip(v)]),
  );
};

let checked = 0, wrong = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const item = JSON.parse(line);
  const key = createPublicKey({ key: item.jwk, format: "jwk" });
  const instance = new SDJwtInstance({
    signAlg: "EdDSA",
    hashAlg: "sha-256",
    hasher: (data) => new Uint8Array(createHash("sha256").update(typeof data === "string" ? data : Buffer.from(data)).digest()),
    saltGenerator: () => "unused",
    verifier: (data, signature) => verify(null, Buffer.from(data), key, Buffer.from(signature, "base64url")),
  });
  let outcome = null;
  try {
    const { payload } = await instance.verify(item.sd_jwt);
    // This package does not look for disclosures that nothing asks for; RFC 9901 section 7.1 has one look.
    const decoded = await instance.decode(item.sd_jwt);
    const text = JSON.stringify([decoded.jwt.payload, decoded.disclosures.map((d) => d.value)]);
    for (const disclosure of decoded.disclosures) {
      const digest = createHash("sha256").update(disclosure.encode()).digest("base64url");
      if (!text.includes(digest)) outcome = "a disclosure that no digest asks for";
    }
    if (!outcome && !isDeepStrictEqual(strip(payload), strip(item.claims))) outcome = "other claims";
  } catch (error) {
    outcome = String(error);
  }
  checked += 1;
  if ((outcome === null) !== item.valid) {
    wrong += 1;
    console.error(`${item.name}: ${outcome ?? "was accepted"}`);
  }
}
console.log(`@sd-jwt/core (npm): ${checked} presentations, ${wrong} wrong`);
process.exit(wrong || !checked ? 1 : 0);
