//! Bodies: never read before the credential is checked, small without one.

use crate::common::*;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Method, Request, header};
use hyper::body::Frame;
use oap_exchange::query::MAX_CURSOR;
use oap_gateway::api::routes::{Access, ROUTES, Route};
use oap_gateway::http::discovery::MAX_INTENT;
use oap_gateway::http::request::MAX_ANONYMOUS_BODY;
use oap_grants::limits::MAX_PURPOSE_CODE;
use oap_memory::filter::MAX_LIST;
use oap_memory::item::MAX_SHORT;
use serde_json::{Value, json};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// A body of so many KiB that tells whether it was looked at, and does not tell its length.
struct Watched(Arc<AtomicBool>, usize);

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.store(true, Ordering::SeqCst);
        if self.1 == 0 {
            return Poll::Ready(None);
        }
        self.1 -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b' '; 1024])))))
    }
}

/// Every route that asks for a credential refuses before it reads a byte of the body.
#[tokio::test]
async fn no_body_is_read_before_the_credential_is_checked() {
    let world = World::new().await;
    let asks = |route: &&Route| {
        let by_credential = matches!(route.permission, Access::Grantee | Access::Owner(_) | Access::Agent);
        by_credential && route.method == Method::POST
    };
    for path in ROUTES.iter().filter(asks).map(|route| route.at("x")) {
        for credential in [None, Some("DPoP eyJhbGciOiJFZERTQSJ9.e30.c2ln"), Some("Bearer x")] {
            let read = Arc::new(AtomicBool::new(false));
            let mut request = Request::post(&path).header(header::CONTENT_TYPE, "application/json");
            if let Some(credential) = credential {
                request = request.header(header::AUTHORIZATION, credential);
            }
            let body = Body::new(Watched(read.clone(), 0));
            let answer = world.send(request.body(body).unwrap()).await;
            assert_eq!(answer.status.as_u16(), 401, "{path}: {}", answer.body);
            assert!(!read.load(Ordering::SeqCst), "{path} reads the body of a stranger");
            // What is left unread ends the connection, and the answer says so.
            assert_eq!(answer.connection.as_deref(), Some("close"), "{path}");
        }
    }
}

/// JSON of so many bytes.
fn padded(bytes: usize) -> String {
    let text = "{\"intent\":\"x\"}";
    format!("{text}{}", " ".repeat(bytes - text.len()))
}

#[tokio::test]
async fn a_body_without_a_credential_is_small() {
    let world = World::new().await;
    let ask = |text: String| {
        let request = Request::post("/oap/discover").header(header::CONTENT_TYPE, "application/json");
        world.send(request.body(Body::from(text)).unwrap())
    };
    let read = ask(padded(MAX_ANONYMOUS_BODY)).await;
    assert_eq!(read.connection, None);
    read.ok();
    ask(padded(MAX_ANONYMOUS_BODY + 1)).await.refused(413, "too_large");
    // Of a body that says how long it is nothing is read; of one that does not, no more than the bound.
    let chunked = Body::new(Watched(Arc::default(), MAX_ANONYMOUS_BODY / 1024 + 1));
    let request = Request::post("/oap/discover").header(header::CONTENT_TYPE, "application/json");
    world.send(request.body(chunked).unwrap()).await.refused(413, "too_large");
}

#[tokio::test]
async fn an_intent_at_its_bound() {
    let world = World::new().await;
    let ask = |bytes: usize| {
        let body = json!({"intent": "a".repeat(bytes)});
        async { world.raw("POST", "/oap/discover", &[], Some(&{ body })).await }
    };
    ask(MAX_INTENT).await.ok();
    ask(MAX_INTENT + 1).await.refused(400, "invalid_input");
}

#[tokio::test]
async fn the_members_of_a_query_at_their_bounds() {
    let world = World::new().await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    let a = |bytes: usize| Value::String("a".repeat(bytes));
    let at = [
        json!({"purpose": a(MAX_PURPOSE_CODE)}),
        json!({"labels_any": [a(MAX_SHORT)]}),
        json!({"labels_any": vec![a(1); MAX_LIST]}),
    ];
    for query in &at {
        world.query(&agent(2), &token, query).await.ok();
    }
    let beyond = [
        json!({"purpose": a(MAX_PURPOSE_CODE + 1)}),
        json!({"labels_any": [a(MAX_SHORT + 1)]}),
        json!({"labels_any": vec![a(1); MAX_LIST + 1]}),
        json!({"cursor": a(MAX_CURSOR + 1)}),
    ];
    for query in &beyond {
        world.query(&agent(2), &token, query).await.refused(400, "invalid_input");
    }
    // A cursor of this gateway is far from its bound.
    world.capture(&[note("one", &[]), note("two", &[])]).await;
    let answer = world.query(&agent(2), &token, &json!({"max_results": 1})).await.ok();
    assert!(answer["next_cursor"].as_str().unwrap().len() * 2 < MAX_CURSOR);
}

/// The public log is read from its end, however long it is.
#[tokio::test]
async fn a_question_of_the_public_log_at_its_bounds() {
    use oap_gateway::service::audit::{MAX_AUDIT_TEXT, MAX_PUBLIC};
    let world = World::new().await;
    let ask = |bytes: usize| {
        let path = format!("/oap/audit?principal_did={}", "a".repeat(bytes));
        async { world.raw("GET", &{ path }, &[], None).await }
    };
    ask(MAX_AUDIT_TEXT).await.ok();
    ask(MAX_AUDIT_TEXT + 1).await.refused(400, "invalid_input");
    let listing = world.raw("GET", "/oap/audit?limit=1000", &[], None).await.ok();
    assert!(listing["receipts"].as_array().unwrap().len() <= MAX_PUBLIC);
}
