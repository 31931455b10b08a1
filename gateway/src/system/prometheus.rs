//! What the gateway tells Prometheus, and what each of it means.

use crate::service::Grants;
use crate::state::gateway::{Gateway, blocking};
use crate::system::home::Home;
use crate::system::outlook;
use axum::Router;
use axum::routing::get;
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use std::net::SocketAddr;
use std::sync::Arc;

/// The upper bounds of the buckets of `oap_request_seconds`: the longest request takes 30 seconds.
pub const SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 10.0, 30.0];

/// Counters without labels, told as 0 from the start, and what they count.
const COUNTERS: [(&str, &str); 8] = [
    ("oap_items_captured_total", "Items written"),
    ("oap_items_erased_total", "Items whose content was destroyed"),
    ("oap_grants_issued_total", "Grants signed"),
    ("oap_grants_revoked_total", "Grants taken back"),
    ("oap_lockdowns_total", "Lockdowns by the owner"),
    ("oap_tokens_issued_total", "Tokens given for grants"),
    ("oap_queries_total", "Queries answered"),
    ("oap_pushes_made_total", "Pushes and events made for subscriptions"),
];

/// Makes the recorder of this process. Once.
///
/// # Errors
/// [`BuildError`] when there is one already.
pub fn record() -> Result<PrometheusHandle, BuildError> {
    let request_seconds = Matcher::Full("oap_request_seconds".to_owned());
    let handle =
        PrometheusBuilder::new().set_buckets_for_metric(request_seconds, &SECONDS)?.install_recorder()?;
    describe();
    Ok(handle)
}

fn describe() {
    describe_histogram!("oap_request_seconds", Unit::Seconds, "Time from a request to its answer, by route");
    describe_counter!("oap_requests_total", "Requests, by route and status");
    describe_counter!("oap_pushes_taken_total", "Pushes of other gateways, by outcome: taken, behind, over");
    describe_counter!("oap_refusals_total", "Refusals of what a grant does not allow, by rule");
    for (name, help) in COUNTERS {
        describe_counter!(name, help);
        counter!(name).increment(0);
    }
    describe_gauge!("oap_items", "Items in the store, retracted ones with them");
    describe_gauge!("oap_grants", "Grants, by state: draft, active, expired, revoked");
    describe_gauge!(
        "oap_grant_next_expiry_timestamp_seconds",
        "When the next of the active grants ends, in seconds since 1970; NaN without any"
    );
    describe_gauge!(
        "oap_certificate_expiry_timestamp_seconds",
        "When the server's certificate ends, in seconds since 1970; absent under plain_http"
    );
    describe_gauge!("oap_store_bytes", Unit::Bytes, "Bytes of the store and the vault on disk");
    describe_gauge!("oap_disk_free_bytes", Unit::Bytes, "Free bytes of the file system of the home");
    describe_gauge!("oap_writes_waiting", "Transactions that wait for the store's writer");
    describe_gauge!("oap_build_info", "The version, as a label; always 1");
    gauge!("oap_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1);
}

/// Sets the gauges to what is now.
fn measure(gateway: &Arc<Gateway>, home: &Home) {
    let seconds = |time: oap_identity::Timestamp| time.millis() as f64 / 1000.0;
    gauge!("oap_items").set(gateway.heads.len() as f64);
    let grants = Grants(gateway).grants_outlook();
    for (state, count) in &grants.states {
        gauge!("oap_grants", "state" => *state).set(*count as f64);
    }
    let next = grants.ends.first().map_or(f64::NAN, |(end, _)| seconds(*end));
    gauge!("oap_grant_next_expiry_timestamp_seconds").set(next);
    if let Some(end) = outlook::certificate_end(&gateway.config, home) {
        gauge!("oap_certificate_expiry_timestamp_seconds").set(seconds(end));
    }
    gauge!("oap_store_bytes").set(outlook::store_bytes(home) as f64);
    if let Some(free) = outlook::disk_free(home.path()) {
        gauge!("oap_disk_free_bytes").set(free as f64);
    }
    gauge!("oap_writes_waiting").set(gateway.waiting_writes() as f64);
}

/// Serves metrics on a loopback address, measured anew for each that asks.
///
/// # Errors
/// What the system says of the address.
pub async fn serve(
    address: SocketAddr,
    recorder: PrometheusHandle,
    gateway: Arc<Gateway>,
    home: Home,
) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    let answer = move || {
        let (recorder, gateway, home) = (recorder.clone(), gateway.clone(), home.clone());
        async move {
            let measured = blocking(move || {
                measure(&gateway, &home);
                Ok(())
            })
            .await;
            if let Err(error) = measured {
                tracing::error!(%error, "measuring failed");
            }
            recorder.render()
        }
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/metrics", get(answer))).await });
    Ok(())
}
