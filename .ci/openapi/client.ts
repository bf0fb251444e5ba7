// Calls tools with a client whose types are generated from the document. `tsc` checks that the
// types fit, and node runs it against the server at `URL`.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./api.ts";

const { URL: baseUrl, TOOL_SDK_TOKEN: token } = process.env;
const headers = { Authorization: `Bearer ${token}` };
const api = createClient<paths>({ baseUrl, headers });

// A result with a typed value.
const search = await api.POST("/v1/tools/search_books", {
  body: { shelf: "door", filter: { title: "Dune", years: null, all: [] }, limit: 2 },
});
// Without `Prefer: respond-async` it is no running call.
assert(search.data && "text" in search.data);
assert.equal(search.data.structured?.length, 2);
assert.equal(search.data.structured?.[0]?.title, "Dune 0");

// A problem document, with a pointer to the fault.
const wrong = await api.POST("/v1/tools/search_books", { body: { limit: 1000 } });
assert.equal(wrong.response.status, 400);
assert.equal(wrong.error?.faults?.[0]?.pointer, "/limit");

// A session and its history.
const session = await api.POST("/v1/sessions", { body: { project: "library" } });
assert(session.data);
const header = { "Session-Id": session.data.id };
await api.POST("/v1/tools/tell_story", { params: { header }, body: { parts: 1 } });
const calls = await api.GET("/v1/calls", { params: { header } });
assert.equal(calls.data?.calls[0]?.tool, "tell_story");
assert.equal(calls.data?.calls[0]?.status, "completed");

console.log("openapi: a generated client called the tools");
