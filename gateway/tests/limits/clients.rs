//! Our clients against a server that means them harm.

use crate::common::*;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_client::ClientError;
use oap_client::grantee::{MAX_SIGNERS, named_signers};
use oap_client::wire::{Ask, send};
use oap_identity::outgoing::{Allowance, Outgoing};
use oap_memory::answer::{answer_bytes, output_hash};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

/// A server that takes one request and then does this with the connection.
fn server(then: impl FnOnce(std::net::TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 1024];
        let _ = stream.read(&mut head);
        then(stream);
    });
    url
}

async fn ask(url: &str, allowed: Allowance) -> Result<(u16, Vec<u8>), ClientError> {
    oap_gateway::system::tls::install();
    let client = Outgoing::default().unguarded().unwrap();
    send(&client, Ask { method: "GET", url, ..Ask::default() }, allowed).await
}

const PATIENT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn an_answer_that_never_ends() {
    let url = server(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while stream.write_all(&[b"400\r\n".as_slice(), &[b'a'; 1024], b"\r\n"].concat()).is_ok() {}
    });
    let allowed = Allowance { bytes: 1 << 20, time: PATIENT };
    assert!(matches!(ask(&url, allowed).await, Err(ClientError::Malformed(..))));
}

#[tokio::test]
async fn an_answer_at_its_bound() {
    let answer = |length: usize| {
        server(move |mut stream| {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&vec![b'a'; length]));
        })
    };
    let allowed = Allowance { bytes: 10_000, time: PATIENT };
    assert_eq!(ask(&answer(10_000), allowed).await.unwrap().1.len(), 10_000);
    assert!(matches!(ask(&answer(10_001), allowed).await, Err(ClientError::Malformed(..))));
}

#[tokio::test]
async fn a_gateway_that_never_answers() {
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let url = server(move |stream| {
        let _ = held.recv();
        drop(stream);
    });
    let allowed = Allowance { bytes: 1 << 20, time: Duration::from_millis(300) };
    assert!(matches!(ask(&url, allowed).await, Err(ClientError::Unreachable(..))));
    drop(hold);
}

/// Nobody is looked up before the answer's own signature holds, nor for more houses than an answer has.
#[tokio::test]
async fn an_answer_that_names_a_thousand_signers() {
    let world = World::new().await;
    world.capture(&[note("one", &[])]).await;
    let answer = world.ask(&agent(2), &world.draft(&agent(2)), &json!({"query": ""})).await;
    let document = world.document();
    assert_eq!(named_signers(&answer, &document).unwrap().len(), 1);
    let crowded = |houses: usize| {
        let mut forged = answer.clone();
        let chain = forged["items"][0]["integrity"]["chain"].as_array_mut().unwrap();
        for house in 0..houses {
            chain.push(json!({"actor": format!("did:web:house-{house}.example")}));
        }
        forged
    };
    let signed = |mut answer: Value| {
        let items = String::from_utf8(oap_identity::json::canonical(&answer["items"]).unwrap()).unwrap();
        let response_id = answer["response_id"].as_str().unwrap().parse().unwrap();
        answer["receipt"]["output_hash"] = json!(output_hash(&items, &response_id));
        let keys = world.gateway.keys();
        let value = keys.current().sign(&answer_bytes(&answer).unwrap());
        answer["signature"]["value"] = json!(value);
        answer
    };
    assert!(matches!(named_signers(&crowded(1), &document), Err(ClientError::Evidence(_))));
    assert_eq!(named_signers(&signed(crowded(MAX_SIGNERS - 1)), &document).unwrap().len(), MAX_SIGNERS);
    let beyond = named_signers(&signed(crowded(MAX_SIGNERS)), &document);
    assert!(matches!(beyond, Err(ClientError::Mismatch(_))));
    let mut broken = answer.clone();
    broken["signature"]["value"] = json!(URL_SAFE_NO_PAD.encode([0; 64]));
    assert!(matches!(named_signers(&broken, &document), Err(ClientError::Evidence(_))));
}
