//! A SPARQL query, read and asked of a small graph within small bounds, and a request of the SPARQL Protocol around it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_brain::{Bounds, Graph, Record, Request, Setting, respond};
use std::sync::LazyLock;

static GRAPH: LazyLock<Option<Graph>> = LazyLock::new(|| {
    let record = |number: u32| Record {
        id: format!("mem_{number}"),
        content: Some(format!("number {number}")),
        topic: Some("numbers".into()),
        version: Some(1),
        ..Record::default()
    };
    Graph::of(&[1, 2, 3].map(record)).ok()
});

fuzz_target!(|data: &[u8]| {
    let Some(graph) = &*GRAPH else { return };
    let bounds = Bounds { steps: 50_000, ..Bounds::until(|| false) };
    let setting =
        Setting { endpoint: "https://g.example/sparql", now: "2026-11-23T08:00:00Z", bounds: &bounds };
    for content_type in ["application/sparql-query", "application/x-www-form-urlencoded"] {
        let request =
            Request { method: "POST", parameters: "", content_type: Some(content_type), body: data };
        for accept in ["*/*", "application/sparql-results+xml, application/rdf+xml"] {
            let _ = respond(graph, &request, Some(accept), &setting);
        }
    }
});
