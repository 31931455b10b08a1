//! Subscriptions (protocol section 17): made, read and ended by grantees; and what other gateways push.

use super::App;
use super::credential::{RequestOutcome, as_grantee_in};
use super::request::{Incoming, Oap, Sender, oap_bytes};
use crate::Error;
use crate::error::MemberError;
use crate::service::Subscriptions;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use oap_federation::push::{NewSubscription, TAG};
use oap_identity::SubscriptionId;
use oap_identity::http_signature::{Headers, UnverifiedMessage};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc::Receiver;

/// The media type of events.
const EVENTS: &str = "text/event-stream";

async fn name(request: &mut Incoming) -> Result<SubscriptionId, Error> {
    request.place().await?.parse().map_err(|_| Error::NotFound)
}

/// `POST /oap/memory/subscribe`: a grantee subscribes to what its grant shows. The same again is the same subscription.
pub async fn subscribe(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let made = as_grantee_in(&mut request, async |request, caller| {
        let new: NewSubscription = request.json_as().await?;
        Ok((Subscriptions(&app.gateway).begin(caller, new).await?, RequestOutcome::Unrecorded))
    });
    Ok(Oap(made.await?).into_response())
}

/// `POST /oap/memory/subscribe/{id}/end`: a grantee ends a subscription of its own.
pub async fn end(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let ended = as_grantee_in(&mut request, async |request, caller| {
        let id = name(request).await?;
        Ok((Subscriptions(&app.gateway).end_by_grantee(caller, id).await?, RequestOutcome::Unrecorded))
    });
    Ok(Oap(ended.await?).into_response())
}

/// `GET /oap/memory/subscribe/{id}/events`: what becomes of the view, as server-sent events. `Last-Event-ID` says what came.
pub async fn events(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let events = as_grantee_in(&mut request, async |request, caller| {
        let id = name(request).await?;
        let last = last_event(request)?;
        Ok((Subscriptions(&app.gateway).read(caller, id, last).await?, RequestOutcome::Unrecorded))
    });
    let body = Body::new(Events(events.await?));
    Ok(([(header::CONTENT_TYPE, EVENTS)], body).into_response())
}

/// The number of the last event that came; 0 where none did.
fn last_event(request: &Incoming) -> Result<u64, Error> {
    let given = request.header("last-event-id");
    match given.as_slice() {
        [] => Ok(0),
        [number] => number.parse().map_err(|_| Error::Member("Last-Event-ID", MemberError::EventNumber)),
        _ => Err(Error::Member("Last-Event-ID", MemberError::EventNumber)),
    }
}

/// Events as they come.
struct Events(Receiver<Bytes>);

impl HttpBody for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// `POST /oap/peer/push/{id}`: the door for pushes of other gateways. Whoever is not proved by the head of the request is answered alike,
/// and its body is not read.
pub async fn pushed(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    let [digest, input, signature] =
        ["content-digest", "signature-input", "signature"].map(|name| request.header(name));
    let [digest, input, signature]: [Vec<&str>; 3] =
        [&digest, &input, &signature].map(|values| values.iter().map(String::as_str).collect());
    let headers = Headers { digest: &digest, input: &input, signature: &signature };
    let unverified = UnverifiedMessage::request(headers, TAG)?;
    let id = name(&mut request).await.map_err(|_| Error::Pusher)?;
    let subscriptions = Subscriptions(&app.gateway);
    let proved = subscriptions.prove(id, unverified, request.raw_target()).await?;
    request.sent_by(Sender::Gateway);
    let body = request.bytes().await?;
    let (reply, signed) = subscriptions.take(proved, body).await?;
    let mut response = oap_bytes(reply);
    for (name, value) in signed.named() {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Error::Panicked)?;
        let value = HeaderValue::from_str(value).map_err(|_| Error::Panicked)?;
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}
