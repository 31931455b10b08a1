//! How an endpoint of the owner's is served: its request is read into the endpoint's types, a function works on them, and
//! what it answers is written as the endpoint says.
//!
//! A handler is an `async fn(Call<E>) -> Answer<E>`. It is called once the credential, the place, the query and the body
//! were read, in that order; the first that is refused is what the caller is told.

use super::App;
use super::request::Incoming;
use crate::Error;
use crate::api::{Endpoint, Place};
use crate::state::gateway::Gateway;
use crate::state::owner::Owner;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use oap_identity::json;
use serde::Serialize;
use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

/// A request to an endpoint: who sends it, and what it says.
pub(super) struct Call<E: Endpoint, B = <E as Endpoint>::Body> {
    /// The owner, proved.
    pub owner: Owner<E::Needs>,
    pub gateway: Arc<Gateway>,
    /// The part of the path that varies.
    pub place: E::Place,
    /// The parameters of the address.
    pub query: E::Query,
    pub body: B,
}

/// What a handler answers.
pub(super) type Answer<E> = Result<<E as Endpoint>::Answer, Error>;

/// What serves an endpoint.
pub(super) struct Door<E> {
    router: MethodRouter<App>,
    of: PhantomData<fn() -> E>,
}

impl<E: Endpoint> Door<E> {
    /// What the router takes. The caller names the endpoint that it belongs to: a handler of another one does not compile.
    pub fn into_router(self) -> MethodRouter<App> {
        self.router
    }
}

/// Most bytes of a body.
#[derive(Debug, Clone, Copy)]
enum Most {
    /// Those of any body of the owner's.
    Usual,
    /// [`MAX_IMPORT`](super::request::MAX_IMPORT).
    Import,
}

/// Serves an endpoint.
pub(super) fn door<E, H>(handler: H) -> Door<E>
where
    E: Endpoint<Place: Send, Query: Send, Body: Send, Answer: Send>,
    H: AsyncHandler<E, E::Body, E::Answer>,
{
    serve(Most::Usual, |body| Ok(json::parse_as(body)?), written, handler)
}

/// Serves an endpoint whose body has a reader of its own.
pub(super) fn door_reading<E, B, H>(read: fn(&[u8]) -> Result<B, Error>, handler: H) -> Door<E>
where
    E: Endpoint<Place: Send, Query: Send, Answer: Send>,
    B: Send + 'static,
    H: AsyncHandler<E, B, E::Answer>,
{
    serve(Most::Usual, read, written, handler)
}

/// Serves an endpoint that takes chunks of an import: large, and with a reader of their own.
pub(super) fn door_importing<E, B, H>(read: fn(&[u8]) -> Result<B, Error>, handler: H) -> Door<E>
where
    E: Endpoint<Place: Send, Query: Send, Answer: Send>,
    B: Send + 'static,
    H: AsyncHandler<E, B, E::Answer>,
{
    serve(Most::Import, read, written, handler)
}

/// Serves an endpoint whose answer is a JSON line, and then lines that are written already.
pub(super) fn door_with_lines<E, H>(handler: H) -> Door<E>
where
    E: Endpoint<Place: Send, Query: Send, Body: Send, Answer: Send>,
    H: AsyncHandler<E, E::Body, (E::Answer, Vec<u8>)>,
{
    let write = |(head, lines): (E::Answer, Vec<u8>)| {
        let mut bytes = written(head)?;
        bytes.push(b'\n');
        bytes.extend(lines);
        Ok(bytes)
    };
    serve(Most::Usual, |body| Ok(json::parse_as(body)?), write, handler)
}

/// An `async fn(Call<E, B>) -> Result<A, Error>`.
pub(super) trait AsyncHandler<E: Endpoint, B, A>: Clone + Send + Sync + 'static {
    /// Works on a call.
    fn answer(&self, call: Call<E, B>) -> impl Future<Output = Result<A, Error>> + Send;
}

impl<E, B, A, F, W> AsyncHandler<E, B, A> for F
where
    E: Endpoint,
    F: Fn(Call<E, B>) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Result<A, Error>> + Send,
{
    fn answer(&self, call: Call<E, B>) -> impl Future<Output = Result<A, Error>> + Send {
        self(call)
    }
}

fn serve<E, B, A, H>(
    most: Most,
    read: fn(&[u8]) -> Result<B, Error>,
    write: fn(A) -> Result<Vec<u8>, Error>,
    handler: H,
) -> Door<E>
where
    E: Endpoint<Place: Send, Query: Send>,
    B: Send + 'static,
    A: Send + 'static,
    H: AsyncHandler<E, B, A>,
{
    const { assert!(E::STATUS >= 200 && E::STATUS < 300, "the status of an answer that is no refusal") };
    let serving = move |owner: Owner<E::Needs>, mut request: Incoming| async move {
        let call = read_call::<E, B>(owner, &mut request, most, read).await?;
        let body = write(handler.answer(call).await?)?;
        let status = StatusCode::from_u16(E::STATUS).unwrap_or(StatusCode::OK);
        Ok::<Response, Error>((status, [(header::CONTENT_TYPE, E::MEDIA_TYPE)], body).into_response())
    };
    let by = if E::METHOD == Method::POST { MethodFilter::POST } else { MethodFilter::GET };
    Door { router: on(by, serving), of: PhantomData }
}

/// Reads what a request says; its sender was checked.
async fn read_call<E: Endpoint, B: Send + 'static>(
    owner: Owner<E::Needs>,
    request: &mut Incoming,
    most: Most,
    read: fn(&[u8]) -> Result<B, Error>,
) -> Result<Call<E, B>, Error> {
    let place = match nothing() {
        Some(none) => none,
        None => E::Place::parse(Some(&request.place().await?)).ok_or(Error::NotFound)?,
    };
    let query = match nothing() {
        Some(none) => none,
        None => request.query()?,
    };
    let body = match nothing() {
        Some(none) => none,
        None => {
            if matches!(most, Most::Import) {
                request.takes_an_import();
            }
            request.json_with(read).await?
        }
    };
    Ok(Call { owner, gateway: request.app().gateway.clone(), place, query, body })
}

/// `()` where `T` is that: what an endpoint does not have is not read.
fn nothing<T: 'static>() -> Option<T> {
    let unit: Box<dyn Any> = Box::new(());
    unit.downcast::<T>().ok().map(|unit| *unit)
}

fn written<A: Serialize>(answer: A) -> Result<Vec<u8>, Error> {
    Ok(serde_json::to_vec(&answer)?)
}
